package toolservers

import (
	"context"

	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/tool"
)

// Row is one tool of a server.
type Row struct {
	Server  string `json:"server"`
	Tool    string `json:"tool"` // in the registry, once it is accepted
	Version string `json:"version,omitempty"`
	// Digest is that of the server's definition, or of the accepted one if the server has
	// none.
	Digest      string `json:"digest,omitempty"`
	State       string `json:"state"`
	Why         string `json:"why,omitempty"`
	Description string `json:"description,omitempty"`
}

// The states of a tool that is not accepted.
const (
	StateNew        = "new"
	StateNotAllowed = "not allowed"
	StateUnusable   = "unusable"
)

// List asks a server for its tools and returns the state of each. Where the answer cannot
// be read, the accepted tools are unreadable and the error says why.
func List(ctx context.Context, of Discoverer, s lockfile.Server, pins []lockfile.Pin) ([]Row, error) {
	offers, err := of.Discover(ctx, s.Server)
	switch {
	case err == nil:
		return Compare(s, pins, offers), nil
	case !unreadable(err):
		return nil, err
	}
	var all []Row
	for _, p := range pins {
		if s.Allows(p.Name) {
			all = append(all, pinnedRow(s, p, StateUnreadable))
		}
	}
	return all, err
}

// pinnedRow is the row of an accepted tool that its server does not list.
func pinnedRow(s lockfile.Server, p lockfile.Pin, state string) Row {
	return Row{Server: s.Name, Tool: s.ToolName(p.Name), Version: p.Version, Digest: p.Digest, State: state, Description: p.Description}
}

// Compare returns the state of every tool that a server lists or that was accepted.
func Compare(s lockfile.Server, pins []lockfile.Pin, offers []tool.Definition) []Row {
	definitions := statementOf(offers)
	accepted := map[versionKey]lockfile.Pin{}
	var all []Row
	for _, p := range pins {
		accepted[versionKey{p.Name, p.Version}] = p
		if !s.Allows(p.Name) {
			continue // it is listed with its current definition, below
		}
		if definitions.state(p) == StateGone {
			all = append(all, pinnedRow(s, p, StateGone))
		}
	}
	for _, o := range offers {
		r := Row{Server: s.Name, Tool: s.ToolName(o.Name), Version: o.Version, Digest: definitions[versionKey{o.Name, o.Version}],
			State: StateNew, Description: o.Description}
		pin, known := accepted[versionKey{o.Name, o.Version}]
		switch {
		case !s.Allows(o.Name):
			r.State = StateNotAllowed
		case known:
			r.State = definitions.state(pin)
		default:
			if alone := lockfile.Accept(s, []tool.Definition{o}); len(alone.Refused) > 0 {
				r.State, r.Why = StateUnusable, "("+alone.Refused[0].Message+")"
			}
		}
		all = append(all, r)
	}
	return all
}
