package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	maxRefusal  = 64 << 10 // bytes that are read of an answer of 4xx
	maxRequests = 64       // requests of a server while it answers one of ours
)

// read reads the answer to a request.
func (r *remote) read(ctx context.Context, response *http.Response, request *jsonrpc.Request, e *exchange) *answer {
	id := request.ID.Raw().(int64)
	status := response.StatusCode
	media := mediaType(response.Header)
	switch {
	case status == http.StatusNotFound && response.Request.Header.Get(headerSession) != "":
		return &answer{gone: true}
	case status >= 400 && status < 500:
		return refused(response, id, media)
	case status < 200 || status > 299:
		return &answer{status: status, after: response.Header.Get("Retry-After")}
	}
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return &answer{bad: "its answer is encoded, which was not asked for"}
	}
	switch media {
	case "application/json":
		return r.whole(response, id, e.limit)
	case "text/event-stream":
		return r.stream(ctx, response, id, e)
	}
	return &answer{bad: "its answer is neither JSON nor a stream of events by its content type"}
}

// mediaType is the one content type, without its parameters.
func mediaType(header http.Header) string {
	values := header.Values("Content-Type")
	if len(values) != 1 {
		return ""
	}
	media, parameters, err := mime.ParseMediaType(values[0])
	if charset := strings.ToLower(parameters["charset"]); err != nil || charset != "" && charset != "utf-8" && charset != "us-ascii" {
		return ""
	}
	return media
}

// refused reads an answer of 4xx, which may say more in JSON-RPC.
func refused(response *http.Response, id int64, media string) *answer {
	a := &answer{status: response.StatusCode, after: response.Header.Get("Retry-After")}
	if media != "application/json" || response.Header.Get("Content-Encoding") != "" {
		return a
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal+1))
	if err != nil || len(body) > maxRefusal {
		return a
	}
	if m, err := readMessage(body); err == nil && m.failed != nil && (m.id == nil || m.answers(id)) {
		a.failed = m.failed
	}
	return a
}

// What a server does wrong on a connection.
const (
	wrongID   = "it answered a request that was not sent"
	wrongAsk  = "it asked more of the gateway than is answered"
	wrongSpan = "it sent something beside its answer"
)

// whole reads an answer that is one message.
func (r *remote) whole(response *http.Response, id, limit int64) *answer {
	if response.ContentLength > limit {
		return &answer{large: true}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	switch {
	case err != nil:
		return &answer{lost: err}
	case int64(len(body)) > limit:
		return &answer{large: true}
	}
	m, err := readMessage(body)
	switch {
	case err != nil:
		return &answer{bad: err.Error()}
	case m.asks:
		return &answer{bad: wrongSpan}
	case !m.answers(id) && (m.failed == nil || m.id != nil):
		return &answer{bad: wrongID}
	}
	return answerOf(m)
}

// stream reads a stream up to the answer. All of it together is no longer than an
// answer may be.
func (r *remote) stream(ctx context.Context, response *http.Response, id int64, e *exchange) *answer {
	stream := newEvents(&bounded{response.Body, e.limit})
	for asked := 0; ; {
		data, err := stream.next()
		switch {
		case errors.Is(err, errLarge):
			return &answer{large: true}
		case errors.Is(err, io.EOF):
			return &answer{lost: io.ErrUnexpectedEOF}
		case err != nil:
			return &answer{lost: err}
		}
		m, err := readMessage(data)
		switch {
		case err != nil:
			return &answer{bad: err.Error()}
		case m.asks && m.id == nil:
			r.notice(m)
			e.hear(m)
		case m.asks:
			if asked++; r.modern() || asked > maxRequests {
				return &answer{bad: wrongAsk}
			}
			r.reply(ctx, m)
		case m.answers(id):
			return answerOf(m)
		default:
			return &answer{bad: wrongID}
		}
	}
}

// notice takes a notification. All but one, and what is of the call itself, are of no use
// here: nothing was asked for that they could tell of.
func (r *remote) notice(m *message) {
	if m.method == noticeChanged {
		r.client.ring(r.place.server)
	}
}

// reply answers what a server of the older revisions asks.
func (r *remote) reply(ctx context.Context, m *message) {
	request, err := r.request(ctx, http.MethodPost)
	if err != nil {
		return
	}
	body := reply(m)
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if response, _, err := r.client.options.Outbound.Send(request, r.place.addresses, false); err == nil {
		response.Body.Close()
	}
}

// reply is the answer to what a server asks: ping, and nothing else.
func reply(m *message) []byte {
	head := []byte(`{"jsonrpc":"2.0","id":`)
	tail := `,"error":{"code":-32601,"message":"this client offers nothing"}}`
	if m.method == methodPing {
		tail = `,"result":{}}`
	}
	return append(append(head, m.id...), tail...)
}
