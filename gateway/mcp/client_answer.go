package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/mcp/wire"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// A client of before 2026-07-28 answers what it is asked by a response, in a message
// of its own.

// isResponse tells whether the members of a message are those of a response.
func isResponse(object map[string]any) bool {
	_, result := object["result"]
	_, failed := object["error"]
	return result || failed
}

// looksLikeResponse tells whether a message that nobody has read yet can be nothing else than a
// response, if it is a message: read finds these members, too.
func looksLikeResponse(came server.Request) bool {
	for _, name := range []string{"result", "error"} {
		if from, to := parser.Span(came.Body, name); from < to {
			return true
		}
	}
	return false
}

// checkResponse reads the members of a response that are its own.
func (m *message) checkResponse(object map[string]any) *rpcError {
	result, has := object["result"]
	reason, failed := object["error"]
	_, method := object["method"]
	_, params := object["params"]
	if has == failed || method || params || m.id == nil {
		return newError(wire.CodeRequest, "A response has an \"id\", and either a \"result\" or an \"error\".")
	}
	if failed && !validError(reason) {
		return newError(wire.CodeRequest, "\"error\" must be an object with a whole number \"code\" and a string \"message\".")
	}
	if _, ok := result.(map[string]any); has && !ok {
		return newError(wire.CodeRequest, "\"result\" must be an object.")
	}
	return nil
}

// readResult takes the bytes of a response's result, where it has one.
func (m *message) readResult(body []byte) *rpcError {
	from, to := parser.Span(body, "result")
	if to-from > maxResponsesBytes {
		return newError(wire.CodeRequest, "\"result\" must be at most %d bytes long.", maxResponsesBytes)
	}
	if from < to {
		m.result = bytes.Clone(body[from:to]) // it outlives the body
	}
	return nil
}

func validError(v any) bool {
	members, _ := v.(map[string]any)
	code, ok := members["code"].(json.Number)
	if _, says := members["message"].(string); !ok || !says || strings.ContainsAny(code.String(), ".eE") {
		return false
	}
	for name := range members {
		if name != "code" && name != "message" && name != "data" {
			return false
		}
	}
	return true
}

// respond gives an answer to the question that waits for it. Nothing is said to that
// but that it was taken.
func (f *Face) respond(admission *gateway.Admission, m *message, h http.Header) *response {
	stated, fault := singleHeader(h, wire.HeaderVersion)
	switch {
	case fault != nil:
	case stated == wire.Revision2026:
		fault = newError(wire.CodeRequest, "A client of %s is asked nothing in the middle of a call, so that it has nothing to answer.", wire.Revision2026)
	case stated != "" && !slices.Contains(revisions, stated):
		fault = unsupported(stated)
	default:
		if fault = m.checkHeaders(h, false); fault == nil {
			_, fault = parseSessionID(h)
		}
	}
	if fault != nil {
		return &response{fault: fault}
	}
	id, _ := m.id.(string) // no question has a number
	if !f.pending.resolve(admission.Principal(), id, m.result) {
		return &response{fault: newError(wire.CodeRequest,
			"No question waits here for this answer: it has been answered, or is over, or was put by another process.")}
	}
	return nil
}

// respond gives an answer on standard input to the question that waits for it. What is
// no answer to any is not answered itself, since a response never is: the call may be
// over, and the client not know it yet.
func (s *stdioSession) respond(ctx context.Context, m *message, wrong *rpcError) {
	if wrong != nil {
		s.writeResponse(nil, &response{fault: wrong})
		return
	}
	admission, err := s.face.options.Kernel.Admit(ctx, s.request)
	if err != nil {
		s.writeResponse(nil, &response{fault: refusalError(refusal.From(refusal.Identity, err))})
		return
	}
	s.face.respond(admission, m, nil)
}

// elicitor is the client on the pair of streams, for a request whose context ends when the
// client cancels it.
func (s *stdioSession) elicitor(ctx context.Context) *elicitor {
	return &elicitor{
		kinds: s.questionKinds,
		send:  func(line []byte) error { return s.notify(ctx, line) },
		wait: func(wait func(context.Context)) *refusal.Error {
			ctx, done := context.WithCancel(ctx)
			defer done()
			defer context.AfterFunc(s.inputEnded, done)()
			wait(ctx)
			return nil
		},
	}
}
