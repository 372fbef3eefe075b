package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/toolservers"
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/input"
	"github.com/callgate/callgate/internal/terminal"
	"github.com/callgate/callgate/internal/text"
)

// acceptFirst shows the definitions of each server, and accepts them where somebody says so. Programs that
// a client's file names are started only after a yes. It reports whether the definitions of every server were
// accepted, each of them.
func acceptFirst(ctx context.Context, e env, main string, f initFlags) (bool, error) {
	// The policy may name tools that are accepted only now: warnings come with the next load.
	first, err := configs.Load(main)
	if err != nil {
		return false, err
	}
	discoverer := e.Servers()
	defer discoverer.Close()
	answers := bufio.NewReader(input.ContextReader(ctx, io.NopCloser(e.Stdin)))
	start, all := true, true
	if f.from != sourceMCP && e.ShowPrograms(f.from, first.Servers) && !f.run {
		if start, err = askAgreement(e, answers, "Start them, to ask for their tools? [y/N] ", f.yes); err != nil {
			return false, err
		}
		if !start {
			fmt.Fprintln(e.Stderr, "nothing was started: --run starts them, and --yes accepts their tools too")
		}
	}
	for _, s := range first.Servers {
		if len(s.Command) > 0 && !start {
			fmt.Fprintf(e.Stderr, "not started: no tool of %s can be called until you run: callgate servers accept %s --config %s\n",
				s.Name, s.Name, main)
			all = false
			continue
		}
		// Names of other servers count, so what was accepted of them is read again.
		loaded, err := configs.Load(main)
		if err != nil {
			return false, err
		}
		stop := terminal.Wait(e.Stderr, s.Name)
		proposal, err := toolservers.Propose(ctx, discoverer, loaded, s, nil)
		stop()
		if err == nil {
			err = proposal.Check()
		}
		if err != nil {
			if ctx.Err() != nil {
				return false, err
			}
			fmt.Fprintf(e.Stderr, "nothing is accepted: %v\nTry again with: callgate servers accept %s --config %s\n", err, s.Name, main)
			all = false
			continue
		}
		if err := showProposal(e, proposal, s); err != nil {
			return false, err
		}
		all = all && len(proposal.Accepted.Refused)+len(proposal.Conflicts) == 0
		if agreed, err := askAgreement(e, answers,
			fmt.Sprintf("Accept these %d definitions of %s? [y/N] ", len(proposal.Accepted.Pins), s.Name), f.yes); err != nil {
			return false, err
		} else if !agreed {
			fmt.Fprintf(e.Stderr, "not accepted: no tool of %s can be called until you run: callgate servers accept %s --config %s\n",
				s.Name, s.Name, main)
			all = false
			continue
		}
		if err := proposal.Write(); err != nil {
			return false, fmt.Errorf("the accepted tools could not be saved: %w", err)
		}
		fmt.Fprintf(e.Stdout, "accepted %s of %s\n", text.Count(len(proposal.Accepted.Pins), "tool"), s.Name)
	}
	return all, nil
}

// showProposal prints what accepting the tools of a server means.
func showProposal(e env, p *toolservers.Proposal, s lockfile.Server) error {
	for _, pin := range p.Accepted.Pins {
		fmt.Fprintf(e.Stdout, "  %s  %s\n", cli.FirstLine(s.ToolName(pin.Name)), cli.FirstLine(pin.Description))
	}
	for _, name := range p.Conflicts {
		fmt.Fprintf(e.Stderr, "left out: %s: a tool file has a tool of the same name\n", cli.FirstLine(name))
	}
	for _, f := range p.Accepted.Changed {
		fmt.Fprintf(e.Stderr, "changed: %v\n", f)
	}
	for _, f := range p.Accepted.Refused {
		fmt.Fprintf(e.Stderr, "left out: %v\n", f)
	}
	digest, err := p.Digest()
	if err != nil {
		return cli.InternalError{Err: err}
	}
	fmt.Fprintf(e.Stdout, "  digest %s\n", digest)
	return nil
}

// askAgreement asks a question on a terminal.
func askAgreement(e env, answers *bufio.Reader, question string, yes bool) (bool, error) {
	if yes {
		return true, nil
	}
	if !terminal.IsTerminal(e.Stdin) {
		return false, nil
	}
	fmt.Fprint(e.Stderr, question)
	line, err := answers.ReadString('\n')
	if err != nil && err != io.EOF {
		return false, err
	}
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(line))), nil
}
