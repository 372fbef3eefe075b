package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/toolservers"
	"github.com/callgate/callgate/toolservers/lockfile"
)

func newServersAccept(e env) *cobra.Command {
	var file string
	var from fileFlag
	var how acceptOptions
	c := &cobra.Command{
		Use:   "accept SERVER [TOOL ...]",
		Short: "Accept the current tool definitions of a server",
		Long: `Ask a server for its tools and accept their definitions: those of all tools that the
servers file allows, or of the named ones, as the server names them. One line for
each tool says what changed. A tool that cannot be judged strictly is left out, with
the reason; then the exit code is 1. A tool that its server no longer has is
forgotten. If the configuration would not load with these tools, because two names
are equal where dots are not allowed or because of a condition of the policy, nothing
is accepted, and the exit code is 2.

An object that declares no members gets additionalProperties: true, and a line says
so.

Nothing is ever accepted automatically. Review with --dry-run, which also prints a
digest of all definitions; with --expect, only definitions with that digest are
accepted, so that a server that changes them after your review is found. Every
acceptance prints the digest at its end: use it to accept the same on other gateways,
each of which has a data_dir of its own.

With --from, the server is not asked: the definitions come from a file that servers
export wrote on another gateway, and replace all that were accepted of the server.`,
		Example: `  callgate servers accept github --dry-run --config callgate.yaml
  callgate servers accept github --expect 5f1c… --config callgate.yaml
  callgate servers accept github search_repositories --config callgate.yaml
  callgate servers accept github --from github.json --config callgate.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			loaded, chosen, err := e.chosen(file, args)
			if err != nil {
				return err
			}
			if from != "" {
				if len(args) > 1 {
					return errors.New("found names of tools beside --from; expected none, since the file says which")
				}
				return e.acceptFrom(c.Context(), string(from), loaded, chosen[0], how)
			}
			asking := e.engine()
			defer asking.Close()
			return e.accept(c.Context(), asking, loaded, chosen[0], args[1:], how)
		},
	}
	configFlag(c, &file)
	c.Flags().BoolVar(&how.DryRun, "dry-run", false, "print what would change, and change nothing")
	c.Flags().Var(&how.Expected, "expect", "accept only definitions with this digest")
	c.Flags().Var(&from, "from", "accept the definitions of this file, which export wrote; - is standard input")
	return c
}

// acceptOptions says how to accept.
type acceptOptions struct {
	DryRun   bool
	Expected digestFlag // of what is meant; empty is any
}

// digestFlag is a digest as accept prints it. It is never empty where it is stated: a
// script whose variable holds nothing does not mean anything at all.
type digestFlag string

func (d *digestFlag) String() string { return string(*d) }
func (d *digestFlag) Type() string   { return "digest" }
func (d *digestFlag) Set(s string) error {
	if sum, err := hex.DecodeString(s); err != nil || len(sum) != sha256.Size || s != strings.ToLower(s) {
		return errors.New("expected 64 hexadecimal digits, as --dry-run prints them")
	}
	*d = digestFlag(s)
	return nil
}

// allows tells whether a digest is one that may be accepted.
func (a *acceptOptions) allows(digest string) bool {
	return a.Expected == "" || string(a.Expected) == digest
}

// accept makes what a server says now what was accepted.
func (e env) accept(ctx context.Context, of toolservers.Discoverer, loaded *configs.Config, s lockfile.Server, names []string, how acceptOptions) error {
	p, err := toolservers.Propose(ctx, of, loaded, s, names)
	if p != nil {
		for _, name := range p.Conflicts {
			fmt.Fprintf(e.stderr, "left out: %s: a tool file has a tool of the same name\n", parser.Quote(name))
		}
	}
	if err != nil {
		if p != nil {
			for _, f := range p.Accepted.Refused {
				fmt.Fprintf(e.stderr, "refused: %v\n", f)
			}
		}
		return err
	}
	digest, err := p.Digest()
	if err != nil {
		return cli.InternalError{Err: err}
	}
	if !how.allows(digest) {
		return fmt.Errorf("%s says something else now: found the digest %s; expected %s", s.Name, digest, how.Expected)
	}
	if err := e.writeProposal(p, s, how, digest); err != nil {
		return err
	}
	if len(p.Conflicts) > 0 || len(p.Accepted.Refused) > 0 {
		return cli.ErrRefused
	}
	return nil
}

// acceptFrom makes what another gateway has accepted of a server what was accepted here.
func (e env) acceptFrom(ctx context.Context, file string, loaded *configs.Config, s lockfile.Server, how acceptOptions) error {
	file, data, err := e.definitions(ctx, []string{file})
	if err != nil {
		return err
	}
	p, err := toolservers.ProposeFile(file, data, loaded, s)
	if err != nil {
		return err
	}
	digest, err := p.Digest()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if !how.allows(digest) {
		return fmt.Errorf("%s holds something else: found the digest %s; expected %s", file, digest, how.Expected)
	}
	return e.writeProposal(p, s, how, digest)
}

// writeProposal writes down what is accepted of a server, unless it is a dry run, and
// says what becomes of each tool.
func (e env) writeProposal(p *toolservers.Proposal, s lockfile.Server, how acceptOptions, digest string) error {
	fault := p.Check()
	if fault != nil {
		fmt.Fprintf(e.stderr, "nothing is accepted: with these tools of %s the configuration does not load\n", s.Name)
		if !how.DryRun {
			return fault
		}
	}
	for _, pin := range p.Forgotten {
		fmt.Fprintf(e.stdout, "forgotten\t%s\n", displayName(s.ToolName(pin.Name), pin.Version))
	}
	changes, err := p.Changes()
	if err != nil {
		return cli.InternalError{Err: err}
	}
	for _, c := range changes {
		fmt.Fprintf(e.stdout, "%s\t%s\n", c.Word, displayName(c.Name, c.Version))
	}
	// Their texts hold what the server says, and Error shows nothing that a terminal
	// would obey.
	for _, f := range p.Accepted.Changed {
		fmt.Fprintf(e.stderr, "changed: %v\n", f)
	}
	for _, f := range p.Accepted.Refused {
		fmt.Fprintf(e.stderr, "left out: %v\n", f)
	}
	if !how.DryRun {
		if err := p.Write(); err != nil {
			return fmt.Errorf("what was accepted could not be kept: %w", err)
		}
	}
	fmt.Fprintf(e.stdout, "digest\t%s\n", digest)
	if how.DryRun {
		for _, pin := range p.Accepted.Pins {
			line, err := cli.JSONLine(pin)
			if err != nil {
				return err
			}
			fmt.Fprintf(e.stdout, "%s", line)
		}
	}
	return fault
}

func displayName(name, version string) string {
	if version != "" {
		name += " " + version
	}
	return cli.FirstLine(name)
}

// chosen loads a configuration, and picks the servers that arguments name, or all.
func (e env) chosen(file string, names []string) (*configs.Config, []lockfile.Server, error) {
	loaded, err := e.load(file)
	if err != nil {
		return nil, nil, err
	}
	if len(loaded.Servers) == 0 {
		return nil, nil, fmt.Errorf("%s has no servers; expected the key servers, which names their file", loaded.Files[0])
	}
	if len(names) == 0 {
		return loaded, loaded.Servers, nil
	}
	at := slices.IndexFunc(loaded.Servers, func(s lockfile.Server) bool { return s.Name == names[0] })
	if at < 0 {
		return nil, nil, fmt.Errorf("there is no server %q in %s", names[0], loaded.ServersFile)
	}
	return loaded, loaded.Servers[at : at+1], nil
}
