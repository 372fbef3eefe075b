package server

import (
	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/refusal"
)

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
	s.engine.Handle(r.Method, r.Path, s.observe, recoverPanic(r), s.receive(r), s.limitInFlight(r), func(c *gin.Context) {
		request := c.MustGet(keyRequest).(Request)
		c.Set(keyRequest, nil) // the face alone holds the body from now on
		r.Serve(c, request)
	})
}

// receive reads the request. On every route that is not Public the caller is identified before
// anything of its body is read. The bytes of the body count until the answer begins; see
// KeepBody.
func (s *Server) receive(r Route) gin.HandlerFunc {
	return func(c *gin.Context) {
		if refused := s.options.AllowedOrigins.Check(c.Request); refused != nil {
			r.RefuseOrigin(c, refused)
			return
		}
		limit := 0
		if r.MaxBody != nil {
			limit = r.MaxBody()
		}
		request, refused := s.readHead(c, r, limit)
		if refused != nil && c.Request.ContentLength != 0 && (refused.Code == refusal.Unauthenticated || refused.Code == refusal.RequestTooLarge) {
			c.Header("Connection", "close") // else net/http would read some of the body before it answers
		}
		if refused == nil && r.MaxBody != nil {
			body := &countedBody{ReadCloser: c.Request.Body, quota: s.bodyBytes, client: c.GetString(keyClient), extra: s.extraBodyBytes(r)}
			responseOf(c).onBegin = body.release
			defer body.release()
			request.Body, refused = s.readBody(c, body, limit)
		}
		if refused != nil {
			r.Refuse(c, refused)
			return
		}
		c.Set(keyRequest, request)
		c.Next()
	}
}

// readHead reads the head of a request and identifies the caller.
func (s *Server) readHead(c *gin.Context, r Route, limit int) (request Request, refused *refusal.Error) {
	if r.Public && r.Admit != nil {
		refused = r.Admit(c)
	}
	if refused == nil {
		request, refused = readHead(c, r)
	}
	if refused == nil && r.Admit != nil && !r.Public {
		refused = r.Admit(c)
	}
	if refused == nil && r.MaxBody != nil {
		request.Media, refused = checkBodyHeaders(c.Request, r, limit)
	}
	if refused != nil {
		return request, refused
	}
	client := request.CallerAddress
	switch {
	case !r.Public:
		var err error
		if client, err = s.options.Identify(c.Request.Context(), &request.Request); err != nil {
			return request, refusal.From(refusal.Identity, err)
		}
	case r.ClientKey != nil:
		client = r.ClientKey(c)
	}
	c.Set(keyClient, client)
	c.Set(keyIdentified, !r.Public || r.ClientKey != nil)
	return request, nil
}
