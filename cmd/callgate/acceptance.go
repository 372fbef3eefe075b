package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/toolservers"
	"github.com/callgate/callgate/wrapper"
)

func newServersAccept(e env) *cobra.Command {
	var file string
	var from fileFlag
	var how acceptOptions
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
so that a server which says one thing to you and another a moment later is found.
The digest is printed at the end of every acceptance: it tells other gateways, each
of which has a data_dir of its own, what is meant.

With --from, the server is not asked: what is accepted is what another gateway has,
as servers export wrote it, and nothing else is any longer.`,
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
	c.Flags().BoolVar(&how.DryRun, "dry-run", false, "say what would become of each tool, and change nothing")
	c.Flags().Var(&how.Expected, "expect", "accept only what has this digest")
	c.Flags().Var(&from, "from", "accept what this file has of the server, which export wrote; - is standard input")
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
func (e env) accept(ctx context.Context, of toolservers.Discoverer, loaded *configs.Config, s configs.ToolServer, names []string, how acceptOptions) error {
	offers, err := toolservers.Discover(ctx, of, s)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	meant := func(name string) bool { return s.Allows(name) && (len(names) == 0 || slices.Contains(names, name)) }
	old := loaded.Pins[s.Name]
	for _, name := range names {
		offered := slices.ContainsFunc(offers, func(o configs.DiscoveredTool) bool { return o.Name == name })
		pinned := slices.ContainsFunc(old, func(p configs.Pin) bool { return p.Name == name })
		switch {
		case !offered && !pinned:
			return fmt.Errorf("%s has no tool %s", s.Name, parser.Quote(name))
		case !s.Allows(name):
			return fmt.Errorf("the tool %s of %s is not among those that %s allows", parser.Quote(name), s.Name, loaded.ServersFile)
		}
	}
	says := toolservers.StatementOf(offers)
	var wanted []configs.DiscoveredTool
	var pins, forgotten []configs.Pin // of tools that are not meant, which stay as they are, and that are gone
	for _, p := range old {
		if !meant(p.Name) {
			pins = append(pins, p)
		} else if says.State(p) == toolservers.StateGone {
			forgotten = append(forgotten, p)
		}
	}
	taken := false
	for _, o := range offers {
		if !meant(o.Name) {
			continue
		}
		if t, ok := loaded.Tools.Lookup(s.ToolName(o.Name)); ok && t.Run().Server != s.Name {
			fmt.Fprintf(e.stderr, "left out: %s: a tool file has a tool of the same name\n", parser.Quote(s.ToolName(o.Name)))
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
	digest, err := digestOf(accepted.Pins)
	if err != nil {
		return app.InternalError{err}
	}
	if !how.allows(digest) {
		return fmt.Errorf("%s says something else now: found the digest %s; expected %s", s.Name, digest, how.Expected)
	}
	if err := e.writeAccepted(loaded, s, pins, accepted, forgotten, how, digest); err != nil {
		return err
	}
	if taken || len(accepted.Refused) > 0 {
		return status(exitRefused)
	}
	return nil
}

// acceptFrom makes what another gateway has accepted of a server what was accepted here.
func (e env) acceptFrom(ctx context.Context, file string, loaded *configs.Config, s configs.ToolServer, how acceptOptions) error {
	file, data, err := e.definitions(ctx, []string{file})
	if err != nil {
		return err
	}
	pins, err := configs.ParseLockfile(file, s.Name, data)
	if err != nil {
		return err
	}
	for _, p := range pins {
		if !s.Allows(p.Name) {
			return fmt.Errorf("the tool %s of %s is not among those that %s allows", parser.Quote(p.Name), s.Name, loaded.ServersFile)
		}
		if err := checkEndpoint(s, p); err != nil {
			return fmt.Errorf("%s: the tool %s of %s %w", file, parser.Quote(p.Name), s.Name, err)
		}
	}
	digest, err := digestOf(pins)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if !how.allows(digest) {
		return fmt.Errorf("%s holds something else: found the digest %s; expected %s", file, digest, how.Expected)
	}
	var forgotten []configs.Pin
	for _, p := range loaded.Pins[s.Name] {
		if !slices.ContainsFunc(pins, func(q configs.Pin) bool { return q.Name == p.Name && q.Version == p.Version }) {
			forgotten = append(forgotten, p)
		}
	}
	return e.writeAccepted(loaded, s, nil, &configs.Acceptance{Pins: pins}, forgotten, how, digest)
}

// checkEndpoint says why calls of a tool may not go where a file says. A toolset that is asked
// is held to the same.
func checkEndpoint(s configs.ToolServer, p configs.Pin) error {
	if p.Endpoint == "" {
		return nil
	}
	if s.Type != configs.ServerCallback {
		return fmt.Errorf("has an endpoint; expected none with the type %s", s.Type)
	}
	base, err := url.Parse(s.URL)
	if err != nil {
		return errors.New("has a server without a URL")
	}
	switch u, err := url.Parse(p.Endpoint); {
	case err != nil || u.Host == "":
		return errors.New("has an endpoint that is not an absolute URL")
	case base.Scheme == "https" && u.Scheme != "https":
		return errors.New("has an endpoint without TLS, and its server is reached with it")
	case s.Credential.IsSet() && (u.Scheme != base.Scheme || u.Host != base.Host):
		return errors.New("has an endpoint on another server, which the credential is not for")
	}
	return nil
}

// writeAccepted writes down what is accepted of a server, beside what stays, and says what has
// become of each tool.
func (e env) writeAccepted(loaded *configs.Config, s configs.ToolServer, stay []configs.Pin, accepted *configs.Acceptance, forgotten []configs.Pin, how acceptOptions, digest string) error {
	pins := slices.Concat(stay, accepted.Pins)
	faulty := loaded.CheckLockfile(s.Name, pins)
	if faulty != nil {
		fmt.Fprintf(e.stderr, "nothing is accepted: with these tools of %s the configuration does not load\n", s.Name)
		if !how.DryRun {
			return faulty
		}
	}
	for _, p := range forgotten {
		fmt.Fprintf(e.stdout, "forgotten\t%s\n", displayName(s.ToolName(p.Name), p.Version))
	}
	before := map[toolservers.VersionKey]string{}
	for _, p := range loaded.Pins[s.Name] {
		sum, err := p.ContentDigest()
		if err != nil {
			return app.InternalError{err}
		}
		before[toolservers.VersionKey{p.Name, p.Version}] = sum
	}
	for _, p := range accepted.Pins {
		sum, err := p.ContentDigest()
		if err != nil {
			return app.InternalError{err}
		}
		word := "accepted"
		if old, known := before[toolservers.VersionKey{p.Name, p.Version}]; known {
			word = "unchanged"
			if old != sum {
				word = "changed"
			}
		}
		fmt.Fprintf(e.stdout, "%s\t%s\n", word, displayName(s.ToolName(p.Name), p.Version))
	}
	// Their texts hold what the server says, and Error shows nothing that a terminal
	// would obey.
	for _, f := range accepted.Changed {
		fmt.Fprintf(e.stderr, "changed: %v\n", f)
	}
	for _, f := range accepted.Refused {
		fmt.Fprintf(e.stderr, "left out: %v\n", f)
	}
	if !how.DryRun {
		if err := loaded.WriteLockfile(s.Name, pins); err != nil {
			return fmt.Errorf("what was accepted could not be kept: %w", err)
		}
	}
	fmt.Fprintf(e.stdout, "digest\t%s\n", digest)
	if how.DryRun {
		for _, p := range accepted.Pins {
			line, err := wrapper.Marshal(p)
			if err != nil {
				return app.InternalError{err}
			}
			fmt.Fprintf(e.stdout, "%s\n", line)
		}
	}
	return faulty
}

// digestOf is SHA-256, in hex, over pins, whatever their order. It is over what calls
// are judged by, too, so that a file in which that was changed has another.
func digestOf(pins []configs.Pin) (string, error) {
	var digests []string
	for _, p := range pins {
		digest, err := p.ContentDigest()
		if err != nil {
			return "", err
		}
		digests = append(digests, digest)
	}
	slices.Sort(digests)
	sum := sha256.Sum256([]byte(strings.Join(digests, "\n")))
	return hex.EncodeToString(sum[:]), nil
}

func displayName(name, version string) string {
	if version != "" {
		name += " " + version
	}
	return firstLine(name)
}
