package mcp

import (
	"context"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/door"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// Options are what a face works with.
type Options struct {
	Kernel *gateway.Kernel
	// Version is of this program, for clients that ask.
	Version string
	// Pages are those that may ask.
	Pages door.Pages
}

// Face answers messages. It is safe for concurrent use.
type Face struct{ options Options }

// New returns the face of a kernel.
func New(options Options) *Face { return &Face{options: options} }

const (
	path        = "/mcp"
	contentJSON = "application/json"
	// around is what a message may hold beside the arguments of a call.
	around = 64 << 10
)

// Mount puts the face behind a door.
func (f *Face) Mount(d *door.Door) {
	d.Mount(door.Route{
		Method: http.MethodPost, Path: path, Refuse: refuse, Serve: f.post, Headers: []string{},
		MaxBody: f.maxMessage, Pages: true,
	})
}

// maxMessage is how long a message may be: a longest call, and what is around it.
func (f *Face) maxMessage() int { return f.options.Kernel.Output().MaxBytes + around }

// post answers one message over HTTP.
func (f *Face) post(c *gin.Context, came door.Asked) {
	refused := f.options.Pages.Host(c.Request)
	if refused == nil {
		refused = f.options.Pages.Origin(c.Request)
	}
	if refused != nil {
		f := refuses(refused).at(http.StatusForbidden)
		f.code = f.status
		write(c, nil, &answer{fault: f})
		return
	}
	admission, err := f.options.Kernel.Admit(c.Request.Context(), came.Request)
	if err != nil {
		refuse(c, refusal.From(refusal.Identity, err))
		return
	}
	if !accepts(c.Request.Header["Accept"]) {
		refuse(c, refusal.New(refusal.BadRequest, "The answer is application/json, which the header Accept does not take."))
		return
	}
	m, a := f.answerHTTP(c.Request.Context(), admission, c.Request.Header, came.Body)
	write(c, m, a)
}

// answerHTTP reads a message and answers it; a notification has no answer.
func (f *Face) answerHTTP(ctx context.Context, admission *gateway.Admission, h http.Header, body []byte) (*message, *answer) {
	m, fault := read(body)
	if fault != nil {
		return m, &answer{fault: fault}
	}
	modern, fault := m.agrees(h)
	switch {
	case fault != nil:
		return m, &answer{fault: fault}
	case m.notification():
		return m, nil
	}
	key, fault := m.key(h)
	if fault != nil {
		return m, &answer{fault: fault}
	}
	return m, f.answer(ctx, asked{message: m, admission: admission, modern: modern, headers: h, key: key})
}

// accepts tells whether a client takes JSON.
func accepts(values []string) bool {
	if len(values) == 0 {
		return true
	}
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		media, _, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(media)) {
		case contentJSON, "application/*", "*/*":
			return true
		}
	}
	return false
}

// refuse answers a request that did not get as far as its message.
func refuse(c *gin.Context, refused *refusal.Error) {
	write(c, nil, &answer{fault: refuses(refused)})
	c.Abort()
}

// write answers over HTTP.
func write(c *gin.Context, m *message, a *answer) {
	if a == nil {
		c.Status(http.StatusAccepted)
		c.Writer.WriteHeaderNow()
		return
	}
	if a.callID != "" {
		c.Header(door.HeaderCallID, a.callID)
	}
	door.Note(c, a.refused())
	status := a.status()
	switch {
	case a.fault != nil && a.fault.refused != nil:
		door.RetryAfter(c, a.fault.refused)
		if status == http.StatusUnauthorized {
			c.Header("WWW-Authenticate", "Bearer")
		}
	case a.failed != nil && a.failed.RetryAfterMS > 0:
		door.RetryAfter(c, a.failed)
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
	if m != nil && m.id != nil {
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
