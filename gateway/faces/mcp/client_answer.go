package mcp

import (
	"net/http"
	"slices"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/parser"
)

// A client older than 2026-07-28 answers a request of ours by a response, in a separate
// message.

// looksLikeResponse reports whether a body that was not read yet can only be a response, if it
// is a message at all: readMessage looks for the same members.
func looksLikeResponse(came server.Request) bool {
	for _, name := range []string{"result", "error"} {
		if from, to := parser.Span(came.Body, name); from < to {
			return true
		}
	}
	return false
}

// respond gives a client's answer to the question that waits for it. It returns nil if the
// answer was accepted.
func (f *Face) respond(admission *gateway.Admission, m *message, h http.Header) *response {
	stated, fault := singleHeader(h, wire.HeaderVersion)
	switch {
	case fault != nil:
	case stated == wire.Revision2026:
		fault = newError(jsonrpc.CodeRequest, "A client of %s is asked nothing in the middle of a call, so that it has nothing to answer.",
			wire.Revision2026)
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
	id, _ := m.ID.Text() // no question has a number
	if !f.pending.resolve(admission.Principal(), id, m.Result) {
		return &response{fault: newError(jsonrpc.CodeRequest,
			"No question waits here for this answer: it has been answered, or is over, or was put by another process.")}
	}
	return nil
}
