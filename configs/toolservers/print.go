package toolservers

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/terminal"
	"github.com/callgate/callgate/parser"
)

// Accepter prints what accepting tools of a server would change, and accepts them. Texts
// of servers are printed without anything that a terminal would obey.
type Accepter struct {
	Loaded *configs.Config
	Server lockfile.Server
	// DryRun prints the definitions, too, and changes nothing.
	DryRun bool
	// Digest is the only one that is accepted; empty is any. See DigestOf.
	Digest   string
	Out, Err io.Writer
}

// Ask accepts the current tools of the server; with names, those that are named. Where
// some of them were left out, the error is cli.ErrRefused.
func (a Accepter) Ask(ctx context.Context, of Discoverer, names []string) error {
	stop := terminal.Wait(a.Err, a.Server.Name)
	p, err := Propose(ctx, of, a.Loaded, a.Server, names)
	stop()
	if p != nil {
		for _, name := range p.Conflicts {
			fmt.Fprintf(a.Err, "left out: %s: a tool file has a tool of the same name\n", parser.Quote(name))
		}
	}
	if err != nil {
		if p != nil {
			printAll(a.Err, "refused", p.Accepted.Refused)
		}
		return err
	}
	digest, err := p.Digest()
	if err != nil {
		return cli.InternalError{Err: err}
	}
	if !a.allows(digest) {
		return fmt.Errorf("%s says something else now: found the digest %s; expected %s", a.Server.Name, digest, a.Digest)
	}
	if err := a.accept(p, digest); err != nil {
		return err
	}
	if len(p.Conflicts) > 0 || len(p.Accepted.Refused) > 0 {
		return cli.ErrRefused
	}
	return nil
}

// File accepts the tools of a file that Export wrote on another gateway.
func (a Accepter) File(file string, text []byte) error {
	p, err := ProposeFile(file, text, a.Loaded, a.Server)
	if err != nil {
		return err
	}
	digest, err := p.Digest()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if !a.allows(digest) {
		return fmt.Errorf("%s holds something else: found the digest %s; expected %s", file, digest, a.Digest)
	}
	return a.accept(p, digest)
}

// allows reports whether tools with a digest may be accepted.
func (a Accepter) allows(digest string) bool { return a.Digest == "" || a.Digest == digest }

// accept writes a proposal, unless it is a dry run, and prints the change of each tool.
func (a Accepter) accept(p *Proposal, digest string) error {
	printAll(a.Err, "left out", p.Accepted.Refused)
	if len(p.pins()) == 0 {
		fmt.Fprintf(a.Err, "nothing is accepted: %s has no tool that can be accepted\n", a.Server.Name)
		return cli.ErrRefused
	}
	fault := p.Check()
	if fault != nil {
		fmt.Fprintf(a.Err, "nothing is accepted: with these tools of %s the configuration does not load\n", a.Server.Name)
		if !a.DryRun {
			return fault
		}
	}
	changes, err := p.Changes()
	if err != nil {
		return cli.InternalError{Err: err}
	}
	if !a.DryRun {
		if err := p.Write(); err != nil {
			return fmt.Errorf("the accepted tools could not be saved: %w", err)
		}
	}
	for _, pin := range p.Forgotten {
		fmt.Fprintf(a.Out, "%s\t%s\n", a.word(changeForgotten), displayName(a.Server.ToolName(pin.Name), pin.Version))
	}
	for _, c := range changes {
		fmt.Fprintf(a.Out, "%s\t%s\n", a.word(c.Word), displayName(c.Name, c.Version))
	}
	printAll(a.Err, "changed", p.Accepted.Changed)
	fmt.Fprintf(a.Out, "digest\t%s\n", digest)
	if a.DryRun {
		for _, pin := range p.Accepted.Pins {
			line, err := cli.JSONLine(pin)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "%s", line)
		}
	}
	return fault
}

// word is the word of a change as it is printed: of a dry run it says that nothing was changed.
func (a Accepter) word(change string) string {
	if would := map[string]string{ChangeAccepted: "would accept", ChangeChanged: "would change",
		changeForgotten: "would forget"}[change]; a.DryRun && would != "" {
		return would
	}
	return change
}

// printAll prints a line for each fault. Their texts hold what the server says, and Error
// shows nothing that a terminal would obey.
func printAll[E error](w io.Writer, word string, faults []E) {
	for _, f := range faults {
		fmt.Fprintf(w, "%s: %v\n", word, f)
	}
}

func displayName(name, version string) string {
	if version != "" {
		name += " " + version
	}
	return cli.FirstLine(name)
}

// Export returns what was accepted of a server, for Accepter.File on another gateway.
func Export(loaded *configs.Config, s lockfile.Server) ([]byte, error) {
	// Tools that are not allowed any more are left out: another gateway would refuse them.
	pins := slices.DeleteFunc(slices.Clone(loaded.Pins[s.Name]), func(p lockfile.Pin) bool { return !s.Allows(p.Name) })
	if len(pins) == 0 {
		return nil, fmt.Errorf("nothing was accepted of %s", s.Name)
	}
	data, err := lockfile.Encode(s.Name, pins)
	if err != nil {
		return nil, cli.InternalError{Err: err}
	}
	return data, nil
}

// PrintList prints the tools of servers and their states, as a table or as lines of JSON.
// Where a server cannot be asked or understood, the others are still printed, and the
// error is cli.ErrRefused.
func PrintList(ctx context.Context, of Discoverer, loaded *configs.Config, servers []lockfile.Server, asJSON bool, out, errs io.Writer) error {
	table := cli.NewTable(out, asJSON, "SERVER", "TOOL", "VERSION", "STATE", "DESCRIPTION")
	failed := false
	// All at once, because programs are slow to start.
	answers := make([]func() ([]Row, error), len(servers))
	for i, s := range servers {
		answered := make(chan struct{})
		var rows []Row
		var err error
		go func() {
			defer close(answered)
			rows, err = List(ctx, of, s, loaded.Pins[s.Name])
		}()
		answers[i] = func() ([]Row, error) { <-answered; return rows, err }
	}
	for i, s := range servers {
		stop := terminal.Wait(errs, s.Name)
		rows, err := answers[i]()
		stop()
		if err != nil {
			fmt.Fprintf(errs, "%s: %v\n", s.Name, err)
			failed = true
		}
		for _, r := range rows {
			if err := table.Print(r, r.Cells()...); err != nil {
				return err
			}
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if failed {
		return cli.ErrRefused
	}
	return nil
}

// Cells returns the row as a terminal may show it.
func (r Row) Cells() []string {
	return []string{r.Server, cli.FirstLine(r.Tool), cli.FirstLine(r.Version), strings.TrimSpace(r.State + " " + cli.FirstLine(r.Why)),
		cli.FirstLine(r.Description)}
}
