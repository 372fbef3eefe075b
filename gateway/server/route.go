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
	// APIKey makes the header x-api-key a place of the credential too, beside Authorization.
	// Both may be there if they hold the same one (Anthropic's clients send either, or both).
	APIKey bool
	// Query are the names that the query of a path may have, each at most once; without any,
	// a query is refused.
	Query []string
	// Admit refuses requests by their head, before their body is read; nil admits all. On a
	// Public route it runs before any other check, so that a refused caller learns nothing
	// else.
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
	Slot  Slot
}

const mediaJSON = "application/json"
