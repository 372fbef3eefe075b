package toolservers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/tool"
)

// Proposal is the change that accepting tools of a server would make. Only Write writes it.
type Proposal struct {
	// Conflicts are tools that are left out, by their names in the registry: a tool file
	// has a tool of the same name.
	Conflicts []string
	// Accepted are the tools that would be accepted, what was changed in them, and why
	// others are left out.
	Accepted *lockfile.Acceptance
	// Forgotten are tools that were accepted, and are gone or cannot be accepted any more.
	Forgotten []lockfile.Pin

	server lockfile.Server
	loaded *configs.Config
	kept   []lockfile.Pin // that were accepted, and are not proposed again
}

// Propose asks a server for its tools and proposes those that its configuration allows;
// with names, those that are named. A callback server's toolset is accepted whole or not
// at all (TIP-15): where some of it is refused, the proposal comes with an error.
func Propose(ctx context.Context, of Discoverer, loaded *configs.Config, s lockfile.Server, names []string) (*Proposal, error) {
	offers, err := of.Discover(ctx, s.Server)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	old := loaded.Pins[s.Name]
	for _, name := range names {
		offered := slices.ContainsFunc(offers, func(o tool.Definition) bool { return o.Name == name })
		pinned := slices.ContainsFunc(old, func(p lockfile.Pin) bool { return p.Name == name })
		switch {
		case !offered && !pinned:
			return nil, fmt.Errorf("%s has no tool %s", s.Name, parser.Quote(name))
		case !s.Allows(name):
			return nil, notAllowed(loaded, s, name)
		}
	}
	meant := func(name string) bool { return s.Allows(name) && (len(names) == 0 || slices.Contains(names, name)) }
	p := &Proposal{server: s, loaded: loaded}
	definitions := statementOf(offers)
	for _, pin := range old {
		if !meant(pin.Name) {
			p.kept = append(p.kept, pin)
		} else if definitions.state(pin) == StateGone {
			p.Forgotten = append(p.Forgotten, pin)
		}
	}
	var wanted []tool.Definition
	for _, o := range offers {
		if !meant(o.Name) {
			continue
		}
		if t, ok := loaded.Tools.Lookup(s.ToolName(o.Name)); ok && t.Run().Server != s.Name {
			p.Conflicts = append(p.Conflicts, s.ToolName(o.Name))
			continue
		}
		wanted = append(wanted, o)
	}
	p.Accepted = lockfile.Accept(s, wanted)
	for _, pin := range old {
		same := func(other lockfile.Pin) bool { return other.Name == pin.Name && other.Version == pin.Version }
		if meant(pin.Name) && !slices.ContainsFunc(p.Accepted.Pins, same) && !slices.ContainsFunc(p.Forgotten, same) {
			p.Forgotten = append(p.Forgotten, pin) // its definition cannot be accepted now
		}
	}
	if s.Type == lockfile.Callback && len(p.Accepted.Refused) > 0 {
		return p, fmt.Errorf("nothing of the toolset of %s is accepted, since not all of it can be", s.Name)
	}
	return p, nil
}

// ProposeFile proposes what another gateway has accepted of a server, from the text of
// its file, in place of all that was accepted here. The server is not asked.
func ProposeFile(file string, text []byte, loaded *configs.Config, s lockfile.Server) (*Proposal, error) {
	pins, err := lockfile.Parse(file, s.Name, text)
	if err != nil {
		return nil, err
	}
	for _, pin := range pins {
		if !s.Allows(pin.Name) {
			return nil, notAllowed(loaded, s, pin.Name)
		}
		if err := checkEndpoint(s, pin); err != nil {
			return nil, fmt.Errorf("%s: the tool %s of %s %w", file, parser.Quote(pin.Name), s.Name, err)
		}
	}
	p := &Proposal{server: s, loaded: loaded, Accepted: &lockfile.Acceptance{Pins: pins}}
	for _, pin := range loaded.Pins[s.Name] {
		if !slices.ContainsFunc(pins, func(q lockfile.Pin) bool { return q.Name == pin.Name && q.Version == pin.Version }) {
			p.Forgotten = append(p.Forgotten, pin)
		}
	}
	return p, nil
}

func notAllowed(loaded *configs.Config, s lockfile.Server, name string) error {
	return fmt.Errorf("the tool %s of %s is not among those that %s allows", parser.Quote(name), s.Name, loaded.ServersFile)
}

// checkEndpoint returns why the endpoint of a tool in a file is not allowed. The endpoint
// of a toolset is checked by the same rule.
func checkEndpoint(s lockfile.Server, p lockfile.Pin) error {
	if p.Endpoint == "" {
		return nil
	}
	if s.Type != lockfile.Callback {
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
	case s.Credential != nil && (u.Scheme != base.Scheme || u.Host != base.Host):
		return errors.New("has an endpoint on another server, which the credential is not for")
	}
	return nil
}

// The kinds of changes of a tool.
const (
	ChangeAccepted  = "accepted" // for the first time
	ChangeUnchanged = "unchanged"
	ChangeChanged   = "changed"

	changeForgotten = "forgotten" // see Proposal.Forgotten
)

// Change is the change of one tool by accepting it.
type Change struct {
	Word, Name, Version string // Name is the one in the registry
}

// Changes returns the change of each accepted tool.
func (p *Proposal) Changes() ([]Change, error) {
	before := map[versionKey]string{}
	for _, pin := range p.loaded.Pins[p.server.Name] {
		sum, err := pin.ContentDigest()
		if err != nil {
			return nil, err
		}
		before[versionKey{pin.Name, pin.Version}] = sum
	}
	var changes []Change
	for _, pin := range p.Accepted.Pins {
		sum, err := pin.ContentDigest()
		if err != nil {
			return nil, err
		}
		change := ChangeAccepted
		if old, known := before[versionKey{pin.Name, pin.Version}]; known {
			change = ChangeUnchanged
			if old != sum {
				change = ChangeChanged
			}
		}
		changes = append(changes, Change{change, p.server.ToolName(pin.Name), pin.Version})
	}
	return changes, nil
}

// Check returns why the configuration would not load with the proposal.
func (p *Proposal) Check() error { return p.loaded.CheckLockfile(p.server.Name, p.pins()) }

// Write makes what is proposed what was accepted.
func (p *Proposal) Write() error {
	return lockfile.Write(p.loaded.DataDir, p.server.Name, p.loaded.Pins[p.server.Name], p.pins())
}

func (p *Proposal) pins() []lockfile.Pin { return slices.Concat(p.kept, p.Accepted.Pins) }

// Digest is the digest of the accepted tools; see DigestOf.
func (p *Proposal) Digest() (string, error) { return DigestOf(p.Accepted.Pins) }

// DigestOf is SHA-256, in hex, over accepted tools, whatever their order. It covers what
// calls are judged by, too, so that a file in which that was changed has another.
func DigestOf(pins []lockfile.Pin) (string, error) {
	var digests []string
	for _, pin := range pins {
		digest, err := pin.ContentDigest()
		if err != nil {
			return "", err
		}
		digests = append(digests, digest)
	}
	slices.Sort(digests)
	sum := sha256.Sum256([]byte(strings.Join(digests, "\n")))
	return hex.EncodeToString(sum[:]), nil
}
