package messages

import (
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	wire "github.com/callgate/callgate/upstream/messages"
)

// turn is one reply of the model, judged.
type turn struct {
	reply    *wire.Reply
	decision *gateway.Decision
	text     []byte // of all text blocks
	texts    int    // reports before those of calls: 1 if the text was judged, else 0
	stopped  bool   // it has no text and no call, and ended for a reason of its own
	calls    []*wire.ToolUse
	sent     bool           // the application was sent some of the text
	relay    *relay         // of a stream
	denied   *refusal.Error // for what is beside the text: a summary, or what hooks deny; nil: it passed
}

// newTurn divides a reply into what is judged.
func newTurn(reply *wire.Reply) *turn {
	t := &turn{reply: reply, calls: reply.Calls()}
	others, thought := false, false // blocks of the provider's own doing, and of thinking
	for i := range reply.Blocks {
		switch reply.Blocks[i].Kind {
		case wire.Text:
			t.text = append(t.text, reply.Blocks[i].Text...)
		case wire.Thinking:
			thought = true
		case wire.Call:
		case wire.Compaction:
			if others = true; t.denied == nil {
				t.denied = refuseCompaction(&reply.Blocks[i])
			}
		default:
			others = true
		}
	}
	switch {
	case !isBlank(t.text):
		t.texts = 1
	case len(t.calls) == 0:
		// A reply of nothing is judged as such. One that ended for a reason of its own, as
		// pause_turn and refusal, or that holds what the model thought or the provider did, needs
		// no text (AM-36).
		t.texts = 1
		t.stopped = t.reply.StopReason != "end_turn" && t.reply.StopReason != reasonCalls
		if others || t.stopped || thought && t.reply.StopReason != reasonCalls {
			t.text = []byte(turns.NoText)
		}
	}
	return t
}

// refuseCompaction is the refusal of a summary that a reader could take for a call: it comes back as
// the beginning of the conversation. nil: it is none.
func refuseCompaction(b *wire.Block) *refusal.Error {
	if rawjson.HoldsNoCall(b.Raw) {
		return nil
	}
	return refusal.New(refusal.ForeignCallSyntax, "The summary of the conversation has the syntax of a call in it. Summarize without it.")
}

// reasonCalls is the stop_reason of a reply whose calls are complete.
const reasonCalls = "tool_use"

// cut reports whether the reply may have ended in the middle.
func (t *turn) cut() bool {
	return slices.Contains([]string{"max_tokens", "model_context_window_exceeded", "refusal"}, t.reply.StopReason)
}

// isBlank reports whether a text is nothing but JSON's white space.
func isBlank(text []byte) bool { return len(strings.Trim(string(text), " \t\r\n")) == 0 }

// cutOff refuses the calls of a reply that did not end to have them executed (AM-35, AM-37).
func (t *turn) cutOff() *refusal.Error {
	if len(t.calls) == 0 || t.reply.StopReason == reasonCalls {
		return nil
	}
	return refusal.New(refusal.TruncatedOutput, fmt.Sprintf("The answer ended with the stop_reason %s, so its calls are not executed: only the stop_reason tool_use says that they are complete.", t.reply.StopReason))
}
