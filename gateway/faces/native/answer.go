package native

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// The parts of every answer. Nothing changes them.
var (
	contentJSON = []string{"application/json; charset=utf-8"}
	newline     = []byte("\n")
)

// unchunked is the length from which on net/http sends an answer in chunks, unless it is told
// its length: what it buffers before it writes the head.
const unchunked = 2 << 10

// write writes one line of JSON.
func write(c *gin.Context, status int, line []byte) {
	c.Writer.Header()["Content-Type"] = contentJSON
	if length := len(line) + len(newline); length >= unchunked {
		server.SetHeader(c, "Content-Length", strconv.Itoa(length))
	}
	c.Writer.WriteHeader(status)
	for _, part := range [][]byte{line, newline} {
		if _, err := c.Writer.Write(part); err != nil {
			return // the client has left
		}
	}
}

// checked is the answer to a check.
type checked struct {
	ID json.RawMessage `json:"id,omitempty"`
	gateway.Report
}

// acted is the answer to a call, or to text.
type acted struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Text   *string         `json:"text,omitempty"`
	Result json.RawMessage `json:"tool_result,omitempty"`
}

// answer writes a value as JSON in which nothing hides.
func (f *Face) answer(c *gin.Context, status int, value any) {
	body, err := wrapper.Marshal(value)
	if err != nil {
		f.options.Log.Error("an answer of the native API could not be encoded", "cause", err.Error())
		status, body = http.StatusInternalServerError, []byte(`{}`)
	}
	write(c, status, body)
}

// result writes a tool_result, with the request's id beside it.
func (f *Face) result(c *gin.Context, status int, id json.RawMessage, result wrapper.ToolResult) {
	if id == nil {
		write(c, status, result.Line)
		return
	}
	f.answer(c, status, acted{ID: id, Result: result.Object})
}

// Refuse answers in the shape that models read.
func Refuse(c *gin.Context, refused *refusal.Error) {
	server.LogRefusal(c, refused)
	server.RefusalHeaders(c, refused)
	result, err := wrapper.Refusal(nil, refused)
	body := result.Line
	if err != nil {
		body = []byte(`{}`) // a refusal always encodes: it holds text and numbers
	}
	write(c, refused.Status(), body)
	c.Abort()
}

// state is the status of a call.
type state struct {
	ID     json.RawMessage `json:"id,omitempty"` // of the request
	CallID string          `json:"call_id"`
	State  calls.CallState `json:"state"`
	// Delivered reports whether the result was given before: then it is not to enter
	// its thread again.
	Delivered *bool           `json:"delivered,omitempty"`
	Result    json.RawMessage `json:"tool_result,omitempty"`
	// AuthURL is the URL that a person must open before the tool continues.
	AuthURL string `json:"auth_url,omitempty"`
	// Choice is a question of the tool to a person.
	Choice *calls.Choice `json:"choice,omitempty"`
	// Challenges are the actions that a person must take before such a call can pass. This
	// call has ended: the caller sends it again afterwards.
	Challenges []challenge `json:"challenges,omitempty"`
	// Display is how the tool would show its result to people. No model is to read it.
	Display json.RawMessage `json:"display_as,omitempty"`
	// Approval is what people are asked for, or were, before the call may run.
	Approval *approval `json:"approval,omitempty"`
	// Subscription means that the tool sends events.
	Subscription bool `json:"subscription,omitempty"`
}

// approval is the approval that people are asked for.
type approval struct {
	Rules []string  `json:"rules"`
	Until time.Time `json:"until"`
}

func approvalOf(a *gateway.ApprovalRequest) *approval {
	if a == nil {
		return nil
	}
	return &approval{a.Rules, a.Until.UTC()}
}

// challenge is an authorization that the server of a tool asks for.
type challenge struct {
	ID  string `json:"id"`
	URL string `json:"url"` // where a person goes
}

func stateOf(call calls.CallStatus) state {
	meta := call.Metadata
	s := state{Approval: approvalOf(call.ApprovalRequest), CallID: call.ID, State: call.State, Display: meta.Display,
		Subscription: meta.Subscribed}
	if call.State == calls.StateAuthorization {
		s.AuthURL = meta.AuthURL
	}
	if call.State == calls.StateChoice {
		s.Choice = &meta.Choice.Choice
	}
	for _, c := range meta.Challenges {
		s.Challenges = append(s.Challenges, challenge{c.ID, c.URL})
	}
	if call.Ended {
		s.Result, s.Delivered = call.Result.Object, &call.Delivered
	}
	return s
}
