package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/internal/netx"
)

const (
	maxRefusal  = 64 << 10 // bytes that are read of an answer of 4xx
	maxRequests = 64       // requests of a server while it answers one of ours
)

// read reads the response to a request.
func (r *remote) read(ctx context.Context, response *http.Response, q *request) *reply {
	status := response.StatusCode
	media := mediaType(response.Header)
	switch {
	case status >= 400 && status < 500:
		return readRefusal(response, q.id, media)
	case status < 200 || status > 299:
		return &reply{status: status, retryAfter: response.Header.Get("Retry-After"), redirect: redirectOf(response)}
	}
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return &reply{invalid: "its answer is encoded, which was not asked for"}
	}
	switch media {
	case "application/json":
		return r.readJSON(response, q)
	case "text/event-stream":
		return r.readStream(ctx, response, q)
	}
	return &reply{invalid: "its answer is neither JSON nor a stream of events by its content type"}
}

// maxRedirect bounds an address that the operator is shown, in bytes.
const maxRedirect = 200

// redirectOf is the address to which a response points, without what may be a secret; empty if there is none
// that can be shown.
func redirectOf(response *http.Response) string {
	to, err := response.Location()
	if err != nil || to.Scheme != "https" && (to.Scheme != "http" || response.Request.URL.Scheme != "http") {
		return ""
	}
	shown := to.Scheme + "://" + to.Host + to.EscapedPath()
	if len(shown) > maxRedirect || !ascii.IsVisible(shown) {
		return ""
	}
	return shown
}

// mediaType is the one content type, without its parameters.
func mediaType(header http.Header) string {
	values := header.Values("Content-Type")
	if len(values) != 1 {
		return ""
	}
	media, parameters, err := mime.ParseMediaType(values[0])
	if err != nil || !netx.IsUTF8(parameters["charset"]) {
		return ""
	}
	return media
}

// readRefusal reads a response of 4xx, which may hold a JSON-RPC error. Whatever its content type, one that has
// the id of the request, or could not be read, may come from a server that has taken the request.
func readRefusal(response *http.Response, id int64, media string) *reply {
	a := &reply{status: response.StatusCode, retryAfter: response.Header.Get("Retry-After"), mayBeTaken: true}
	if response.Header.Get("Content-Encoding") != "" {
		return a
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal+1))
	if err != nil || len(body) > maxRefusal {
		return a
	}
	if media == "text/event-stream" {
		if data, err := newEventReader(bytes.NewReader(body), maxRefusal+1).next(); err == nil {
			body = data
		}
	}
	m, err := readMessage(body)
	if err != nil {
		members, _ := object(body)
		named, ok := requestID(members["id"])
		_, several := array(body)
		a.mayBeTaken = several || ok && named == id
		return a
	}
	a.mayBeTaken = m.answers(id)
	switch {
	case a.mayBeTaken && m.rpcError == nil:
		return &reply{invalid: wrongStatus}
	case m.rpcError != nil && (m.id == nil || a.mayBeTaken):
		a.rpcError, a.unaddressed = m.rpcError, m.id == nil
	}
	return a
}

// The faults of responses.
const (
	wrongID      = "it answered a request that was not sent"
	wrongRequest = "it asked more of the gateway than is answered"
	wrongMessage = "it sent something beside its answer"
	wrongStatus  = "it sent a result with the HTTP status of a refusal"
)

// readJSON reads a response that is one message.
func (r *remote) readJSON(response *http.Response, q *request) *reply {
	if response.ContentLength > q.limit {
		return &reply{tooLarge: true}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, q.limit+1))
	switch {
	case err != nil:
		return &reply{err: err}
	case int64(len(body)) > q.limit:
		return &reply{tooLarge: true}
	}
	m, err := readMessage(body)
	switch {
	case err != nil:
		return &reply{invalid: err.Error()}
	case m.hasMethod:
		return &reply{invalid: wrongMessage}
	case !m.answers(q.id) && (m.rpcError == nil || m.id != nil):
		return &reply{invalid: wrongID}
	}
	return replyOf(m)
}

// readStream reads a stream up to the response. The limit holds for the whole stream. A response to another request is
// late, or to none, and is passed over.
func (r *remote) readStream(ctx context.Context, response *http.Response, q *request) *reply {
	stream := newEventReader(response.Body, q.limit)
	broken := &reply{err: io.ErrUnexpectedEOF}
	for requests := 0; ; {
		data, err := stream.next()
		switch {
		case errors.Is(err, errTooLarge):
			return &reply{tooLarge: true}
		case errors.Is(err, io.EOF):
			if id := stream.events.LastID(); ascii.IsVisible(id) {
				broken.lastEvent, broken.pause = id, stream.events.Pause()
			}
			return broken
		case err != nil:
			return &reply{err: err}
		}
		m, err := readMessage(data)
		switch {
		case err != nil:
			return &reply{invalid: err.Error()}
		case m.hasMethod && m.id == nil:
			r.handleNotification(m)
			q.notify(m)
		case m.hasMethod:
			if requests++; r.modern() || requests > maxRequests {
				return &reply{invalid: wrongRequest}
			}
			r.deliver(r.post(ctx, serverReply(m)))
		case m.answers(q.id), m.rpcError != nil && m.id == nil:
			return replyOf(m)
		default:
			broken.unaddressed = true
		}
	}
}

// handleNotification handles a changed list of tools. Other notifications were not
// requested.
func (r *remote) handleNotification(m *message) {
	if m.method == wire.NoticeChanged {
		r.client.toolsChanged(r.endpoint.server, true)
	}
}

// serverReply answers a ping, and refuses any other request of a server.
func serverReply(m *message) []byte {
	if m.method == wire.MethodPing {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.id)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"this client offers nothing"}}`, m.id,
		jsonrpc.CodeMethod)
}
