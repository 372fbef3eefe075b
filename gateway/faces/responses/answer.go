package responses

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/faces/responses/internal/emit"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/ascii"
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
	if reason := reply.IncompleteReason; status == "incomplete" && ascii.IsPlainID(reason) {
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
				output = append(output, emit.EncodeMessage(item, status, true))
			}
		case responses.Call:
			if q := t.questions[item]; q != nil {
				output = append(output, emit.AppendRequest(nil, item, q))
			} else if report := t.passed(item); report != nil {
				output = append(output, emit.AppendCall(nil, item, report, "completed", false))
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

// remember binds the response that the application knows by an id to its caller, where it may
// continue it. One that asks its caller is continued by its items: the provider has the calls, and not
// what they were asked by.
func (r *run) remember(id string) {
	if r.last.questions != nil {
		return
	}
	if r.Route.Rules.Responses.State != upstream.BindState || string(r.request.members.Get("store")) == "false" {
		return
	}
	principal := r.Admission.Principal()
	r.face.ledger.add(principal, r.Route.Upstream, id, r.last.reply.ID)
	for _, item := range r.last.reply.Items {
		if item.ID != "" {
			r.face.ledger.add(principal, r.Route.Upstream, item.ID, item.ID)
		}
	}
}
