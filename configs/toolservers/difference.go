package toolservers

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// StateUnheard is the state of an accepted tool whose server has not listed its tools yet.
const StateUnheard = "unheard"

// The bounds of what is kept and told of definitions that are not accepted.
const (
	maxOfferBytes = 1 << 20 // that are kept of one server's definitions
	maxChanges    = 100     // of one definition
)

// Difference sets an accepted definition beside that of its server.
type Difference struct {
	Server  string `json:"server"`
	Version string `json:"version"`
	State   string `json:"state"` // changed, gone, unreadable or unheard
	// Accepted is the value that calls are judged by, Offered the one that accepting the server's definition would
	// make of it; absent: the server has none, or it could not be accepted, and Why says why.
	Accepted DefinitionShown  `json:"accepted"`
	Offered  *DefinitionShown `json:"offered,omitempty"`
	Why      string           `json:"why,omitempty"`
	// Changes are the places that differ, at most 100; Omitted counts the others. None, though
	// the definition has changed: the difference is in what is left out of an accepted one.
	Changes []ChangedMember `json:"changes"`
	Omitted int             `json:"omitted,omitempty"`
}

// DefinitionShown is the part of a tool that an operator accepts.
type DefinitionShown struct {
	Endpoint     string          `json:"endpoint,omitempty"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
}

// ChangedMember is a place at which two definitions differ.
type ChangedMember struct {
	Path string          `json:"path"` // a JSON Pointer
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"` // absent: it is not there
}

// Differences tells, of each accepted version of a tool that its server defines otherwise, what
// differs. The name is that of the registry.
func (f *Watcher) Differences(name string) []Difference {
	if f == nil {
		return nil
	}
	type pair struct {
		server lockfile.Server
		pin    lockfile.Pin
		state  string
		offer  *tool.Definition
	}
	var pairs []pair
	f.mu.Lock()
	for _, w := range f.servers {
		for _, p := range w.pins {
			if w.config.ToolName(p.Name) != name || !w.config.Allows(p.Name) {
				continue
			}
			if state := w.stateOf(p); state != StateAccepted {
				pairs = append(pairs, pair{w.config, p, state, w.offers[versionKey{p.Name, p.Version}]})
			}
		}
	}
	f.mu.Unlock()
	all := make([]Difference, 0, len(pairs))
	for _, p := range pairs {
		d := Difference{Server: p.server.Name, Version: p.pin.Version, State: p.state, Accepted: acceptedDefinition(p.pin),
			Changes: []ChangedMember{}}
		if p.offer != nil {
			d.compare(p.server, p.pin, *p.offer)
		}
		all = append(all, d)
	}
	return all
}

// stateOf is the state of an accepted tool. The caller holds the watcher's lock.
func (w *watchedServer) stateOf(p lockfile.Pin) string {
	switch {
	case w.unreadable:
		return StateUnreadable
	case w.answered.IsZero():
		return StateUnheard
	}
	return w.statement.state(p)
}

func acceptedDefinition(p lockfile.Pin) DefinitionShown {
	return DefinitionShown{Endpoint: p.Endpoint, Description: p.Description, InputSchema: p.InputSchema, OutputSchema: p.OutputSchema}
}

// compare adds what accepting a definition would change.
func (d *Difference) compare(s lockfile.Server, accepted lockfile.Pin, offer tool.Definition) {
	would := lockfile.Accept(s, []tool.Definition{offer})
	if len(would.Pins) == 0 {
		for _, f := range would.Refused {
			d.Why = strings.TrimSpace(d.Why + " " + f.Message)
		}
		return
	}
	offered := acceptedDefinition(would.Pins[0])
	d.Offered = &offered
	old, errOld := valueOf(acceptedDefinition(accepted))
	now, errNew := valueOf(offered)
	if errOld == nil && errNew == nil {
		d.walk("", old, now)
	}
}

// valueOf is a definition as a JSON value.
func valueOf(d DefinitionShown) (any, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	return parser.ReadValue(text, maxShownDepth)
}

const maxShownDepth = 256 // of a definition and its schemas

// walk adds the places at which two values differ: the deepest members that one of them lacks, or
// that are no longer equal.
func (d *Difference) walk(path string, old, now any) {
	switch before := old.(type) {
	case map[string]any:
		if after, ok := now.(map[string]any); ok {
			names := maps.Clone(before)
			maps.Copy(names, after)
			for _, name := range slices.Sorted(maps.Keys(names)) {
				was, had := before[name]
				is, has := after[name]
				d.member(path+"/"+refusal.EscapePointer(name), was, had, is, has)
			}
			return
		}
	case []any:
		if after, ok := now.([]any); ok && len(before) == len(after) {
			for i := range before {
				d.member(path+"/"+strconv.Itoa(i), before[i], true, after[i], true)
			}
			return
		}
	}
	if !reflect.DeepEqual(old, now) {
		d.add(ChangedMember{Path: path, Old: encoded(old), New: encoded(now)})
	}
}

// member compares a member that one of both may lack.
func (d *Difference) member(path string, was any, had bool, is any, has bool) {
	switch {
	case had && has:
		d.walk(path, was, is)
	case had:
		d.add(ChangedMember{Path: path, Old: encoded(was)})
	default:
		d.add(ChangedMember{Path: path, New: encoded(is)})
	}
}

func (d *Difference) add(c ChangedMember) {
	if len(d.Changes) >= maxChanges {
		d.Omitted++
		return
	}
	d.Changes = append(d.Changes, c)
}

func encoded(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		return nil // it was decoded from JSON
	}
	return text
}

// offersOf returns the definitions of a list that differ from the accepted ones, as far as they
// are to be kept.
func offersOf(found []tool.Definition, listed statement, pins []lockfile.Pin) map[versionKey]*tool.Definition {
	changed := map[versionKey]bool{}
	for _, p := range pins {
		changed[versionKey{p.Name, p.Version}] = listed.state(p) == StateChanged
	}
	kept, size := map[versionKey]*tool.Definition{}, 0
	for i := range found {
		alone := found[i] // not the whole list
		of := versionKey{alone.Name, alone.Version}
		if !changed[of] {
			continue
		}
		if size += len(alone.InputSchema) + len(alone.OutputSchema) + len(alone.Description); size > maxOfferBytes {
			break
		}
		kept[of] = &alone
	}
	return kept
}
