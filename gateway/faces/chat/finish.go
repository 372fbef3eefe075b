package chat

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/ascii"
)

// finish is how an answer of a stream ends. An answer may go on after its finish_reason, and must then finish
// again with the same one: some provider streams several turns as one choice. Of several in a row, the first is kept of
// those that say most: of a filter, then that the answer was cut, then that it is complete.
type finish struct {
	reason   string
	finished bool
	called   bool // it has a call
}

// observe takes a piece of the answer.
func (f *finish) observe(p *piece) error {
	f.called = f.called || p.callsAny() || p.other != nil && p.other.callsAny()
	if f.finished && p.hasOutput() {
		f.finished = false
	}
	switch {
	case p.reason == "":
		return nil
	case f.reason == "":
		f.reason = p.reason
	case f.reason != p.reason && !f.finished:
		return errors.New("a choice that finished for two reasons")
	case endOf(f.reason) != turns.Cut && endOf(p.reason) == turns.Cut, !isFilter(f.reason) && isFilter(p.reason):
		f.reason = p.reason
	}
	f.finished = true
	return nil
}

// hasOutput reports whether a piece adds content that is not blank, a refusal or calls.
func (p *piece) hasOutput() bool {
	return len(bytes.TrimSpace(p.text)) > 0 || len(p.refusal) > 0 || p.callsAny()
}

func (p *piece) callsAny() bool { return len(p.calls) > 0 || p.legacy }

var errUnfinished = errors.New("a choice without a finish_reason") // asked for with each event

// unfinished returns why the stream is not a whole answer, or nil. A stream that says by itself that it has
// ended may lack the finish_reason of a text, as an answer does that is no stream. An answer with
// calls may not lack it, nor one that went on after its finish_reason: its rest may be lost.
func (r *reader) unfinished(saysSo bool) error {
	for _, c := range r.choices {
		if c != nil && !c.finish.finished && (!saysSo || c.finish.called || c.finish.reason != "") {
			return errUnfinished
		}
	}
	if len(r.reply.Answers) == 0 {
		return errors.New("no choice")
	}
	return nil
}

// endOf says why an answer has ended. Providers have many words for why they ended one: length, MAX_TOKENS,
// SAFETY, MALFORMED_FUNCTION_CALL, abort. The calls of an answer that ended for such a reason, or for one that is
// not known, may be cut.
func endOf(reason string) turns.End {
	folded := ascii.Folded(reason)
	switch {
	case reason == "":
		return turns.Open
	case slices.Contains(callEnds, folded):
		return turns.Called
	case slices.Contains(ownEnds, folded):
		return turns.Done
	}
	return turns.Cut
}

// ownEnds are the words for the end of an answer that is complete, and callEnds those for one that ended for its
// calls, see ascii.Folded.
var (
	ownEnds = []string{"stop", "eos", "eostoken", "endturn", "endofturn", "stopsequence", "stoptoken", "stopstring", "complete",
		"completed", "finished"}
	callEnds = []string{"toolcall", "toolcalls", "tooluse", "functioncall", "functioncalls"}
)

// isFilter reports whether a finish_reason says that a filter of the provider has ended the answer, or the model's refusal.
func isFilter(reason string) bool { return slices.Contains(filterEnds, ascii.Folded(reason)) }

var filterEnds = []string{"contentfilter", "contentfiltered", "safety", "recitation", "prohibitedcontent", "blocklist", "spii", "sensitive",
	"guardrailintervened", "refusal"}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// isFinishReason reports whether a text has the form of a finish_reason: one word such as tool_calls, or
// empty; or two, as in "function_call_filter: MALFORMED_FUNCTION_CALL", which Gemini writes.
func isFinishReason(s string) bool {
	const most = 64
	first, second, _ := strings.Cut(s, ": ")
	const letters = alphanumeric + "_-"
	return len(s) <= most && strings.Trim(first, letters) == "" && strings.Trim(second, letters) == ""
}
