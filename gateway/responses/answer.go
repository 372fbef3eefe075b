package responses

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/strictjson"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/upstream/responses"
	"github.com/callgate/callgate/wrapper"
)

// forwardedOfResponse are the members of a response that are passed on as they came, where no
// call can be found in them: echoes of the request, and how it was served.
var forwardedOfResponse = []string{
	"background", "billing", "completed_at", "frequency_penalty", "max_output_tokens", "max_tool_calls",
	"metadata", "moderation", "presence_penalty",
	"prompt", "prompt_cache_key", "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store",
	"temperature", "text", "top_logprobs", "top_p", "truncation", "user",
}

// restored are echoes of members that this face changes on their way to the model, and what
// they are where the request does not have them (RS-30).
var restored = []struct{ name, absent string }{
	{"instructions", "null"}, {"tools", "[]"}, {"tool_choice", `"auto"`}, {"parallel_tool_calls", "true"}, {"previous_response_id", "null"},
}

// encodeResponse returns a response object. failure is its error; nil: null.
func (r *run) encodeResponse(reply *responses.Reply, id, status string, output [][]byte, failure []byte) []byte {
	size := 1 << 10 // for what is short
	for _, item := range output {
		size += len(item) + 1
	}
	b := strictjson.AppendQuote(append(make([]byte, 0, size), `{"id":`...), id)
	b = append(b, `,"object":"response","created_at":`...)
	if reply.CreatedAt != nil {
		b = append(b, reply.CreatedAt...)
	} else {
		b = strconv.AppendInt(b, time.Now().Unix(), 10)
	}
	b = strictjson.AppendQuote(append(b, `,"status":`...), status)
	if failure == nil {
		failure = []byte("null")
	}
	b = append(append(b, `,"error":`...), failure...)
	b = append(b, `,"incomplete_details":`...)
	if reason := reply.IncompleteReason; status == "incomplete" && upstream.IsPlainID(reason) {
		b = append(strictjson.AppendQuote(append(b, `{"reason":`...), reason), '}')
	} else {
		b = append(b, "null"...)
	}
	b = strictjson.AppendQuote(append(b, `,"model":`...), r.modelName(reply.Model))
	b = append(b, `,"output":[`...)
	for i, item := range output {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	b = append(b, ']')
	for _, m := range restored {
		value := r.request.members.Get(m.name)
		if value == nil {
			value = []byte(m.absent)
		}
		b = append(append(append(append(b, `,"`...), m.name...), `":`...), value...)
	}
	for _, m := range reply.Members {
		if slices.Contains(forwardedOfResponse, m.Name) && rawjson.HoldsNoCall(m.Value) {
			b = append(append(append(append(b, `,"`...), m.Name...), `":`...), m.Value...)
		}
	}
	usage := []byte("null")
	if status != "in_progress" {
		if sum := r.Usage().Encode(); sum != nil {
			usage = sum
		}
	}
	return append(append(append(b, `,"usage":`...), usage...), '}')
}

// modelName is the name of the model in the answer: the provider's, or the requested one if
// the provider's could be mistaken for something else.
func (r *run) modelName(model string) string {
	const most = 256
	if _, hides := wrapper.Hidden(model); hides || model == "" || len(model) > most || !rawjson.IsProse([]byte(model)) {
		return r.request.model
	}
	return model
}

// writeResponse writes a turn as a whole response.
func (r *run) writeResponse(c *gin.Context, t *turn) {
	var output [][]byte
	for _, item := range t.reply.Items {
		switch item.Class {
		case responses.Message:
			if t.shows(item) {
				status := "completed"
				if !item.Complete {
					status = "incomplete"
				}
				output = append(output, encodeMessage(item, status, true))
			}
		case responses.Call:
			if q := t.asked[item]; q != nil {
				output = append(output, appendRequest(nil, item, q))
			} else if report := t.passed(item); report != nil {
				output = append(output, appendCall(nil, item, report, "completed", false))
			}
		default:
			if r.shows(item) {
				output = append(output, item.AppendItem(nil))
			}
		}
	}
	r.remember(t.reply.ID)
	r.writeOutput(c, t.reply, output)
}

// writeOutput writes a whole response with some items.
func (r *run) writeOutput(c *gin.Context, reply *responses.Reply, output [][]byte) {
	status := reply.Status
	switch status {
	case "incomplete", "queued", "in_progress":
	default:
		status = "completed"
	}
	b := append(r.encodeResponse(reply, reply.ID, status, output, nil), '\n')
	turns.ExtendWriteDeadline(c)
	c.Data(http.StatusOK, contentJSON, wrapper.Escape(b))
}

// encodeMessage returns a message whose text passed; whole: with its parts.
func encodeMessage(item *responses.Item, status string, whole bool) []byte {
	size := 256 // for what is short
	for _, part := range item.Parts {
		if whole {
			size += len(part.Text)
		}
	}
	b := strictjson.AppendQuote(append(make([]byte, 0, size), `{"id":`...), item.ID)
	b = strictjson.AppendQuote(append(b, `,"type":"message","status":`...), status)
	b = append(b, `,"role":"assistant","content":[`...)
	if whole {
		for i, part := range item.Parts {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendPart(b, part, true)
		}
	}
	b = append(b, ']')
	if item.Phase != "" {
		b = strictjson.AppendQuote(append(b, `,"phase":`...), item.Phase)
	}
	return append(b, '}')
}

// appendPart appends a part of a message; not whole: as it begins.
func appendPart(b []byte, part *responses.Part, whole bool) []byte {
	text := part.Text
	if !whole {
		text = nil
	}
	if part.Refusal {
		return append(strictjson.AppendQuote(append(b, `{"type":"refusal","refusal":`...), text), '}')
	}
	b = append(b, `{"type":"output_text","annotations":`...)
	if whole && part.Annotations != nil && rawjson.HoldsNoCall(part.Annotations) {
		b = append(b, part.Annotations...)
	} else {
		b = append(b, "[]"...)
	}
	return append(strictjson.AppendQuote(append(b, `,"logprobs":[],"text":`...), text), '}')
}

// forwardedOfCall are the members of every call that a client acts by: they name the call.
var forwardedOfCall = []string{"type", "call_id", "name", "namespace", "caller", "async"}

// forwardedOfType are those with what a call of a type asks for, which was judged, and with where
// it is to run.
var forwardedOfType = map[string][]string{
	"function_call": {"arguments"}, "custom_tool_call": {"input"}, "shell_call": {"action", "environment"}, "local_shell_call": {"action"},
	"apply_patch_call": {"operation"}, "computer_call": {"action", "actions", "pending_safety_checks"},
}

// appendCall appends a call that passed. begins: it is its beginning, without arguments.
func appendCall(b []byte, item *responses.Item, report *gateway.Report, status string, begins bool) []byte {
	b = append(b, '{')
	if item.ID != "" {
		b = append(strictjson.AppendQuote(append(b, `"id":`...), item.ID), ',')
	}
	b = strictjson.AppendQuote(append(b, `"status":`...), status)
	members, _ := rawjson.Members(item.Raw)
	for _, m := range members {
		value := m.Value
		switch {
		case !slices.Contains(forwardedOfCall, m.Name) && !slices.Contains(forwardedOfType[item.Type], m.Name):
			continue
		case m.Name == "arguments" && item.Type == "function_call":
			value = rawjson.Quote([]byte(report.Call.Arguments))
		}
		if begins && (m.Name == "arguments" || m.Name == "input") {
			value = []byte(`""`)
		}
		b = append(append(append(append(b, `,"`...), m.Name...), `":`...), value...)
	}
	return append(b, '}')
}

func strconvInt(i int) []byte { return strconv.AppendInt(nil, int64(i), 10) }
