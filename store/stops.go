package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Stop says what must not begin, by the word of an operator: all calls that agree with each of its
// members from Principal to Thread that is not empty.
type Stop struct {
	ID        string `json:"id"`
	Principal string `json:"principal,omitempty"`
	Agent     string `json:"agent,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	Project   string `json:"project,omitempty"`
	// Tool is a name, or what names begin with before a last part that is *: "github.*".
	Tool string `json:"tool,omitempty"`
	// Thread is the thread of a call, or one of its ancestors.
	Thread string    `json:"thread,omitempty"`
	Reason string    `json:"reason"`
	By     string    `json:"by"` // the operator; empty where there are no credentials
	Since  time.Time `json:"since"`
	// Until is when it ends, or has ended: resuming sets it. Zero: nobody knows yet.
	Until time.Time `json:"until,omitzero"`
}

// String says for people what a stop covers.
func (s Stop) String() string {
	var parts []string
	for _, p := range [][2]string{{"principal", s.Principal}, {"agent", s.Agent}, {"workspace", s.Workspace}, {"project", s.Project},
		{"tool", s.Tool}, {"thread", s.Thread}} {
		if p[1] != "" {
			parts = append(parts, p[0]+" "+p[1])
		}
	}
	if len(parts) == 0 {
		return "everything"
	}
	return strings.Join(parts, ", ")
}

// StopTarget is what a stop is compared with. What has no tool is a request to a model.
type StopTarget struct {
	Scope
	Agent, Tool, Thread string
	Ancestors           []string
}

// Active reports whether a stop has not ended.
func (s *Stop) Active(now time.Time) bool { return s.Until.IsZero() || now.Before(s.Until) }

// Covers reports whether a stop, while it is active, keeps a target from beginning.
func (s *Stop) Covers(t *StopTarget) bool {
	same := func(stopped, is string) bool { return stopped == "" || stopped == is }
	family, isPattern := strings.CutSuffix(s.Tool, "*")
	return same(s.Principal, t.Principal) && same(s.Agent, t.Agent) && same(s.Workspace, t.Workspace) && same(s.Project, t.Project) &&
		(same(s.Tool, t.Tool) || isPattern && t.Tool != family && strings.HasPrefix(t.Tool, family)) &&
		(same(s.Thread, t.Thread) || slices.Contains(t.Ancestors, s.Thread))
}

// MaxStops bounds the stops that are kept, MaxActiveStops those that have not ended.
const (
	MaxStops       = 512
	MaxActiveStops = 256
)

// stopRetention is how long a stop is kept after it has ended: a gateway that was down meanwhile, and
// still has it as active, learns the end.
const stopRetention = 30 * 24 * time.Hour

// MergeStops is what two lists of stops say together: each stop of either, with the earlier end. So no
// list takes a stop away that another has, and it does not matter in which order gateways learn of
// stops and ends, or how often. Of those that have ended, the first are left out where there are too many, and all that
// ended long ago; an active one never is.
func MergeStops(a, b []Stop, now time.Time) []Stop {
	merged := slices.Clone(a)
	for _, s := range b {
		switch i := indexOfStop(merged, s.ID); {
		case i < 0:
			merged = append(merged, s)
		case merged[i].endsAfter(&s):
			merged[i].Until = s.Until
		}
	}
	merged = slices.DeleteFunc(merged, func(s Stop) bool { return !s.Active(now.Add(-stopRetention)) })
	if n := len(merged) - MaxStops; n > 0 {
		slices.SortFunc(merged, func(a, b Stop) int { return a.end().Compare(b.end()) })
		for n > 0 && merged[n-1].Active(now) {
			n--
		}
		merged = slices.Delete(merged, 0, n)
	}
	slices.SortFunc(merged, func(a, b Stop) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return merged
}

func indexOfStop(list []Stop, id string) int {
	return slices.IndexFunc(list, func(s Stop) bool { return s.ID == id })
}

// endsAfter reports whether another entry of the same stop has an earlier end.
func (s *Stop) endsAfter(other *Stop) bool {
	return !other.Until.IsZero() && (s.Until.IsZero() || other.Until.Before(s.Until))
}

// farFuture is behind the end of every stop.
var farFuture = time.Unix(1<<40, 0)

func (s *Stop) end() time.Time {
	if s.Until.IsZero() {
		return farFuture
	}
	return s.Until
}

// StopsAdd reports whether a list of stops says more than another: a stop that it lacks, or an earlier end.
func StopsAdd(list, to []Stop) bool {
	return slices.ContainsFunc(list, func(s Stop) bool {
		i := indexOfStop(to, s.ID)
		return i < 0 || to[i].endsAfter(&s)
	})
}

// Stops are the stops that gateways share, in one record.
type Stops struct{ List []Stop }

// stopsID is the name of that record.
const stopsID = "all"

// ShareStops adds what a gateway knows of stops to what gateways share, and returns all of it. What the back end
// has lost comes back so, from each gateway that still has it.
func (e *Engine) ShareStops(ctx context.Context, own []Stop) (all []Stop, err error) {
	kept, err := view[Stops](ctx, e, StopsRecord, stopsID)
	if err != nil {
		return nil, err
	}
	if kept == nil {
		kept = &Stops{}
	}
	if all = MergeStops(kept.List, own, e.now()); !StopsAdd(all, kept.List) {
		return all, nil
	}
	err = e.change(ctx, func(s *step) error {
		kept, err := get[Stops](s, StopsRecord, stopsID)
		if err != nil {
			return err
		}
		if kept == nil {
			kept = &Stops{}
		}
		all = MergeStops(kept.List, own, s.now)
		return s.put(StopsRecord, stopsID, &Stops{all})
	})
	return all, err
}

// ConfirmStops says to the other gateways which stops are in force in this process, by its lease.
func (e *Engine) ConfirmStops(ctx context.Context, ids []string) error {
	if was := e.inForce.Swap(&ids); was != nil && slices.Equal(*was, ids) {
		return nil // the lease says so, or will when it is renewed
	}
	return e.change(ctx, func(s *step) error {
		lease, err := get[Lease](s, LeaseRecord, e.process.Node)
		if err != nil || lease == nil || lease.Process != e.process.Name || slices.Equal(lease.Stops, ids) {
			return err
		}
		confirmed := *lease
		e.confirm(&confirmed)
		return s.put(LeaseRecord, e.process.Node, &confirmed)
	})
}

// confirm writes the stops that are in force into a lease.
func (e *Engine) confirm(l *Lease) {
	l.Replica, l.Stops = "", nil
	if ids := e.inForce.Load(); ids != nil && len(*ids) > 0 {
		l.Replica, l.Stops = e.process.Replica, *ids
	}
}

// Leases returns the leases of the processes that live.
func (e *Engine) Leases(ctx context.Context) (live []Lease, err error) {
	err = indexed(ctx, e, LeaseRecord, Index{NodeIndex, ""}, firstRow, lastRow, everyRow, func(l *Lease) bool {
		if !l.over(e.now()) {
			live = append(live, *l)
		}
		return true
	})
	return live, err
}
