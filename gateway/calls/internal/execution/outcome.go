package execution

import (
	"net/http"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// Outcome is the outcome of one input.
type Outcome struct {
	CallID string
	// Result is the tool_result that the model reads, as one line of JSON; nil
	// for a text, for a call that was handed over, and while the call is pending.
	Result []byte
	// Value is the same result taken apart, for a face that writes it in another form.
	Value wrapper.ToolResult
	// Text is the completion, where it is text.
	Text []byte
	// Refusal is the reason for a missing output; it is nil if there is an output, and for
	// a stored answer.
	Refusal *refusal.Error
	Status  int // HTTP
	// Pending means that the tool will answer later, through Complete, or that the outcome
	// is not certain yet: Lookup returns it by the call's id.
	Pending bool

	// Replayed says that this is the answer of a call that its key has started before.
	Replayed bool
	// Wrapped means that the tool's own output is the member value of the result.
	Wrapped bool
	// Challenges are the actions that a person must take before such a call can pass. They
	// are not for the model.
	Challenges []tool.Challenge
	// InputRequest holds the questions of the tool, if the caller can answer them all; its
	// State is not shown. The caller repeats the call with its answers and RequestState:
	// the id of the call that was asked.
	InputRequest *tool.InputRequired
	RequestState string
	// ApprovalRequest is the approval that people were asked for before the call may run: the refusal is
	// approval_required, and CallID is that of the call that asked.
	ApprovalRequest *gateway.ApprovalRequest

	// deadline is until when a caller that can waits for the tool; zero: it does not.
	deadline time.Time
}

// Waits reports whether a caller that can is to wait for the end of the call, by AwaitEnd.
func (o *Outcome) Waits() bool { return !o.deadline.IsZero() }

// SetResult sets what the model reads.
func (o *Outcome) SetResult(result wrapper.ToolResult) { o.Result, o.Value = result.Line, result }

// RefusedResult is the result of a refused call for the model.
func RefusedResult(r gateway.Report, refused *refusal.Error) wrapper.ToolResult {
	var name *string
	if r.HasTool {
		name = &r.Tool
	}
	result, err := wrapper.Refusal(name, refused)
	if err != nil {
		return wrapper.ToolResult{} // a refusal always encodes: it holds text and numbers
	}
	return result
}

// httpStatus is the HTTP status of an outcome.
func httpStatus(refused *refusal.Error) int {
	if refused == nil {
		return http.StatusOK
	}
	return refused.Status()
}

// Outcomes returns the outcome of each input: end gives those of the calls, unless first
// refuses them all.
func Outcomes(d *gateway.Decision, first *refusal.Error, end func(i int) Outcome) []Outcome {
	return outcomesIn(nil, d, first, end)
}

// outcomesIn is Outcomes in the memory of a list.
func outcomesIn(outcomes []Outcome, d *gateway.Decision, first *refusal.Error, end func(i int) Outcome) []Outcome {
	for i := range d.Reports {
		r := &d.Reports[i]
		o := Outcome{CallID: r.CallID}
		switch {
		case first != nil:
			o.Refusal = r.Refusal
			if o.Refusal == nil {
				o.Refusal = first
			}
			o.Status = httpStatus(o.Refusal)
			o.SetResult(RefusedResult(*r, o.Refusal))
			if o.ApprovalRequest = r.ApprovalRequest; o.ApprovalRequest != nil {
				o.CallID = o.ApprovalRequest.ID
			}
			if again := r.Unanswered; again != nil {
				o.addInputRequest(again.Questions, again.Dialogue.RequestState, again.Dialogue)
			}
		case r.Verdict == gateway.VerdictText:
			o.Text, o.Status = r.Text, http.StatusOK
		default:
			o = end(i)
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

// addInputRequest adds the questions to the caller to an outcome, and the id of the call
// that asks.
func (o *Outcome) addInputRequest(questions *tool.InputRequired, by string, d *elicit.Dialogue) {
	if d.CanAnswer(questions) {
		o.InputRequest, o.RequestState = &tool.InputRequired{Questions: questions.Questions}, by
	}
}

// applyMetadata adds the metadata for the caller to an outcome. It adds questions only if
// the caller can answer them.
func (o *Outcome) applyMetadata(m stored.Metadata, d *elicit.Dialogue) {
	o.Wrapped, o.Challenges = m.Wrapped, m.Challenges
	o.addInputRequest(m.Questions, o.CallID, d)
}

// outcomeOf is the outcome of a stored call that has ended.
func outcomeOf(call *stored.Call, d *elicit.Dialogue) Outcome {
	result := call.Result()
	o := Outcome{CallID: call.ID, Status: call.Answer.Status, Refusal: result.Refusal}
	o.SetResult(result)
	o.applyMetadata(call.Meta, d)
	return o
}
