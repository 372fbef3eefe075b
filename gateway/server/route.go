package server

import (
	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// Route is one path of a face.
type Route struct {
	Method, Path string
	// Pool is the bound that its requests count in.
	Pool Pool
	// Completes reports whether a request of the pool Calls completes a waiting call, as a
	// callback or an answer does; such requests may use the Reserved slots if the pool is
	// full. It must be quick; nil means none does.
	Completes func(Request) bool
	// Refuse writes a refusal as the face does, calls LogRefusal and RetryAfter, and aborts;
	// nil is that of Options.
	Refuse func(*gin.Context, *refusal.Error)
	// Public makes the route serve callers without a credential: a header Authorization is
	// for another server, and dropped. The bounds count such a request by ClientKey; if that
	// is nil, by its address.
	Public    bool
	ClientKey func(*gin.Context) string
	// AnyScheme makes a header Authorization of another scheme count as none instead of
	// being refused; the kernel decides whether a credential is needed.
	AnyScheme bool
	// Admit refuses requests by their head, before their body is read; nil admits all. On a
	// Public route it runs before any other check, so that a caller who is not admitted
	// learns nothing else.
	Admit func(*gin.Context) *refusal.Error
	// Serve answers a request that was read.
	Serve func(*gin.Context, Request)
	// MaxBody returns how long a body may be now; nil reads none.
	MaxBody func() int
	// MediaTypes are the allowed types of a body, and ExpectedMedia is their name in a
	// refusal; without them, application/json.
	MediaTypes    []string
	ExpectedMedia string
	// RefuseOrigin writes the refusal of a request by its Origin or its Host, and aborts;
	// nil is Refuse.
	RefuseOrigin func(*gin.Context, *refusal.Error)
	// ExtraHeaders are the headers of Callgate that the route reads beside those of the
	// subject, as net/http writes their names.
	ExtraHeaders []string
}

// Request is a request as it was read: its caller, the subject that its head names, and its
// body.
type Request struct {
	gateway.Request
	Body  []byte
	Media string // of the body
}

const mediaJSON = "application/json"

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
	who := request.CallerAddress
	switch {
	case !r.Public:
		var err error
		if who, err = s.options.Identify(c.Request.Context(), &request.Request); err != nil {
			return request, refusal.From(refusal.Identity, err)
		}
	case r.ClientKey != nil:
		who = r.ClientKey(c)
	}
	c.Set(keyClient, who)
	return request, nil
}
