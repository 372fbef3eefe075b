package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/internal/refuse"
)

// request is one request to a server, or a notification.
type request struct {
	id      int64 // 0 of a notification
	method  string
	params  []byte            // JSON; nil for none
	headers map[string]string // of HTTP, beside those of every request
	limit   int64             // of the response, in bytes
	once    bool              // it must not be sent twice
	// listener gets the progress reports with the token, and logs. It is nil, and the token
	// empty, if they are not wanted.
	listener *listener
	token    string
	// sent is set as soon as the request may have reached the server.
	sent bool
	// rejected is set if the server did not accept its token, and another one may be accepted.
	rejected bool
}

// reply is how a request ended: exactly one of its first members is set.
type reply struct {
	result      json.RawMessage
	rpcError    *jsonrpc.Error
	err         error  // there is no whole response
	invalid     string // it is in no form that can be used; the text holds nothing of the server's
	tooLarge    bool
	status      int  // of HTTP, if it is not 2xx and says nothing else
	unaddressed bool // an error came without the request's id, or nothing but responses to others
	mayBeTaken  bool // a status of 4xx does not say that the server has not come to the request

	lastEvent string        // the id of the last event of a stream that ended before the response
	pause     time.Duration // that the stream asked for

	retryAfter string
	redirect   string // the address that a status of 3xx points to
	session    string // the id of the session that begins with the response
}

// encode writes a request as JSON. The parameters stay byte for byte as they are.
func (q *request) encode() []byte {
	b := []byte(`{"jsonrpc":"2.0"`)
	if q.id != 0 {
		b = strconv.AppendInt(append(b, `,"id":`...), q.id, 10)
	}
	b = append(b, `,"method":"`+q.method+`"`...)
	if q.params != nil {
		b = append(append(b, `,"params":`...), q.params...)
	}
	return append(b, '}')
}

// encodeParams writes parameters: _meta, unless it is empty, and then members that are JSON
// already.
func encodeParams(meta map[string]any, members []byte) []byte {
	b := []byte("{")
	if len(meta) > 0 {
		b = append(append(b, `"_meta":`...), encodeJSON(meta)...)
		if len(members) > 0 {
			b = append(b, ',')
		}
	}
	return append(append(b, members...), '}')
}

// encodeJSON writes a value as JSON, and nothing in it as an escape that need not be one.
func encodeJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // texts and maps of texts can be
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// notify handles a notification that came before the response.
func (q *request) notify(m *message) {
	switch {
	case q.listener == nil:
	case m.method == wire.NoticeProgress:
		if r, ok := readProgress(m.params); ok {
			q.listener.onProgress(r)
		}
	case m.method == wire.NoticeMessage:
		if l, ok := readLog(m.params); ok {
			q.listener.onLog(l)
		}
	}
}

// doubtsSession reports whether a reply may mean that the server has no such session: servers say
// so by any status, and by any error. Too many requests are no such sign.
func (a *reply) doubtsSession() bool {
	return a.status != http.StatusTooManyRequests && (a.status != 0 || a.rpcError != nil || a.unaddressed || a.invalid != "")
}

// deniesSession reports whether the reply to a ping means that the server has no such session. A server that does not know
// pings knows the session; one that does not answer says nothing about it.
func (a *reply) deniesSession() bool {
	return a.doubtsSession() && (a.rpcError == nil || a.rpcError.Code != jsonrpc.CodeMethod)
}

// addressesNobody reports whether a reply is a status of 4xx that is about no request: the server, if it has no such
// session, has not come to the request. A proxy answers 408 after it has passed the request on.
func (a *reply) addressesNobody() bool {
	return a.status >= 400 && a.status < 500 && a.status != http.StatusRequestTimeout && !a.mayBeTaken
}

// asError describes a reply without a result for the operator.
func (a *reply) asError() error {
	switch {
	case a.err != nil:
		return a.err
	case a.tooLarge:
		return errTooLarge
	case a.rpcError != nil:
		return refuse.Reason(fmt.Sprintf("it answered with the JSON-RPC error %d", a.rpcError.Code))
	case a.redirect != "":
		return refuse.Reason(fmt.Sprintf("it answered with HTTP status %d, which points to %s: redirects are not followed; if that is the server's URL, state it", a.status, a.redirect))
	case a.status != 0:
		return refuse.Reason(fmt.Sprintf("it answered with HTTP status %d", a.status))
	}
	return refuse.Reason(a.invalid)
}

// errSessionGone is a session that the server no longer knows.
const errSessionGone refuse.Reason = "it has ended the session"

// replyOf is the reply in a response.
func replyOf(m *message) *reply {
	return &reply{result: m.result, rpcError: m.rpcError, unaddressed: m.rpcError != nil && m.id == nil}
}
