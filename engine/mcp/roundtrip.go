package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/callgate/callgate/engine/internal/refuse"
	"github.com/callgate/callgate/mcp/wire"
)

// roundTrip is one request and its reply. It travels in the context of the request from a
// session, through the SDK, to the connection, which stores the server's bytes in it. The
// SDK is told nothing of them.
type roundTrip struct {
	limit     int64             // of the answer, in bytes
	once      bool              // the request must not be sent twice
	handshake bool              // the SDK reads the answer itself, as that of a handshake
	headers   map[string]string // beside those of every request
	// arguments are those of a call, and what else of it goes through no encoder. They
	// stand in its request where the SDK wrote the mark.
	arguments, placeholder []byte
	// listener is told what the server reports with the token, and logs of the level and above;
	// each is empty where nothing was asked for.
	listener     *listener
	token, level string
	// sent tells that the request may have reached the server.
	sent     atomic.Bool
	response atomic.Pointer[reply]
}

// reply is how a round trip ended: exactly one of its members is set.
type reply struct {
	result      json.RawMessage
	rpcError    *rpcError
	err         error  // there is no whole answer
	invalid     string // it is in no form that can be used; none of it is the server's
	tooLarge    bool
	sessionGone bool // the server has forgotten the session, and has not taken the request
	status      int  // of HTTP, where it is not 2xx and says nothing else
	retryAfter  string
}

// embedArguments stores the arguments and answers of a call, and returns the placeholder
// that the SDK encodes in their place.
func (e *roundTrip) embedArguments(arguments, answers []byte) json.RawMessage {
	e.arguments, e.placeholder = slices.Concat(arguments, answers), []byte(`"`+rand.Text()+`"`)
	return e.placeholder
}

// notify handles a notification that came before the response.
func (e *roundTrip) notify(m *message) {
	switch {
	case e.listener == nil:
	case m.method == wire.NoticeProgress:
		if r, ok := readProgress(m.params); ok {
			e.listener.onProgress(r)
		}
	case m.method == wire.NoticeMessage:
		if l, ok := readLog(m.params); ok {
			e.listener.onLog(l)
		}
	}
}

// encode writes a request, with the validated arguments byte for byte.
func (e *roundTrip) encode(m jsonrpc.Message) ([]byte, error) {
	body, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return nil, errNotEncoded
	}
	if e == nil || e.placeholder == nil {
		return body, nil
	}
	before, behind, ok := bytes.Cut(body, e.placeholder)
	if !ok {
		return nil, errNotEncoded
	}
	return bytes.Join([][]byte{before, behind}, e.arguments), nil
}

const errNotEncoded refuse.Reason = "the request could not be written"

type roundTripKey struct{}

func (e *roundTrip) withContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, roundTripKey{}, e)
}

// roundTripOf is the round trip of a request of the SDK. A request that the SDK makes by
// itself has a small response.
func roundTripOf(ctx context.Context) *roundTrip {
	if e, ok := ctx.Value(roundTripKey{}).(*roundTrip); ok {
		return e
	}
	return &roundTrip{limit: maxHandshake}
}

// complete stores the reply, and returns what the SDK is told of it: no more than ends
// its wait.
func (e *roundTrip) complete(id jsonrpc.ID, a *reply) *jsonrpc.Response {
	e.response.Store(a)
	response := &jsonrpc.Response{ID: id, Result: json.RawMessage("{}")}
	switch {
	case e.handshake && a.result != nil:
		response.Result = a.result
	case e.handshake && a.rpcError != nil:
		response.Result, response.Error = nil, &jsonrpc.Error{Code: a.rpcError.code, Message: "refused", Data: a.rpcError.data}
	case e.handshake:
		response.Result, response.Error = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "not answered"}
	}
	return response
}

// responseOf is the reply in a message.
func responseOf(m *message) *reply {
	if m.rpcError != nil {
		return &reply{rpcError: m.rpcError}
	}
	return &reply{result: m.result}
}
