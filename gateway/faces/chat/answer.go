package chat

import (
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/strictjson"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/upstream/chat"
	"github.com/callgate/callgate/wrapper"
)

// appendToolCall writes a call as a message has it; with an index as a stream does.
func appendToolCall(b []byte, index int, id, name string, arguments []byte, x chat.Extra) []byte {
	b = append(b, '{')
	if index >= 0 {
		b = append(strconv.AppendInt(append(b, `"index":`...), int64(index), 10), ',')
	}
	b = strictjson.AppendQuote(append(b, `"id":`...), id)
	b = strictjson.AppendQuote(append(b, `,"type":"function","function":{"name":`...), name)
	b = append(strictjson.AppendQuote(append(b, `,"arguments":`...), arguments), '}')
	return append(appendExtras(b, x, forwardedOfCall), '}')
}

// presentedCall is a call as the application gets it.
type presentedCall struct {
	id, name  string
	arguments []byte
	extra     chat.Extra
}

// present settles how a choice that passed is presented: which content it has, if
// any, and which calls.
func (r *run) present(j *judgedChoice) (content *string, calls []presentedCall, finish string) {
	finish = j.FinishReason
	if j.released() || j.blank {
		content = j.Message.Content
	}
	for i, report := range j.passed() {
		var call presentedCall
		switch wire, offered := r.Offer.Wire(report.Call.Tool); {
		case r.Route.Rules.Protocol != upstream.Text:
			native := &j.Message.ToolCalls[i]
			call = presentedCall{native.ID, native.Name, report.Call.Arguments, native.Extra}
			if r.Route.Rules.CallFormat == upstream.AsContent {
				text := r.callText(report.Call.Tool, report.Call.Arguments)
				return &text, nil, "stop"
			}
		case !offered || r.Route.Rules.CallFormat == upstream.AsContent:
			// An application that named no tools reads the call language itself.
			return j.Message.Content, nil, "stop"
		default:
			call = presentedCall{id: report.CallID, name: wire, arguments: report.Call.Arguments}
		}
		calls = append(calls, call)
	}
	// Clients go by the word: a text alone does not end so, and an answer with calls does, whatever
	// the provider says.
	switch {
	case len(calls) > 0:
		finish = "tool_calls"
	case finish == "tool_calls" || finish == "function_call":
		finish = "stop"
	}
	return content, calls, finish
}

// sizeHint is about how long the turn is as a completion.
func (t *turn) sizeHint() int {
	size := 1 << 10
	for i := range t.choices {
		m := &t.choices[i].Message
		if m.Content != nil {
			size += len(*m.Content) + len(*m.Content)/8
		}
		for j := range m.ToolCalls {
			size += len(m.ToolCalls[j].Arguments)*5/4 + 1<<7
		}
	}
	return size
}

// writeCompletion writes a turn as a completion, with choices as they are appended.
func (r *run) writeCompletion(c *gin.Context, t *turn, appendChoice func(b []byte, j *judgedChoice) []byte) {
	b := strictjson.AppendQuote(append(make([]byte, 0, t.sizeHint()), `{"id":`...), t.ID)
	b = strconv.AppendInt(append(b, `,"object":"chat.completion","created":`...), t.Created, 10)
	b = append(strictjson.AppendQuote(append(b, `,"model":`...), r.modelName(t.Model)), `,"choices":[`...)
	for i := range t.choices {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendChoice(b, &t.choices[i])
	}
	b = append(b, ']')
	if usage := r.Usage().Encode(); usage != nil {
		b = append(append(b, `,"usage":`...), usage...)
	}
	b = append(appendExtras(appendExtrasIf(b, t.Extra, forwardedWords, isWord), t.Extra, forwardedOfAnswer), '}', '\n')
	turns.ExtendWriteDeadline(c)
	c.Data(http.StatusOK, contentJSON, wrapper.Escape(b))
}

func (r *run) appendChoice(b []byte, j *judgedChoice) []byte {
	content, calls, finish := r.present(j)
	b = strconv.AppendInt(append(b, `{"index":`...), int64(j.Index), 10)
	b = appendText(append(b, `,"message":{"role":"assistant","content":`...), content)
	b = appendText(append(b, `,"refusal":`...), j.Message.Refusal)
	for i, call := range calls {
		if i == 0 {
			b = append(b, `,"tool_calls":[`...)
		} else {
			b = append(b, ',')
		}
		b = appendToolCall(b, -1, call.id, call.name, call.arguments, call.extra)
	}
	if len(calls) > 0 {
		b = append(b, ']')
	}
	b = append(r.appendReasoning(r.appendContentExtras(b, j, content), j.Message.Extra), `},"logprobs":`...)
	// They repeat what the model wrote: they are shown where all of that is.
	var logprobs []byte
	if content != nil && content == j.Message.Content && len(calls) == 0 {
		logprobs = verifiedLogprobs(j.Extra.Lookup("logprobs"), *content, j.Message.Refusal)
	}
	if logprobs == nil {
		logprobs = []byte("null")
	}
	b = append(b, logprobs...)
	b = appendExtras(b, j.Extra, forwardedOfChoice)
	b = append(b, `,"finish_reason":`...)
	if finish == "" {
		return append(b, `null}`...)
	}
	return append(strictjson.AppendQuote(b, finish), '}')
}

func appendText(b []byte, s *string) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	return strictjson.AppendQuote(b, *s)
}
