package turns

import (
	"context"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/refusal"
)

// Source is where the loop has its turns from. The package comment states its contract.
type Source interface {
	// RequestTurn requests the next turn from the model, and judges it. ctx is the
	// application's request; modelCtx may end before it, with the run.
	RequestTurn(modelCtx, ctx context.Context) (*Turn, error)
	// Append adds the turn that RequestTurn returned last to the conversation, with the
	// outcomes of the inputs of its first decision, and returns how many bytes it added.
	Append(outcomes []calls.Outcome) (added int)
	// Input is one input of the first decision of that turn, by its index, as the model
	// wrote it: arguments or text. Equal inputs that are refused equally end a run.
	Input(i int) []byte
}

// Turn is one answer of the model, judged.
type Turn struct {
	// Decisions has one decision for each choice; there is at least one, with at least one
	// report. More than one is for the mode ModeEnforce, and for turns that are Final.
	Decisions []*gateway.Decision
	// Final says that the turn cannot be repaired: the application was sent some of it, or
	// has asked for several choices, or another answer would not help.
	Final bool
	// Shown says that it could be repaired if the application had not been sent some of its text.
	Shown bool
	// Tokens is how many tokens the turn has taken; 0 where the provider does not say.
	Tokens int64
	// Usage is the provider's object of them, in which no call can be found; nil: none.
	Usage []byte
}

// refusal is the first refusal of the turn, or nil.
func (t *Turn) refusal() *refusal.Error {
	for _, d := range t.Decisions {
		if refused := d.Refusal(); refused != nil {
			return refused
		}
	}
	return nil
}

// hasCalls reports whether the turn has calls that passed.
func (t *Turn) hasCalls() bool {
	for _, d := range t.Decisions {
		if len(Passed(d)) > 0 {
			return true
		}
	}
	return false
}

// release gives back what the decisions hold.
func (t *Turn) release() {
	for _, d := range t.Decisions {
		d.Release()
	}
}

// Passed are the reports of a decision from the first call that passed. Calls come behind the
// texts of a decision, so these are its calls. Nil: nothing was judged.
func Passed(d *gateway.Decision) []gateway.Report {
	if d == nil {
		return nil
	}
	for i := range d.Reports {
		if d.Reports[i].Verdict == gateway.VerdictCall {
			return d.Reports[i:]
		}
	}
	return nil
}
