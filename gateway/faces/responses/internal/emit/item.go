package emit

import (
	"crypto/rand"
	"slices"
	"strconv"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/strictjson"
	"github.com/callgate/callgate/upstream/responses"
)

// OwnLabel is the server_label by which a client says that its user answers calls that wait for the
// caller, and by which it is asked.
const OwnLabel = "callgate"

// The types of the items by which a caller is asked, and answers (RS-37).
const (
	RequestType  = "mcp_approval_request"
	ResponseType = "mcp_approval_response"
)

// forwardedOfCall are the members of every call that a client acts by: they name the call.
var forwardedOfCall = []string{"type", "call_id", "name", "namespace", "caller", "async"}

// forwardedOfType are those with what a call of a type asks for, which was judged, and with where
// it is to run.
var forwardedOfType = map[string][]string{
	"function_call": {"arguments"}, "custom_tool_call": {"input"}, "shell_call": {"action", "environment"}, "local_shell_call": {"action"},
	"apply_patch_call": {"operation"}, "computer_call": {"action", "actions", "pending_safety_checks"},
}

// EncodeMessage returns a message whose text passed; whole: with its parts.
func EncodeMessage(item *responses.Item, status string, whole bool) []byte {
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

// AppendCall appends a call that passed. begins: it is its beginning, without arguments.
func AppendCall(b []byte, item *responses.Item, report *gateway.Report, status string, begins bool) []byte {
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
		if m.Name == "environment" { // of a shell call that the client runs
			value = []byte(`{"type":"local"}`)
		}
		if begins && (m.Name == "arguments" || m.Name == "input") {
			value = []byte(`""`)
		}
		b = append(append(append(append(b, `,"`...), m.Name...), `":`...), value...)
	}
	return append(b, '}')
}

// AppendRequest appends the item by which the caller is asked of a call.
func AppendRequest(b []byte, item *responses.Item, q *calls.Question) []byte {
	o := rawjson.Object{
		rawjson.Field("id", rawjson.Quote(q.ID)), rawjson.Field("type", rawjson.Quote(RequestType)),
		rawjson.Field("arguments", rawjson.Quote([]byte(q.Arguments))), rawjson.Field("name", rawjson.Quote(item.Call.Name)),
		rawjson.Field("server_label", rawjson.Quote(OwnLabel)),
	}
	return append(b, o.Bytes()...)
}

// TextItem is a message that Callgate writes.
func TextItem(text string) *responses.Item {
	return &responses.Item{
		Type: "message", Class: responses.Message, ID: "msg_" + rand.Text(), Complete: true, Done: true,
		Parts: []*responses.Part{{Text: []byte(text), Closed: true}},
	}
}

func strconvInt(i int) []byte { return strconv.AppendInt(nil, int64(i), 10) }
