package turns

import (
	"time"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/refusal"
)

// begin begins the record of the run, and so gives it its id.
func (r *Run) begin() {
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
