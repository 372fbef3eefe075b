package native

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/wrapper"
)

const contentJSON = "application/json; charset=utf-8"

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
		f.options.Log.Error("an answer could not be encoded", "error", err)
		status, body = http.StatusInternalServerError, []byte(`{}`)
	}
	c.Data(status, contentJSON, append(body, '\n'))
}

// result writes a tool_result, with the request's id beside it.
func (f *Face) result(c *gin.Context, status int, id json.RawMessage, result []byte) {
	if id == nil {
		c.Data(status, contentJSON, append(append([]byte(nil), result...), '\n'))
		return
	}
	var a acted
	if err := json.Unmarshal(result, &a); err != nil {
		Refuse(c, refusal.From(refusal.Wrap, err))
		return
	}
	a.ID = id
	f.answer(c, status, a)
}

// Refuse answers in the shape that models read.
func Refuse(c *gin.Context, refused *refusal.Error) {
	server.LogRefusal(c, refused)
	server.RetryAfter(c, refused)
	body, err := wrapper.Refusal(nil, refused)
	if err != nil {
		body = []byte(`{}`) // a refusal always encodes: it holds text and numbers
	}
	c.Data(refused.Status(), contentJSON, append(body, '\n'))
	c.Abort()
}

// state is how a call stands.
type state struct {
	CallID string      `json:"call_id"`
	State  store.State `json:"state"`
	// Delivered tells whether the result was given before: then it is not to enter
	// its thread again.
	Delivered *bool           `json:"delivered,omitempty"`
	Result    json.RawMessage `json:"tool_result,omitempty"`
	// AuthURL is where a person must go before the tool goes on.
	AuthURL string `json:"auth_url,omitempty"`
	// Challenges are what a person has to do before such a call can pass. This one has
	// ended: it is to be sent again then.
	Challenges []challenge `json:"challenges,omitempty"`
	// Display is how the tool would show its result to people. No model is to read it.
	Display json.RawMessage `json:"display_as,omitempty"`
	// Subscription says that the tool tells of events.
	Subscription bool `json:"subscription,omitempty"`
}

// challenge is an authorization that the server of a tool asks for.
type challenge struct {
	ID  string `json:"id"`
	URL string `json:"url"` // where a person goes
}

// authorization is the state of a call that waits for a person.
const authorization store.State = "authorization"

func stateOf(call store.Call) (state, error) {
	note := gateway.MetadataOf(&call)
	s := state{CallID: call.ID, State: call.State, Display: note.Display, Subscription: note.Subscribed}
	if call.Step == store.Waiting && note.AuthURL != "" {
		s.State, s.AuthURL = authorization, note.AuthURL
	}
	for _, c := range note.Challenges {
		s.Challenges = append(s.Challenges, challenge{c.ID, c.URL})
	}
	if call.Answer.Result == nil {
		return s, nil
	}
	var a acted
	if err := json.Unmarshal(call.Answer.Result, &a); err != nil {
		return s, err
	}
	s.Result, s.Delivered = a.Result, &call.Delivered
	return s, nil
}
