package chat

import (
	"context"
	"fmt"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/upstream/chat"
)

// sink takes the pieces of a stream that may be shown. It is for one goroutine.
type sink interface {
	// beginTurn says that what follows is of another turn.
	beginTurn()
	writeText(from completionHead, index int, text, logprobs []byte)
	writeReasoning(from completionHead, index int, x chat.Extra)
	// Pace is called when the pieces of one read of the model were written; ready says that there
	// is more to be read.
	Pace(ready bool)
	// shows reports whether something was shown.
	shows() bool
}

// run is one request: the turns of the model until one is the answer.
type run struct {
	*turns.Run
	request      *request
	conversation conversation
	stream       sink // of a stream; nil where the answer is one body
	// repairsShown says that a turn is repaired also where some of its text was shown.
	repairsShown bool
	held         bool       // what is left of the turn waits for its verdict
	textBuffer   []byte     // of the piece that a stream is at
	last         *turn      // the last turn of the model
	judged       turns.Turn // the same, for the loop
}

// RequestTurn requests the next turn from the model, and judges it.
func (r *run) RequestTurn(modelCtx, ctx context.Context) (*turns.Turn, error) {
	t, err := r.requestTurn(modelCtx, ctx)
	if err != nil {
		return nil, err
	}
	r.last = t
	decisions := r.judged.Decisions[:0]
	for i := range t.choices {
		decisions = append(decisions, t.choices[i].decision)
	}
	r.judged = turns.Turn{Decisions: decisions, Final: t.sent() && !r.repairsShown || r.request.n > 1, Shown: t.sent()}
	r.judged.Tokens, r.judged.Usage = usageOf(t.Usage)
	return &r.judged, nil
}

// Append adds the last turn to the conversation.
func (r *run) Append(outcomes []calls.Outcome) int {
	j := &r.last.choices[0]
	if s, ok := r.stream.(*eventStream); ok && j.decision.Refusal() == nil {
		s.endTurn(r.last, j)
	}
	return r.appendTurn(j, outcomes)
}

// Input is an input of the last turn: of a call its arguments, of a text the content.
func (r *run) Input(i int) []byte {
	j := &r.last.choices[0]
	switch at := i - j.textInputs; {
	case at >= 0:
		return j.Message.ToolCalls[at].Arguments
	case i == 0 && j.text && j.Message.Content != nil:
		return []byte(*j.Message.Content)
	}
	return nil
}

// usageOf is how many tokens a turn has taken, and the provider's object of them: its sums
// alone, if a call could be found in it.
func usageOf(usage *chat.Usage) (tokens int64, raw []byte) {
	if usage == nil {
		return 0, nil
	}
	tokens = max(usage.TotalTokens, turns.SaturatingAdd(usage.PromptTokens, usage.CompletionTokens))
	if !rawjson.HoldsNoCall(usage.Raw) {
		const sums = `{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`
		return tokens, fmt.Appendf(nil, sums, usage.PromptTokens, usage.CompletionTokens, usage.TotalTokens)
	}
	return tokens, usage.Raw
}

// settle charges what a completion has taken. Some providers count what the model thought in the
// total alone. Tokens that were read from a cache are part of the prompt's.
func (r *run) settle(usage *chat.Usage) {
	if usage == nil {
		return
	}
	cached := min(turns.CachedTokens(usage.Raw, "prompt_tokens_details"), usage.PromptTokens)
	output := max(usage.CompletionTokens, usage.TotalTokens-usage.PromptTokens)
	r.Settle(budget.Usage{Input: usage.PromptTokens - cached, CachedInput: cached, Output: output})
}
