package lab

import (
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/history"
)

// maxThreads bounds the threads, and the calls that run, of which a replay knows the past, and maxOpen the calls of a thread that
// may be of the same answer as a later one.
const (
	maxThreads = 100_000
	maxOpen    = 256
)

// threads are the pasts of threads and callers as they were at each record of a log: of what its calls add by the conditions of
// one configuration. What the log cannot give is not known of them.
type threads struct {
	kernel  *gateway.Kernel
	log     Log
	lost    time.Time             // records before it are missing
	threads map[string]*thread    // by ledger
	callers map[scope]*thread     // of which no answers are kept
	unnamed map[string]time.Time  // by principal: when a call was counted last of which the log does not name the thread
	running map[string]callInPast // by id
}

// scope is where a caller acts.
type scope struct{ principal, workspace, project string }

// thread is what a thread, or a caller, has done. A nil state: nothing that is known of.
type thread struct {
	state *history.State
	open  []openCall // of the thread, the last
}

// openCall is a call that has not ended yet, with its labels, which are mixed where its conversation may have brought some. The calls of
// one answer of a model are all decided before one of them runs: those of its trace that are open are of the same answer.
type openCall struct {
	id, trace string
	labels    []string
	mixed     bool
}

// callInPast is a call that was let through.
type callInPast struct {
	ledger       string
	adds, result history.Adds
	known        bool // what they are
	counted      bool // by a turn of the log
}

func newThreads(k *gateway.Kernel, log Log) *threads {
	t := &threads{kernel: k, log: log}
	t.lose(time.Time{})
	return t
}

// lose forgets all. What was before a time is not known; the zero time: there was nothing.
func (t *threads) lose(at time.Time) {
	t.lost = at
	t.threads, t.callers, t.unnamed, t.running = map[string]*thread{}, map[scope]*thread{}, map[string]time.Time{}, map[string]callInPast{}
}

// at is when what a record says was added.
func at(r *audit.Record) time.Time {
	if adds, err := history.ReadAdds(r.Adds); err == nil && !adds.At.IsZero() {
		return adds.At
	}
	return r.Time
}

func (t *threads) principal(r *audit.Record) string {
	if t.log.Anonymous {
		return ""
	}
	return r.Principal
}

// of returns the thread and the caller of a record. A thread that is not named is one of which nothing is known.
func (t *threads) of(r *audit.Record) (in, caller *thread) {
	if len(t.threads)+len(t.callers) >= maxThreads || len(t.running) >= maxThreads {
		t.lose(r.Time)
	}
	by := scope{t.principal(r), r.Workspace, r.Project}
	if caller = t.callers[by]; caller == nil {
		caller = &thread{}
		t.callers[by] = caller
	}
	if r.Ledger == "" {
		return &thread{}, caller
	}
	if in = t.threads[r.Ledger]; in == nil {
		in = &thread{}
		t.threads[r.Ledger] = in
	}
	return in, caller
}

// kept is a state as it is at a time.
func (t *threads) kept(s *history.State, now time.Time) *history.State {
	if t.log.Idle > 0 {
		s = s.Aged(now, t.log.Idle, t.log.KeepLabels)
	}
	switch {
	case s != nil:
		return s
	case t.lost.IsZero():
		return history.Begin(now)
	}
	return history.Unknown(t.lost)
}

// forget is a state of which nothing is known that was added up to a time; nil stays so.
func forget(s *history.State, at time.Time) *history.State {
	if s == nil {
		return nil
	}
	next := *s
	if next.Partial = true; next.Began.Before(at) {
		next.Began = at
	}
	return &next
}

// past is what was done before the call of a decision, as its conditions see it: without the labels of other calls of its
// answer, and with those that the conversation has brought.
func (t *threads) past(r *audit.Record, arguments map[string]any) (history.Past, error) {
	in, caller := t.of(r)
	past := history.Past{Now: at(r)}
	if follows(r.CallerTurn, caller.state, past.Now) {
		past.Caller = t.kept(caller.state, past.Now)
	}
	if r.Ledger == "" || !follows(r.Turn, in.state, past.Now) {
		return past, nil
	}
	past.Thread = t.kept(in.state, past.Now)
	seen, told := sawLabels(r)
	for _, other := range in.open {
		if other.trace == r.TraceID && len(other.labels) > 0 {
			// whatever clock r was written by
			past.Thread = past.Thread.Undo(history.Adds{At: past.Thread.Last, Labels: without(other.labels, seen)}, false)
			if other.mixed && !told {
				past.Thread = forget(past.Thread, past.Now)
			}
		}
	}
	own, _, _, err := t.adds(r, arguments)
	if err != nil {
		return past, err
	}
	if brought := without(labelsOf(r), own.Labels); r.Verdict != audit.ToolCall {
		past.Thread = past.Thread.Apply(history.Adds{At: past.Now, Labels: labelsOf(r)}, false)
	} else if len(brought) > 0 {
		// They are of the conversation, or its hooks and its tool gave them then: what its conditions saw can tell.
		if told {
			brought = without(brought, without(brought, seen))
		}
		if past.Thread = past.Thread.Apply(history.Adds{At: past.Now, Labels: brought}, false); !told {
			past.Thread = forget(past.Thread, past.Now)
		}
	}
	if unnamed := t.unnamed[t.principal(r)]; !unnamed.IsZero() {
		past.Thread = forget(past.Thread, unnamed)
	}
	return past, nil
}

// follows reports whether a state is the one before a turn of a time: gateways write what they do at the same time down in
// another order.
func follows(turn uint64, s *history.State, at time.Time) bool {
	begins := uint64(max(1, at.UnixMicro()))
	if turn == 0 || turn == begins {
		return true
	}
	return s != nil && s.Turn > 0 && (turn == s.Turn+1 || turn == s.Turn+2 && s.Turn+1 == begins)
}

// labelsOf are the labels that a record says were added.
func labelsOf(r *audit.Record) []string {
	logged, _ := history.ReadAdds(r.Adds) // what cannot be read is nothing that is known
	return logged.Labels
}

// sawLabels are the labels that conditions of a call have seen. ok is false where none of them asked.
func sawLabels(r *audit.Record) (names []string, ok bool) {
	for _, saw := range r.Saw {
		if names, ok := strings.CutPrefix(saw, "thread.labels="); ok {
			return strings.Split(names, ","), names != "?"
		}
	}
	return nil, false
}

// adds are what the call of a decision adds by the configuration.
func (t *threads) adds(r *audit.Record, arguments map[string]any) (call, result history.Adds, known bool, err error) {
	return t.kernel.Adds(&gateway.Step{Tool: r.Tool, Arguments: arguments, At: at(r), Name: r.CallID})
}

// add adds what a record says of a call, with its arguments; nil: nobody has them.
func (t *threads) add(r *audit.Record, arguments map[string]any) error {
	switch r.Event {
	case audit.Decision:
		return t.decided(r, arguments)
	case audit.Ending:
		return t.ended(r)
	}
	return nil
}

func (t *threads) decided(r *audit.Record, arguments map[string]any) error {
	in, caller := t.of(r)
	if r.Verdict != audit.ToolCall {
		if labels := labelsOf(r); len(labels) > 0 { // which the conversation has brought
			in.state = t.apply(in.state, r.Turn, history.Adds{At: at(r), Labels: labels, Call: r.CallID}, false, false)
		}
		return nil
	}
	call, result, known, err := t.adds(r, arguments)
	if err != nil {
		return err
	}
	own := call.Labels
	call.Labels = append(own[:len(own):len(own)], without(labelsOf(r), own)...)
	if (r.Ledger == "" || r.Turn == 0 && !t.lost.IsZero()) && (call.Changes(false) || result.Changes(false) || !known) {
		t.unnamed[t.principal(r)] = call.At
	}
	if r.Ledger != "" {
		in.state = t.apply(in.state, r.Turn, call, false, false)
		if len(in.open) == maxOpen {
			in.open = slices.Delete(in.open, 0, 1)
		}
		in.open = append(in.open, openCall{r.CallID, r.TraceID, call.Labels, len(call.Labels) > len(own)})
	}
	caller.state = t.apply(caller.state, r.CallerTurn, call, false, true)
	if !known {
		in.state, caller.state = forget(in.state, call.At), forget(caller.state, call.At)
	}
	t.running[r.CallID] = callInPast{ledger: r.Ledger, adds: call, result: result, known: known, counted: r.Turn > 0 || r.CallerTurn > 0}
	return nil
}

// ended adds the result of a call, or takes away what one has added that was not run.
func (t *threads) ended(r *audit.Record) error {
	of, there := t.running[r.CallID]
	delete(t.running, r.CallID)
	if there && r.Ledger != of.ledger { // an outcome that adds nothing names no thread
		ended := *r
		ended.Ledger = of.ledger
		r = &ended
	}
	in, caller := t.of(r)
	if !there {
		var err error
		if _, of.result, of.known, err = t.adds(r, nil); err != nil {
			return err
		}
	}
	in.open = slices.DeleteFunc(in.open, func(c openCall) bool { return c.id == r.CallID })
	switch {
	case len(r.Undo) > 0 || r.Verdict == audit.Refused && there && !of.counted:
		if !there {
			of.adds.At = at(r)
		}
		if r.Ledger != "" {
			in.state = t.apply(in.state, r.Turn, of.adds, true, false)
		}
		caller.state = t.apply(caller.state, r.CallerTurn, of.adds, true, true)
	case r.Verdict != audit.Refused && (r.Outcome == audit.Result || r.Outcome == audit.HandedOver):
		of.result.At, of.result.Labels = at(r), labelsOf(r) // which hooks gave to what its tool said
		if r.Ledger != "" {
			in.state = t.apply(in.state, r.Turn, of.result, false, false)
		}
	case r.Turn > 0: // a failure, to which hooks gave labels
		in.state = t.apply(in.state, r.Turn, history.Adds{At: at(r), Labels: labelsOf(r), Call: r.CallID}, false, false)
	}
	if !of.known {
		in.state, caller.state = forget(in.state, r.Time), forget(caller.state, r.Time)
	}
	return nil
}

// apply applies what a turn has added or taken away; turn 0: none of the log, where the configuration of that time did
// not count it.
func (t *threads) apply(s *history.State, turn uint64, adds history.Adds, undo, caller bool) *history.State {
	if t.log.Idle > 0 {
		s = s.Aged(adds.At, t.log.Idle, t.log.KeepLabels)
	}
	switch {
	case turn > 0 && s == nil: // nothing is known of the turns before, unless it begins by this one
		return s.Fold(turn, adds, undo, caller).Settle(false, adds.At)
	case turn > 0:
		return s.Fold(turn, adds, undo, caller)
	case s == nil:
		if !adds.Changes(caller) {
			return nil
		}
		s = t.kept(nil, adds.At)
	}
	turn = s.Turn
	if undo {
		s = s.Undo(adds, caller)
	} else {
		s = s.Apply(adds, caller)
	}
	next := *s
	next.Turn = turn
	return &next
}
