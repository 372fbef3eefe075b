package search

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/audit/internal/logfile"
	"github.com/callgate/callgate/internal/duration"
)

// Query selects records. An empty member selects all. A value that ends in "*" selects those
// that begin as it does, except in Call, Verdict and Event.
type Query struct {
	Agent, Tool, Code  string
	Principal          string
	Workspace, Project string
	Verdict            audit.Verdict
	Event              audit.Event
	// Call selects what a call did: its records, and the decisions that use its approval.
	Call string
	// AnyOf selects the records of any of these calls.
	AnyOf map[string]bool
	// Approvals selects the records that are about approvals: the events, and the decisions
	// that use some.
	Approvals bool
	// Since and Until bound the time of a record: not before Since, before Until.
	Since, Until time.Time
}

// ParseTime reads a time as RFC 3339, or as an age, such as 90m or 2d.
func ParseTime(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	age, ok := duration.Read(text)
	if !ok || age < 0 {
		return time.Time{}, fmt.Errorf("%q is no time: expected RFC 3339, as 2026-11-22T14:00:00Z, or an age, as 1h or 2d", text)
	}
	return now.Add(-age), nil
}

// filter is a Query made ready.
type filter struct {
	Query
	// needles are bytes that every match has, the rarest first.
	needles [][]byte
	// anyOf are the calls of AnyOf as lines have them; none where all may match.
	anyOf map[string]bool
}

func (q Query) filter() *filter {
	f := &filter{Query: q}
	if q.Call != "" {
		f.needles = append(f.needles, []byte(`"`+audit.Escaped(q.Call)+`"`))
	}
	if len(q.AnyOf) > 0 {
		f.anyOf = make(map[string]bool, len(q.AnyOf))
		for call := range q.AnyOf {
			f.anyOf[audit.Escaped(call)] = true
		}
	}
	if q.Approvals {
		f.needles = append(f.needles, []byte(`,"approval":["`))
	}
	for _, m := range []struct{ name, value string }{
		{"tool", q.Tool}, {"agent", q.Agent}, {"principal", q.Principal}, {"code", q.Code}, {"verdict", string(q.Verdict)},
		{"project", q.Project}, {"workspace", q.Workspace}, {"event", string(q.Event)},
	} {
		if m.value == "" || m.value == "*" {
			continue
		}
		needle := `,"` + m.name + `":"` + audit.Escaped(m.value)
		if prefix, ok := strings.CutSuffix(needle, "*"); ok {
			needle = prefix
		} else {
			needle += `"`
		}
		f.needles = append(f.needles, []byte(needle))
	}
	return f
}

// mayMatch reports whether a line has all that a match must have. A line whose time cannot be
// read may match.
func (f *filter) mayMatch(line []byte) bool {
	for _, needle := range f.needles {
		if !bytes.Contains(line, needle) {
			return false
		}
	}
	if len(f.anyOf) > 0 && !f.isOfAny(line) {
		return false
	}
	if f.Since.IsZero() && f.Until.IsZero() {
		return true
	}
	at, ok := logfile.TimeOf(line)
	return !ok || f.within(at)
}

// isOfAny reports whether a line may be of one of the calls.
func (f *filter) isOfAny(line []byte) bool {
	for {
		_, rest, found := bytes.Cut(line, []byte(`,"call_id":"`))
		if !found {
			return false
		}
		end := 0
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		if f.anyOf[string(rest[:min(end, len(rest))])] {
			return true
		}
		line = rest
	}
}

func (f *filter) within(at time.Time) bool {
	return (f.Since.IsZero() || !at.Before(f.Since)) && (f.Until.IsZero() || at.Before(f.Until))
}

func (f *filter) matches(r *audit.Record) bool {
	return isLike(r.Tool, f.Tool) && isLike(r.Agent, f.Agent) && isLike(r.Principal, f.Principal) && isLike(string(r.Code), f.Code) &&
		isLike(r.Workspace, f.Workspace) && isLike(r.Project, f.Project) &&
		(f.Verdict == "" || r.Verdict == f.Verdict) && (f.Event == "" || r.Event == f.Event) &&
		(!f.Approvals || len(r.Approvals) > 0) &&
		(len(f.AnyOf) == 0 || f.AnyOf[r.CallID]) &&
		(f.Call == "" || r.CallID == f.Call || slices.Contains(r.Approvals, f.Call)) && f.within(r.Time)
}

// isLike reports whether a value is the wanted one, or begins as it where it ends in "*".
func isLike(value, wanted string) bool {
	if prefix, ok := strings.CutSuffix(wanted, "*"); ok {
		return strings.HasPrefix(value, prefix)
	}
	return wanted == "" || value == wanted
}
