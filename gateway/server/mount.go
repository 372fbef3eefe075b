package server

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
)

func (s *Server) newEndpoint(r Route, path string) *endpoint {
	known := headers(r)
	single := slices.Concat([]string{"Authorization", "Content-Type", "Content-Encoding"}, known, []string{HeaderKey, headerTrace})
	if r.APIKey {
		single = append(single, headerAPIKey)
	}
	e := &endpoint{
		Route: r, server: s, path: path, known: known, single: single,
		log:      s.options.RequestLog.With("method", r.Method, "route", path).Handler(),
		errorLog: s.options.Log.With("method", r.Method, "route", path).Handler(),
	}
	e.begin, e.end = s.options.Metrics.Route(path)
	return e
}

// Mount adds a route. It must not be called once requests are served.
func (s *Server) Mount(r Route) {
	if r.Refuse == nil {
		r.Refuse = s.options.Refuse
	}
	if r.RefuseOrigin == nil {
		r.RefuseOrigin = r.Refuse
	}
	if len(r.MediaTypes) == 0 {
		r.MediaTypes, r.ExpectedMedia = []string{mediaJSON}, mediaJSON
	}
	s.refusals[r.Path] = r.Refuse
	e := s.newEndpoint(r, r.Path)
	s.engine.Handle(r.Method, r.Path, e.observe, e.serve)
}

// serve reads the request and has the face answer it.
func (e *endpoint) serve(c *gin.Context) {
	defer safe.Catch(func(panicked error) { e.refusePanic(c, panicked) })
	w := responseOf(c)
	if refused := e.server.options.AllowedOrigins.Check(c.Request); refused != nil {
		e.RefuseOrigin(c, refused)
		return
	}
	defer func() { w.body.release(w.client) }()
	if refused := e.receive(c, w); refused != nil {
		e.Refuse(c, refused)
		return
	}
	if e.Pool != Free {
		if !e.enter(w) {
			e.Refuse(c, e.server.overloaded())
			return
		}
		defer func() { w.slot.Release(w.client, 1) }()
	}
	if e.Pool == Streams {
		ctx, done := e.server.untilDrained(c.Request.Context())
		defer done()
		c.Request = c.Request.WithContext(ctx)
	}
	request := w.request
	request.Slot = Slot{e.server, c}
	w.request = Request{} // the face alone holds the body from now on
	e.Serve(c, request)
}

// receive reads the request. On every route that is not Public the caller is identified before
// anything of its body is read. The bytes of the body count until the answer begins; see
// KeepBody.
func (e *endpoint) receive(c *gin.Context, w *responseWriter) *refusal.Error {
	limit := 0
	if e.MaxBody != nil {
		limit = e.MaxBody()
	}
	refused := e.readHead(c, w, limit)
	if refused != nil && c.Request.ContentLength != 0 &&
		(refused.Code == refusal.Unauthenticated || refused.Code == refusal.RequestTooLarge) {
		w.setHeader("Connection", "close") // else net/http would read some of the body before it answers
	}
	if refused == nil && e.MaxBody != nil {
		w.request.Body, refused = e.server.readBody(w, c.Request, e.Route, limit)
	}
	return refused
}

// readHead reads the head of a request into w.request and identifies the caller.
func (e *endpoint) readHead(c *gin.Context, w *responseWriter, limit int) (refused *refusal.Error) {
	if e.Public && e.Admit != nil {
		refused = e.Admit(c)
	}
	if refused == nil {
		refused = e.readHeaders(c.Request, w)
	}
	if refused == nil && e.Admit != nil && !e.Public {
		refused = e.Admit(c)
	}
	if refused == nil && e.MaxBody != nil {
		w.request.Media, refused = checkBodyHeaders(c.Request, e.Route, limit)
	}
	if refused != nil {
		return refused
	}
	client := w.request.CallerAddress
	switch {
	case !e.Public:
		var err error
		if client, err = e.server.options.Identify(c.Request.Context(), &w.request.Request); err != nil {
			return refusal.From(refusal.Identity, err)
		}
	case e.ClientKey != nil:
		client = e.ClientKey(c)
	}
	w.client, w.identified = client, !e.Public || e.ClientKey != nil
	return nil
}

// enter takes the slot of a request, or returns false while too many are being answered, in
// all or of the same caller. A request counts once its body has been read: a body that drips
// must not keep others out.
func (e *endpoint) enter(w *responseWriter) bool {
	pools := e.server.pools
	w.slot = pools.acquire(e.Pool, w.client)
	if w.slot == nil && e.Completes != nil && e.Completes(w.request) {
		w.slot = pools.acquire(Reserved, w.client)
	}
	return w.slot != nil
}

// refusePanic turns a panic into a refusal. The log has the kind of the panic, not its value,
// which may hold data of the caller. If the answer has begun, the connection is closed.
func (e *endpoint) refusePanic(c *gin.Context, panicked error) {
	refused := refusal.From(refusal.Any, panicked)
	if c.Writer.Written() {
		LogRefusal(c, refused)
		panic(http.ErrAbortHandler)
	}
	e.Refuse(c, refused)
}
