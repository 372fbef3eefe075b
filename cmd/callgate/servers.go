package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/wrapper"
)

func newServers(e env) *cobra.Command {
	parent := &cobra.Command{
		Use:   "servers",
		Short: "See what tool servers have, and accept it",
		Long: `Servers of the servers file (servers: in the configuration) have tools of their
own. None of them may be called before an operator has accepted its definition:
its name, its description and its schemas. What was accepted is kept in data_dir,
under servers, and a running gateway takes it up by itself. When a server says
something else of a tool later, the tool is refused as tool_quarantined until
that is accepted too.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	parent.AddCommand(newServersList(e), newServersAccept(e))
	return parent
}

// row is one tool of a server.
type row struct {
	Server      string `json:"server"`
	Tool        string `json:"tool"` // in the registry, once it is accepted
	Version     string `json:"version,omitempty"`
	State       string `json:"state"`
	Why         string `json:"why,omitempty"`
	Description string `json:"description,omitempty"`
}

// cells are the row as a terminal may show it.
func (r row) cells() []string {
	return []string{r.Server, firstLine(r.Tool), firstLine(r.Version), strings.TrimSpace(r.State + " " + firstLine(r.Why)), firstLine(r.Description)}
}

// The states of a tool that was not accepted.
const (
	unaccepted = "new"
	forbidden  = "not allowed"
	unusable   = "unusable"
)

func newServersList(e env) *cobra.Command {
	var file string
	var asJSON bool
	c := &cobra.Command{
		Use:   "list [SERVER]",
		Short: "Ask the servers what they have, beside what was accepted",
		Long: `Ask each server, or one, for its tools. STATE is one of

  accepted     may be called, where the policy lets it
  changed      its server says something else than what was accepted: in quarantine
  gone         was accepted, and its server does not have it any more: in quarantine
  new          was never accepted: in quarantine
  not allowed  is not among those that the servers file allows
  unusable     cannot be taken up, for the reason beside it

The exit code is 1 where a server cannot be asked.`,
		Example: "  callgate servers list --config callgate.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			loaded, chosen, err := e.chosen(file, args)
			if err != nil {
				return err
			}
			asking := newTooling(engine.Options{}, nil)
			defer asking.Close()
			table := tabwriter.NewWriter(e.stdout, 0, 4, 2, ' ', 0)
			if !asJSON {
				fmt.Fprintln(table, "SERVER\tTOOL\tVERSION\tSTATE\tDESCRIPTION")
			}
			failed := false
			for _, s := range chosen {
				offers, err := ask(c.Context(), asking, s)
				if err != nil {
					fmt.Fprintf(e.stderr, "%s: %v\n", s.Name, err)
					failed = true
					continue
				}
				for _, r := range rows(s, loaded.Pins[s.Name], offers) {
					if !asJSON {
						fmt.Fprintln(table, strings.Join(r.cells(), "\t"))
						continue
					}
					line, err := wrapper.Marshal(r)
					if err != nil {
						return internalError{err}
					}
					fmt.Fprintf(e.stdout, "%s\n", line)
				}
			}
			if err := table.Flush(); err != nil {
				return err
			}
			if failed {
				return status(exitRefused)
			}
			return nil
		},
	}
	configFlag(c, &file)
	c.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON for each tool")
	return c
}

// chosen loads a configuration, and picks the servers that arguments name, or all.
func (e env) chosen(file string, names []string) (*configs.Config, []configs.ToolServer, error) {
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
	at := slices.IndexFunc(loaded.Servers, func(s configs.ToolServer) bool { return s.Name == names[0] })
	if at < 0 {
		return nil, nil, fmt.Errorf("there is no server %q in %s", names[0], loaded.ServerFile)
	}
	return loaded, loaded.Servers[at : at+1], nil
}

// ask asks a server for its tools.
func ask(ctx context.Context, of discoverer, s configs.ToolServer) ([]configs.Offer, error) {
	found, err := of.Discover(ctx, serverOf(s))
	if err != nil {
		return nil, err
	}
	return offersOf(found), nil
}

// rows says how every tool stands that a server has, or that was accepted of it.
func rows(s configs.ToolServer, pins []configs.Pin, offers []configs.Offer) []row {
	says := statementOf(offers)
	accepted := map[versioned]configs.Pin{}
	var all []row
	for _, p := range pins {
		accepted[versioned{p.Name, p.Version}] = p
		if !s.Allows(p.Name) {
			continue // it is listed as what it is now, below
		}
		if says.state(p) == pinGone {
			all = append(all, row{Server: s.Name, Tool: s.Tool(p.Name), Version: p.Version, State: pinGone, Description: p.Description})
		}
	}
	for _, o := range offers {
		r := row{Server: s.Name, Tool: s.Tool(o.Name), Version: o.Version, State: unaccepted, Description: o.Description}
		pin, pinned := accepted[versioned{o.Name, o.Version}]
		switch {
		case !s.Allows(o.Name):
			r.State = forbidden
		case pinned:
			r.State = says.state(pin)
		default:
			if alone := configs.Accept(s, []configs.Offer{o}); len(alone.Refused) > 0 {
				r.State, r.Why = unusable, "("+alone.Refused[0].Message+")"
			}
		}
		all = append(all, r)
	}
	return all
}

func newServersAccept(e env) *cobra.Command {
	var file, expected string
	var dry bool
	c := &cobra.Command{
		Use:   "accept SERVER [TOOL ...]",
		Short: "Accept what a server says of its tools now",
		Long: `Ask a server for its tools, and accept what it says of them: of all that the
servers file allows, or of those that are named, as the server names them. What
becomes of each is printed. A tool that cannot be judged strictly is left out,
with the reason; then the exit code is 1. One that its server does not have any
more is forgotten. Where the configuration would not load with them, because of two
names that are one where dots are not allowed or a condition of the policy, nothing
is accepted, and the exit code is 2.

An object that declares no members gets additionalProperties: true, which is said.

Nothing is accepted by itself, ever. Look at what it is with --dry-run, which also
prints a digest of all of it; with --expect, only what has that digest is accepted,
so that a server which says one thing to you and another a moment later is found.`,
		Example: `  callgate servers accept github --dry-run --config callgate.yaml
  callgate servers accept github --expect 5f1c… --config callgate.yaml
  callgate servers accept github search_repositories --config callgate.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			loaded, chosen, err := e.chosen(file, args)
			if err != nil {
				return err
			}
			asking := newTooling(engine.Options{}, nil)
			defer asking.Close()
			return e.accept(c.Context(), asking, loaded, chosen[0], args[1:], acceptance{dry, expected})
		},
	}
	configFlag(c, &file)
	c.Flags().BoolVar(&dry, "dry-run", false, "say what would become of each tool, and change nothing")
	c.Flags().StringVar(&expected, "expect", "", "accept only what has this `digest`")
	return c
}

// acceptance says how to accept.
type acceptance struct {
	dry      bool
	expected string // the digest of what is meant; empty is any
}

// accept makes what a server says now what was accepted.
func (e env) accept(ctx context.Context, of discoverer, loaded *configs.Config, s configs.ToolServer, names []string, how acceptance) error {
	offers, err := ask(ctx, of, s)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	meant := func(name string) bool { return s.Allows(name) && (len(names) == 0 || slices.Contains(names, name)) }
	old := loaded.Pins[s.Name]
	for _, name := range names {
		offered := slices.ContainsFunc(offers, func(o configs.Offer) bool { return o.Name == name })
		pinned := slices.ContainsFunc(old, func(p configs.Pin) bool { return p.Name == name })
		switch {
		case !offered && !pinned:
			return fmt.Errorf("%s has no tool %s", s.Name, parser.Quote(name))
		case !s.Allows(name):
			return fmt.Errorf("the tool %s of %s is not among those that %s allows", parser.Quote(name), s.Name, loaded.ServerFile)
		}
	}
	says := statementOf(offers)
	var wanted []configs.Offer
	var pins, forgotten []configs.Pin // of tools that are not meant, which stay as they are, and that are gone
	for _, p := range old {
		if !meant(p.Name) {
			pins = append(pins, p)
		} else if says.state(p) == pinGone {
			forgotten = append(forgotten, p)
		}
	}
	taken := false
	for _, o := range offers {
		if !meant(o.Name) {
			continue
		}
		if t, ok := loaded.Tools.Lookup(s.Tool(o.Name)); ok && t.Run().Server != s.Name {
			fmt.Fprintf(e.stderr, "left out: %s: a tool file has a tool of the same name\n", parser.Quote(s.Tool(o.Name)))
			taken = true
			continue
		}
		wanted = append(wanted, o)
	}
	accepted := configs.Accept(s, wanted)
	if s.Type == configs.ServerCallback && len(accepted.Refused) > 0 {
		// A toolset is taken whole or not at all (TIP-15).
		for _, f := range accepted.Refused {
			fmt.Fprintf(e.stderr, "refused: %v\n", f)
		}
		return fmt.Errorf("nothing of the toolset of %s is accepted, since not all of it can be", s.Name)
	}
	digest := digestOf(accepted.Pins)
	if how.expected != "" && how.expected != digest {
		return fmt.Errorf("%s says something else now: found the digest %s; expected %s", s.Name, digest, how.expected)
	}
	pins = append(pins, accepted.Pins...)
	faulty := loaded.TakesPins(s.Name, pins)
	if faulty != nil {
		fmt.Fprintf(e.stderr, "nothing is accepted: with these tools of %s the configuration does not load\n", s.Name)
		if !how.dry {
			return faulty
		}
	}
	for _, p := range forgotten {
		fmt.Fprintf(e.stdout, "forgotten\t%s\n", shown(s.Tool(p.Name), p.Version))
	}
	before := make(map[versioned]string, len(old))
	for _, p := range old {
		before[versioned{p.Name, p.Version}] = p.Digest
	}
	for _, p := range accepted.Pins {
		word := "accepted"
		if digest, known := before[versioned{p.Name, p.Version}]; known {
			word = "unchanged"
			if digest != p.Digest {
				word = "changed"
			}
		}
		fmt.Fprintf(e.stdout, "%s\t%s\n", word, shown(s.Tool(p.Name), p.Version))
	}
	// Their texts hold what the server says, and Error shows nothing that a terminal
	// would obey.
	for _, f := range accepted.Changed {
		fmt.Fprintf(e.stderr, "changed: %v\n", f)
	}
	for _, f := range accepted.Refused {
		fmt.Fprintf(e.stderr, "left out: %v\n", f)
	}
	if how.dry {
		fmt.Fprintf(e.stdout, "digest\t%s\n", digest)
		for _, p := range accepted.Pins {
			line, err := wrapper.Marshal(p)
			if err != nil {
				return internalError{err}
			}
			fmt.Fprintf(e.stdout, "%s\n", line)
		}
	} else if err := loaded.WritePins(s.Name, pins); err != nil {
		return fmt.Errorf("what was accepted could not be kept: %w", err)
	}
	if faulty != nil {
		return faulty
	}
	if taken || len(accepted.Refused) > 0 {
		return status(exitRefused)
	}
	return nil
}

// digestOf is SHA-256, in hex, over what pins are of, whatever their order.
func digestOf(pins []configs.Pin) string {
	var digests []string
	for _, p := range pins {
		digests = append(digests, p.Digest)
	}
	slices.Sort(digests)
	sum := sha256.Sum256([]byte(strings.Join(digests, "\n")))
	return hex.EncodeToString(sum[:])
}

func shown(name, version string) string {
	if version != "" {
		name += " " + version
	}
	return firstLine(name)
}
