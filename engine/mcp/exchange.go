package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/callgate/callgate/engine"
)

// exchange is one request and what came of it. It goes with the request's context
// from a session, through the SDK, to the connection that carries it out: there the
// server's bytes are kept, of which the SDK itself is told nothing.
type exchange struct {
	limit   int64             // of the answer, in bytes
	once    bool              // the request must not be sent twice
	greets  bool              // the SDK reads the answer itself, as that of a handshake
	headers map[string]string // beside those of every request
	// arguments are those of a call, and what else of it goes through no encoder. They
	// stand in its request where the SDK wrote the mark.
	arguments, mark []byte
	// to is told what the server reports with the token, and logs of the level and above;
	// each is empty where nothing was asked for.
	to           *listener
	token, level string
	// sent tells that the request may have reached the server.
	sent   atomic.Bool
	answer atomic.Pointer[answer]
}

// answer is how an exchange ended: by one of its members.
type answer struct {
	result json.RawMessage
	failed *failed
	lost   error  // there is no whole answer
	bad    string // it is in no form that can be used; none of it is the server's
	large  bool
	gone   bool // the server has forgotten the session, and has not taken the request
	status int  // of HTTP, where it is not 2xx and says nothing else
	after  string
}

// carry has the exchange carry the arguments of a call, with its answers behind them,
// and returns what the SDK is given in their place.
func (e *exchange) carry(arguments, answers []byte) json.RawMessage {
	e.arguments, e.mark = slices.Concat(arguments, answers), []byte(`"`+rand.Text()+`"`)
	return e.mark
}

// hear takes a notification that came before the answer.
func (e *exchange) hear(m *message) {
	switch {
	case e.to == nil:
	case m.method == noticeProgress:
		if r, ok := readReport(m.params); ok {
			e.to.hearReport(r)
		}
	case m.method == noticeMessage:
		if l, ok := readLog(m.params); ok {
			e.to.hearLog(l)
		}
	}
}

// encode writes a request, with the arguments byte for byte as they were judged.
func (e *exchange) encode(m jsonrpc.Message) ([]byte, error) {
	body, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return nil, errUnwritten
	}
	if e == nil || e.mark == nil {
		return body, nil
	}
	before, behind, ok := bytes.Cut(body, e.mark)
	if !ok {
		return nil, errUnwritten
	}
	return bytes.Join([][]byte{before, behind}, e.arguments), nil
}

const errUnwritten engine.Reason = "the request could not be written"

type exchangeKey struct{}

func (e *exchange) within(ctx context.Context) context.Context {
	return context.WithValue(ctx, exchangeKey{}, e)
}

// exchangeOf is that of a request that the SDK sends; one of its own has a small
// answer.
func exchangeOf(ctx context.Context) *exchange {
	if e, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return e
	}
	return &exchange{limit: maxGreeting}
}

// settle keeps how the exchange ended, and returns what the SDK is told of it: as
// little as ends its wait.
func (e *exchange) settle(id jsonrpc.ID, a *answer) *jsonrpc.Response {
	e.answer.Store(a)
	response := &jsonrpc.Response{ID: id, Result: json.RawMessage("{}")}
	switch {
	case e.greets && a.result != nil:
		response.Result = a.result
	case e.greets && a.failed != nil:
		response.Result, response.Error = nil, &jsonrpc.Error{Code: a.failed.code, Message: "refused", Data: a.failed.data}
	case e.greets:
		response.Result, response.Error = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "not answered"}
	}
	return response
}

// answerOf is what a message says to the request that it answers.
func answerOf(m *message) *answer {
	if m.failed != nil {
		return &answer{failed: m.failed}
	}
	return &answer{result: m.result}
}
