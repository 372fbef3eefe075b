package turns

import (
	"context"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/refusal"
)

// maxAsks bounds the rounds of answers to the provider in a row: calls at the provider are not counted by the bounds of
// turns.
const maxAsks = 16

// asked is what a run has answered the provider.
type asked struct {
	rounds int
	bytes  int   // that were added to the conversation
	tokens int64 // that the replies have taken; the next turn counts them
}

// answerAsks judges the calls that the provider asks to be allowed, each by itself, and answers. It reports whether the
// model is to be asked again: not where the provider asks for nothing, or the text beside it is refused.
func (x *exchange) answerAsks(ctx context.Context, reply *Reply, denied *refusal.Error) (again bool, err error) {
	a := reply.Answers[0]
	var asks []*Part
	for _, p := range a.Parts {
		if p.Kind == Ask {
			asks = append(asks, p)
		}
	}
	if asks == nil {
		return false, nil
	}
	if len(a.calls()) > 0 {
		return false, refusal.New(refusal.MixedOutput, "The answer asks for a call at the provider and for something else at once.")
	}
	a.blank = IsBlank(a.text(Text)) // beside what is asked, no text is none
	switch {
	case !a.blank || len(a.text(Refusal)) > 0:
		if x.judge(ctx, a, denied); a.refused() {
			return false, nil // the turn goes back to the model
		}
		end := x.options.Executor.HandOver
		if x.Mode == gateway.ModeCall {
			end = x.options.Executor.Execute // of text alone
		}
		for _, o := range end(ctx, a.decision) {
			if o.Refusal != nil {
				a.decision.Release()
				return false, o.Refusal
			}
		}
	case denied != nil:
		return false, denied
	}
	if x.asked.rounds++; x.asked.rounds > maxAsks {
		return false, refusal.New(refusal.BoundReached, "The model asked too often for calls at the provider.")
	}
	told := make([]Told, len(asks))
	for i, p := range asks {
		if told[i], err = x.answerAsk(ctx, p, a.End == Cut || a.End == Open); err != nil {
			return false, err
		}
	}
	if x.streams {
		x.flush(&a.relay)
		x.events.Buffer = x.writer.Rest(x.events.Buffer, a, x.show(a), false, false)
	}
	x.asked.bytes += x.dialogue.Append(a, told)
	x.asked.tokens = SaturatingAdd(x.asked.tokens, reply.Usage.Tokens)
	if x.asked.bytes > x.MaxAdded {
		return false, refusal.New(refusal.BoundReached, "The calls at the provider are longer than a conversation may be.")
	}
	return true, nil
}

// answerAsk judges one call at the provider. Tools that the request brings do not count: a definition of the application
// would stand for a call that the application does not run.
func (x *exchange) answerAsk(ctx context.Context, p *Part, cut bool) (Told, error) {
	input := gateway.Input{Native: x.nativeCall(p), Truncated: cut}
	d := x.registered.WithConstraints(gateway.Constraints{}).Judge(ctx, gateway.ModeEnforce, input)
	outcomes := x.options.Executor.HandOver(ctx, d)
	told := Told{Call: p, Arguments: input.Native.Arguments}
	refused := d.Refusal()
	for i := range outcomes {
		if refused == nil && outcomes[i].Refusal != nil {
			refused = outcomes[i].Refusal
		}
	}
	switch {
	case refused == nil:
	case refused.Status() >= 500:
		return told, refused
	default:
		told.Failed, told.Result = true, Feedback(outcomes[0], d.Reports[0].Tool)
	}
	return told, nil
}

// RefuseDone records a call that the provider has made and that nobody had allowed, and returns the failure of the run. The
// call cannot be taken back, and another answer would not undo it.
func (r *Run) RefuseDone(ctx context.Context, registered *gateway.Admission, call *gateway.NativeCall, refused *refusal.Error) *Failure {
	input := gateway.Input{TextOnly: true, Completion: []byte(NoText)}
	if call != nil {
		input = gateway.Input{Native: call}
	}
	registered.WithConstraints(gateway.Constraints{RefuseAll: refused}).Judge(ctx, gateway.ModeEnforce, input).Release()
	return &Failure{Refused: refused}
}

// askCaller takes what the caller can be asked of the calls of the last turn, and reports whether the answer asks it. Other
// calls of the turn are left out; the model may make them again.
func (x *exchange) askCaller(canAsk func(*Part, *calls.Question) bool) func([]*calls.Question) bool {
	return func(questions []*calls.Question) bool {
		a := x.last.Answers[0]
		for i, p := range a.calls() {
			if q := questions[a.texts+i]; q != nil && canAsk(p, q) {
				if a.questions == nil {
					a.questions = map[*Part]*calls.Question{}
				}
				a.questions[p] = q
			}
		}
		return len(a.questions) > 0
	}
}
