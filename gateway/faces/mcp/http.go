package mcp

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/refusal"
)

// Mount mounts the routes of the face.
func (f *Face) Mount(s *server.Server) {
	s.Mount(server.Route{
		Method: http.MethodPost, Path: path, Refuse: f.refuse, Serve: f.serve(s), ExtraHeaders: []string{},
		MaxBody: f.maxMessageBytes, RefuseOrigin: f.refuseOrigin, Completes: looksLikeResponse,
	})
	f.mountMetadata(s)
}

// refuseOrigin refuses a request for its Origin or its Host, with the status of the protocol,
// 403.
func (f *Face) refuseOrigin(c *gin.Context, refused *refusal.Error) {
	fault := refusalError(refused).withStatus(http.StatusForbidden)
	fault.Code = fault.status
	f.writeResponse(c, nil, &response{fault: fault})
	c.Abort()
}

// serve answers the messages that come over HTTP.
func (f *Face) serve(s *server.Server) func(*gin.Context, server.Request) {
	return func(c *gin.Context, came server.Request) { f.serveMessage(s, c, came) }
}

// serveMessage answers one message over HTTP.
func (f *Face) serveMessage(s *server.Server, c *gin.Context, came server.Request) {
	admission, err := f.options.Executor.Kernel.Admit(c.Request.Context(), came.Request)
	if err != nil {
		f.refuse(c, refusal.From(refusal.Identity, err))
		return
	}
	accept := c.Request.Header["Accept"]
	if len(accept) > 0 && !accepts(accept, contentJSON) {
		f.refuse(c, refusal.New(refusal.BadRequest, "The answer is application/json, which the header Accept does not take."))
		return
	}
	stream := newEventStream(c)
	r := request{admission: admission, headers: c.Request.Header}
	r.pause = func(_ context.Context, wait func(context.Context)) *refusal.Error { return s.Park(c, wait) }
	if accepts(accept, contentEvents) {
		server.KeepBody(c) // a stream begins before the call has ended
		r.notifier = &notifier{ctx: c.Request.Context(), send: stream.send}
		r.elicitor = stream.elicitor(s)
		r.pause = stream.pause(s)
	}
	m, a := f.handleHTTP(c.Request.Context(), r, came.Body)
	if stream.begun {
		stream.finish(m, a)
		return
	}
	f.writeResponse(c, m, a)
}

// handleHTTP reads a message and answers it; a notification has no answer.
func (f *Face) handleHTTP(ctx context.Context, r request, body []byte) (*message, *response) {
	m, fault := readMessage(body)
	if fault != nil {
		return m, &response{fault: fault}
	}
	if m.IsResponse() {
		return m, f.respond(r.admission, m, r.headers)
	}
	r.message = m
	if r.modern, fault = m.checkRevision(r.headers); fault == nil {
		r.elicitor, r.session, fault = r.readSession()
		r.inSession(r.session)
	}
	switch {
	case fault != nil:
		return m, &response{fault: fault}
	case m.IsNotification():
		return m, nil
	}
	if r.idempotencyKey, fault = m.idempotencyKey(r.headers); fault != nil {
		return m, &response{fault: fault}
	}
	return m, f.handle(ctx, r)
}

// accepts reports whether a header Accept allows a media type. The type itself takes precedence
// over a range like text/*, and that over */*.
func accepts(values []string, media string) bool {
	kind, _, _ := strings.Cut(media, "/")
	ranges := []string{"*/*", kind + "/*", media}
	closest, taken := -1, false
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		mediaType, params, _ := strings.Cut(part, ";")
		at := slices.Index(ranges, strings.ToLower(strings.TrimSpace(mediaType)))
		switch {
		case at > closest:
			closest, taken = at, !hasZeroWeight(params)
		case at == closest && at >= 0:
			taken = taken || !hasZeroWeight(params)
		}
	}
	return taken
}

// hasZeroWeight reports whether the parameters of a range exclude it by the weight 0 (RFC 9110,
// section 12.4.2).
func hasZeroWeight(params string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, weight, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(name, "q") && strings.HasPrefix(weight, "0") && strings.Trim(weight, "0.") == "" {
			return true
		}
	}
	return false
}

// refuse answers a request that was refused before its message was read.
func (f *Face) refuse(c *gin.Context, refused *refusal.Error) {
	f.writeResponse(c, nil, &response{fault: refusalError(refused)})
	c.Abort()
}

// writeResponse answers over HTTP.
func (f *Face) writeResponse(c *gin.Context, m *message, a *response) {
	if a == nil {
		c.Status(http.StatusAccepted)
		c.Writer.WriteHeaderNow()
		return
	}
	if a.callID != "" {
		c.Header(server.HeaderCallID, a.callID)
	}
	if a.session != "" {
		c.Header(wire.HeaderSession, a.session)
	}
	server.LogRefusal(c, a.refusal())
	status := a.status()
	switch {
	case a.fault != nil && a.fault.refused != nil:
		server.RefusalHeaders(c, a.fault.refused)
		if status == http.StatusUnauthorized {
			c.Header("WWW-Authenticate", f.challenge())
		}
	case a.failed != nil && a.failed.RetryAfterMS > 0:
		server.RefusalHeaders(c, a.failed)
	}
	c.Header("Cache-Control", "no-store")
	c.Data(status, contentJSON, append(a.encode(m), '\n'))
}
