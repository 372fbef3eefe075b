package turns

import (
	"crypto/rand"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/refusal"
)

// begin begins the record of the run, and so gives it its id, which its calls belong to
// together.
func (r *Run) begin() {
	defer func() {
		if r.together = r.recording.ID(); r.together == "" {
			r.together = "run_" + rand.Text()
		}
		r.Admission = r.Admission.Together(r.together)
	}()
	if r.options.Runs == nil {
		return
	}
	s := r.Admission.Subject()
	r.recording = r.options.Runs.Begin(r.Admission.Principal(), runs.Head{
		Face: string(r.wire), Mode: r.Mode, Model: r.Route.Model, Upstream: r.Route.Upstream,
		Agent: s.Agent, Workspace: s.Workspace, Project: s.Project, RequestID: r.requestID,
	})
}

// recordTurn records a turn that was judged, and returns its number in the record.
func (r *Run) recordTurn(t *Turn, requested time.Time) int {
	if r.recording == nil {
		return -1
	}
	turn := runs.Turn{Repair: r.repairs, Started: requested, Micros: time.Since(requested).Microseconds(), Usage: t.Usage}
	turn.Calls = runs.CallsOf(t.Decisions[0])
	for _, d := range t.Decisions[1:] {
		turn.Calls = append(turn.Calls, runs.CallsOf(d)...)
	}
	return r.recording.Add(turn)
}

// recordOutcomes records what became of the calls of a turn; the outcomes are those of its
// decisions from the n-th call on.
func (r *Run) recordOutcomes(turn, n int, t *Turn, choice int, outcomes []calls.Outcome) {
	for i := range outcomes {
		if t.Decisions[choice].Reports[i].Call == nil {
			continue // a text
		}
		switch o := &outcomes[i]; {
		case o.Pending:
			r.recording.SetOutcome(turn, n+i, runs.Pending, "")
		case o.Refusal != nil:
			r.recording.SetOutcome(turn, n+i, runs.ErrorEnd, o.Refusal.Code)
		case o.Result == nil:
			r.recording.SetOutcome(turn, n+i, runs.HandedOver, "")
		default:
			r.recording.SetOutcome(turn, n+i, runs.Result, "")
		}
	}
}

// recordConfirmed records a call that the caller of the run has answered for, as a turn of its own.
func (r *Run) recordConfirmed(o *calls.Outcome, tool string, started time.Time) {
	if r.recording == nil {
		return
	}
	c := runs.Call{CallID: o.CallID, Tool: tool, Verdict: gateway.VerdictCall}
	switch refused := o.Refusal; {
	case o.Pending:
		c.Outcome = runs.Pending
	case refused == nil:
		c.Outcome = runs.Result
	case isToolOutcome(refused):
		c.Outcome, c.OutcomeCode = runs.ErrorEnd, refused.Code
	default:
		c.Verdict, c.Error = gateway.VerdictRefused, runs.ErrorOf(refused)
	}
	r.recording.Add(runs.Turn{Started: started, Micros: time.Since(started).Microseconds(), Calls: []runs.Call{c}})
}

// end ends the record.
func (r *Run) end(failed *Failure) {
	switch {
	case failed == nil:
		r.recording.End(nil)
	case failed.Upstream != nil:
		r.recording.End(&runs.Error{Code: refusal.UpstreamUnavailable, Message: failed.Upstream.Error()})
	default:
		r.recording.End(runs.ErrorOf(failed.Refused))
	}
}
