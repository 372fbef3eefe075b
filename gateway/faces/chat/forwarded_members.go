package chat

import (
	"slices"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/strictjson"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/upstream/chat"
	"github.com/callgate/callgate/wrapper"
)

// The members of an answer that are passed on beside text and calls. Members that are not
// listed are dropped. A listed one is passed on if no later reader can find a call in it,
// and not before the text that it belongs to.
var (
	forwardedWords    = []string{"system_fingerprint", "service_tier"} // of an answer; each one word
	forwardedOfAnswer = []string{"citations", "prompt_filter_results"}
	forwardedOfChoice = []string{"content_filter_results"}
	forwardedOfText   = []string{"annotations", "images", "extra_content", "thought_signature"}
	forwardedOfCall   = []string{"extra_content"}
	// reasoningMembers is never read for calls, and passed on as it comes.
	reasoningMembers = []string{"reasoning", "reasoning_content", "reasoning_details"}
)

// appendExtras appends those members whose names are listed, each behind a comma, unless a
// call could be found in one.
func appendExtras(b []byte, x chat.Extra, listed []string) []byte {
	return appendExtrasIf(b, x, listed, rawjson.HoldsNoCall)
}

func appendExtrasIf(b []byte, x chat.Extra, listed []string, passes func(value []byte) bool) []byte {
	for _, m := range x {
		if slices.Contains(listed, m.Name) && passes(m.Value) {
			b = append(append(strictjson.AppendQuote(append(b, ','), m.Name), ':'), m.Value...)
		}
	}
	return b
}

// appendReasoning appends what the model thought, where the upstream's entry lets it pass.
func (r *run) appendReasoning(b []byte, x chat.Extra) []byte {
	if r.Route.Rules.Reasoning == upstream.Drop {
		return b
	}
	return appendExtrasIf(b, x, reasoningMembers, func([]byte) bool { return true })
}

// appendContentExtras appends what belongs to the text and the speech of a choice that passed, and
// is shown with them.
func (r *run) appendContentExtras(b []byte, j *judgedChoice, content *string) []byte {
	withContent := (j.released() || j.blank) && content == j.Message.Content
	if j.audio != nil && (withContent || j.audio.hasTranscript()) {
		b = append(append(b, `,"audio":`...), j.audio.encode()...)
	}
	if withContent {
		b = appendExtras(b, j.Message.Extra, forwardedOfText)
	}
	return b
}

// isWord reports whether a JSON value is a short string that names something, in
// characters that stand for themselves.
func isWord(value []byte) bool {
	const most = 128
	n := len(value)
	return n > 2 && n <= most && value[0] == '"' && ascii.IsPlainID(string(value[1:n-1]))
}

// modelName is the name of the model in the answer: the provider's, or the requested one if
// the provider's could be mistaken for something else.
func (r *run) modelName(model string) string {
	const most = 256
	if _, hides := wrapper.Hidden(model); hides || len(model) > most || !rawjson.IsProse([]byte(model)) {
		return r.request.model
	}
	return model
}
