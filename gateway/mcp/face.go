package mcp

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// Options are what a face works with.
type Options struct {
	Kernel *gateway.Kernel
	// Version is of this program, for clients that ask.
	Version string
	// AnswerTimeout is how long a client of before 2026-07-28 has for its answers to what
	// a tool asks; 0 is five minutes.
	AnswerTimeout time.Duration
	// RegistryNames has tools listed and called by the names of the registry, dots
	// included, instead of by their wire names.
	RegistryNames bool
	// ProtectedResource says where clients get the tokens that they are asked for; nil, where
	// they are asked for none.
	ProtectedResource *ProtectedResource
}

// Face answers messages. It is safe for concurrent use.
type Face struct {
	options Options
	waiting waiting
	levels  levels
}

// New returns the face of a kernel.
func New(options Options) *Face { return &Face{options: options} }

const (
	path        = "/mcp"
	contentJSON = "application/json"
	// around is what a message may hold beside the arguments of a call: answers to its
	// tool's questions among that.
	around = maxResponsesBytes + 64<<10
)

// Mount puts the face behind a door.
func (f *Face) Mount(d *server.Server) {
	d.Mount(server.Route{
		Method: http.MethodPost, Path: path, Refuse: f.refuse, Serve: f.post(d), ExtraHeaders: []string{},
		MaxBody: f.maxMessage, RefuseOrigin: f.forbid, Completes: mayRespond,
	})
	f.mountProtected(d)
}

// forbid refuses a request by its Origin or its Host, with the status that the protocol
// has for that.
func (f *Face) forbid(c *gin.Context, refused *refusal.Error) {
	fault := refuses(refused).at(http.StatusForbidden)
	fault.code = fault.status
	f.write(c, nil, &answer{fault: fault})
	c.Abort()
}

// maxMessage is how long a message may be: a longest call, and what is around it.
func (f *Face) maxMessage() int { return f.options.Kernel.ParserOptions().MaxBytes + around }

// post answers the messages that come through a door.
func (f *Face) post(d *server.Server) func(*gin.Context, server.Request) {
	return func(c *gin.Context, came server.Request) { f.take(d, c, came) }
}

// take answers one message over HTTP.
func (f *Face) take(d *server.Server, c *gin.Context, came server.Request) {
	admission, err := f.options.Kernel.Admit(c.Request.Context(), came.Request)
	if err != nil {
		f.refuse(c, refusal.From(refusal.Identity, err))
		return
	}
	accept := c.Request.Header["Accept"]
	if len(accept) > 0 && !takes(accept, contentJSON) {
		f.refuse(c, refusal.New(refusal.BadRequest, "The answer is application/json, which the header Accept does not take."))
		return
	}
	stream := &events{c: c}
	r := asked{admission: admission, headers: c.Request.Header}
	if takes(accept, contentEvents) {
		server.KeepBody(c) // a stream begins before the call has ended
		r.told = &reporter{ctx: c.Request.Context(), send: stream.send}
		r.host = stream.host(d)
	}
	m, a := f.answerHTTP(c.Request.Context(), r, came.Body)
	if stream.begun {
		stream.answer(m, a)
		return
	}
	f.write(c, m, a)
}

// answerHTTP reads a message and answers it; a notification has no answer.
func (f *Face) answerHTTP(ctx context.Context, r asked, body []byte) (*message, *answer) {
	m, fault := read(body)
	if fault != nil {
		return m, &answer{fault: fault}
	}
	if m.response {
		return m, f.respond(r.admission, m, r.headers)
	}
	r.message = m
	if r.modern, fault = m.agrees(r.headers); fault == nil {
		r.host, r.session, fault = r.of()
	}
	switch {
	case fault != nil:
		return m, &answer{fault: fault}
	case m.notification():
		return m, nil
	}
	if r.key, fault = m.key(r.headers); fault != nil {
		return m, &answer{fault: fault}
	}
	return m, f.answer(ctx, r)
}

// takes tells whether a header Accept takes a type: what it says of that itself holds
// before what it says of all of its kind, and that before what it says of everything.
func takes(values []string, media string) bool {
	kind, _, _ := strings.Cut(media, "/")
	ranges := []string{"*/*", kind + "/*", media}
	closest, taken := -1, false
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		said, params, _ := strings.Cut(part, ";")
		at := slices.Index(ranges, strings.ToLower(strings.TrimSpace(said)))
		switch {
		case at > closest:
			closest, taken = at, !rejects(params)
		case at == closest && at >= 0:
			taken = taken || !rejects(params)
		}
	}
	return taken
}

// rejects tells whether the parameters of a range say that it is not taken: that its
// weight is nothing (RFC 9110, section 12.4.2).
func rejects(params string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, weight, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(name, "q") && strings.HasPrefix(weight, "0") && strings.Trim(weight, "0.") == "" {
			return true
		}
	}
	return false
}

// refuse answers a request that did not get as far as its message.
func (f *Face) refuse(c *gin.Context, refused *refusal.Error) {
	f.write(c, nil, &answer{fault: refuses(refused)})
	c.Abort()
}

// write answers over HTTP.
func (f *Face) write(c *gin.Context, m *message, a *answer) {
	if a == nil {
		c.Status(http.StatusAccepted)
		c.Writer.WriteHeaderNow()
		return
	}
	if a.callID != "" {
		c.Header(server.HeaderCallID, a.callID)
	}
	if a.session != "" {
		c.Header(headerSession, a.session)
	}
	server.LogRefusal(c, a.refused())
	status := a.status()
	switch {
	case a.fault != nil && a.fault.refused != nil:
		server.RetryAfter(c, a.fault.refused)
		if status == http.StatusUnauthorized {
			c.Header("WWW-Authenticate", f.challenge())
		}
	case a.failed != nil && a.failed.RetryAfterMS > 0:
		server.RetryAfter(c, a.failed)
	}
	c.Header("Cache-Control", "no-store")
	c.Data(status, contentJSON, append(a.line(m), '\n'))
}

// line is an answer as JSON in which nothing hides.
func (a *answer) line(m *message) []byte {
	said := struct {
		Version string `json:"jsonrpc"`
		ID      any    `json:"id,omitempty"`
		Result  any    `json:"result,omitempty"`
		Error   any    `json:"error,omitempty"`
	}{Version: "2.0"}
	if a.result != nil {
		said.Result = a.result
	}
	if m != nil && m.id != nil && !m.response { // the id of a response is one of ours
		said.ID = m.id
	}
	if a.fault != nil {
		said.Error = struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
			Data    any    `json:"data,omitempty"`
		}{a.fault.code, a.fault.message, a.fault.data}
	}
	b, err := wrapper.Marshal(said)
	if err != nil {
		return []byte(`{"jsonrpc":"2.0","error":{"code":-32603,"message":"Callgate failed."}}`)
	}
	return b
}
