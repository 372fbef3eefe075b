package calls

import (
	"net/http"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// Outcome is what became of one input.
type Outcome struct {
	CallID string
	// Result is the tool_result that the model reads, as one line of JSON; nil
	// for a text, for a call that was handed over, and while the call is pending.
	Result []byte
	// Value is the same result taken apart, for a face that writes it in another form.
	Value wrapper.ToolResult
	// Text is the completion, where it is text.
	Text []byte
	// Refusal is why there is no output, where there is none; nil too for an
	// answer that was kept.
	Refusal *refusal.Error
	Status  int // HTTP
	// Pending says that the tool will answer later, through Answer, or that what
	// became of the call is not yet sure: it can be asked for by its id.
	Pending bool

	// Replayed says that this is the answer of a call that its key has started before.
	Replayed bool
	// Wrapped says that the tool's own answer stands in the result as the member
	// value.
	Wrapped bool
	// Challenges are what a person has to do before such a call can pass. They are
	// not for the model.
	Challenges []tool.Challenge
	// InputRequest is what the tool wants to know of the caller before it goes on, where the
	// caller can answer all of it; its State is not shown. RequestState is the state with
	// which the caller sends the call again, beside the answers: the id of the call
	// that was asked.
	InputRequest *tool.InputRequired
	RequestState string

	// deadline is until when a caller that can waits for the tool; zero: it does not.
	deadline time.Time
}

// setResult sets what the model reads.
func (o *Outcome) setResult(result wrapper.ToolResult) { o.Result, o.Value = result.Line, result }

func refusedResult(r gateway.Report, refused *refusal.Error) wrapper.ToolResult {
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

// outcomesOf returns the outcome of each input: end gives those of the calls, unless first
// refuses them all.
func outcomesOf(d *gateway.Decision, first *refusal.Error, end func(i int) Outcome) []Outcome {
	outcomes := make([]Outcome, len(d.Reports))
	for i, r := range d.Reports {
		o := Outcome{CallID: r.CallID}
		switch {
		case first != nil:
			o.Refusal = r.Refusal
			if o.Refusal == nil {
				o.Refusal = first
			}
			o.Status = httpStatus(o.Refusal)
			o.setResult(refusedResult(r, o.Refusal))
			if again := r.Unanswered; again != nil {
				o.addInputRequest(again.Asked, again.Dialogue.RequestState, again.Dialogue)
			}
		case r.Verdict == gateway.VerdictText:
			o.Text, o.Status = r.Text, http.StatusOK
		default:
			o = end(i)
		}
		outcomes[i] = o
	}
	return outcomes
}

// addInputRequest adds to an outcome what its caller is asked, by which call.
func (o *Outcome) addInputRequest(asked *tool.InputRequired, by string, d *elicit.Dialogue) {
	if d.CanAnswer(asked) {
		o.InputRequest, o.RequestState = &tool.InputRequired{Questions: asked.Questions}, by
	}
}
