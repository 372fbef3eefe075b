package mcp

import (
	"context"
	"net/http"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// request is an admitted request.
type request struct {
	*message
	admission      *gateway.Admission
	modern         bool        // of 2026-07-28
	headers        http.Header // nil if there are none
	idempotencyKey string      // of idempotency
	notifier       *notifier   // nil: the client gets no notifications
	elicitor       *elicitor   // nil: the client cannot be asked anything
	// pause runs a function that waits, as elicitor.wait does, for a client that cannot be asked,
	// too. It sends comments meanwhile if the response may be a stream.
	pause   func(context.Context, func(context.Context)) *refusal.Error
	session string // of a client older than 2026-07-28; empty if there is none
	// announced says that the client is told of changed lists of tools.
	announced bool
}

// response is the response to a request: a result, or a fault.
type response struct {
	result object
	fault  *rpcError
	// failed is why a call has no output; the result says it to the model.
	failed *refusal.Error
	callID string
	// session is the id of the session that begins with the answer; empty begins none.
	session string
}

type object map[string]any

func (a *response) refusal() *refusal.Error {
	if a.fault != nil {
		return a.fault.refused
	}
	return a.failed
}

// status is the HTTP status.
func (a *response) status() int {
	if a.fault != nil {
		return a.fault.status
	}
	return http.StatusOK
}

// encode is an answer as JSON in which nothing hides.
func (a *response) encode(m *message) []byte {
	body := struct {
		Version string     `json:"jsonrpc"`
		ID      jsonrpc.ID `json:"id,omitzero"`
		Result  any        `json:"result,omitempty"`
		Error   any        `json:"error,omitempty"`
	}{Version: "2.0"}
	if a.result != nil {
		body.Result = a.result
	}
	if m != nil && !m.IsResponse() { // the id of a response is one of ours
		body.ID = m.ID
	}
	if a.fault != nil {
		body.Error = a.fault.Error
	}
	b, err := wrapper.Marshal(body)
	if err != nil {
		return []byte(`{"jsonrpc":"2.0","error":{"code":-32603,"message":"Callgate failed."}}`)
	}
	return b
}
