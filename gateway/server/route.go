package server

import (
	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// Route is one path of a face.
type Route struct {
	Method, Path string
	// Pool says with what else it shares its bound.
	Pool Pool
	// Completes tells whether a request of the lane Calls brings what a call waits for, and
	// is no call itself: where calls have all the room of theirs, it takes what is
	// Reserved. It must be quick; nil is none.
	Completes func(Request) bool
	// Refuse writes a refusal as the face does, tells Note and RetryAfter of it,
	// and aborts; nil is the door's.
	Refuse func(*gin.Context, *refusal.Error)
	// Public says that nobody need say who asks: a header Authorization is for somebody
	// else, and not looked at. Of the bounds, such a request is counted as Whose says;
	// a nil one, by its address.
	Public    bool
	ClientKey func(*gin.Context) string
	// AnyScheme says that a header Authorization of another form than a credential's
	// is none, and no fault by itself: whether one is needed, the kernel asks.
	AnyScheme bool
	// Admit refuses requests by their head, before their body is read; nil admits all.
	// Where a route is Open it is asked before anything else is looked at, so that who
	// is not admitted is told nothing but that.
	Admit func(*gin.Context) *refusal.Error
	// Serve answers a request that was read.
	Serve func(*gin.Context, Request)
	// MaxBody is how long a body may be, at this moment; nil reads none.
	MaxBody func() int
	// MediaTypes are the types that a body may be of, and Expected is what a refusal says
	// of them; both absent: application/json.
	MediaTypes    []string
	ExpectedMedia string
	// RefuseOrigin writes the refusal of a request by its Origin or its Host, and aborts;
	// nil is Refuse.
	RefuseOrigin func(*gin.Context, *refusal.Error)
	// ExtraHeaders are the headers of Callgate that mean something here beside those
	// that say for whom, as net/http writes their names.
	ExtraHeaders []string
}

// Request is a request as it was read: who asks, and for whom as far as its head
// says it.
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

// receive reads the request. Who asks is settled before anything of its body is read,
// on every route that is not Open. What the body holds counts until it is answered, or
// until the answer begins; see Keep.
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

// readHead reads the head of a request, and says who asks. A refusal that comes before
// that is of the head alone.
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
