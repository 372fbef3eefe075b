package responses

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/wrapper"
)

// wire is the wire of the Responses API.
type wire struct{ ledger *ledger }

var spec = &turns.Spec{
	Wire: upstream.ResponsesWire, Rows: []*turns.Row{&rowMessage.Row, &rowRefusal.Row, &rowFunction.Row},
	Own: ownMembers, Forwarded: [][]string{forwardedMembers}, MaxBody: maxBodyBytes, MaxName: 64, Import: "responses",
	UnknownKey: "responses: {unknown_items: pass}",
	Count:      &turns.Count{Endpoint: upstream.InputTokens, Answer: count}, Structured: [][]string{{"text", "format"}}, Ordered: true,
}

// Spec is of turns.Wire.
func (*wire) Spec() *turns.Spec { return spec }

// Error is of turns.Wire.
func (*wire) Error(f *turns.Failure, _ string) []byte { return turns.OpenAIError(f) }

// Face answers requests. It is safe for concurrent use.
type Face struct {
	options turns.Options
	wire    *wire
}

// New returns the face of a kernel.
func New(options turns.Options) *Face {
	return &Face{options: options, wire: &wire{ledger: newLedger()}}
}

// maxBodyBytes is how long a request may be, and how much a run may add to it.
const maxBodyBytes = 8 << 20

// Mount mounts the routes of the face. All other paths of the API below /v1/responses are
// refused: a stored response was never judged (RS-71).
func (f *Face) Mount(s *server.Server) {
	respond := turns.Serve(f.wire, f.options)
	route := server.Route{
		Method: http.MethodPost, Path: "/v1/responses", Refuse: refuse, MaxBody: func() int { return maxBodyBytes },
		ExtraHeaders: []string{turns.HeaderMode},
		Serve: func(c *gin.Context, received server.Request) {
			if isUpgrade(c.Request) {
				refuseUpgrade(c)
				return
			}
			respond(c, received)
		},
	}
	s.Mount(route)
	route.Path, route.Serve = "/v1/responses/input_tokens", turns.ServeCount(f.wire, f.options)
	s.Mount(route)
}

// count is how many tokens a request would take, in an object of its own (RS-70).
func count(body []byte) (answer []byte, ok bool) {
	members, err := rawjson.Read(body)
	number := members.Get("input_tokens")
	if err != nil || number == nil || len(number) > 20 || number[0] < '0' || number[0] > '9' {
		return nil, false
	}
	o := rawjson.Object{rawjson.Field("object", rawjson.Quote("response.input_tokens")), rawjson.Field("input_tokens", number)}
	return append(wrapper.Escape(o.Bytes()), '\n'), true
}

// refuse answers a request that did not get as far as this face.
func refuse(c *gin.Context, refused *refusal.Error) {
	if isUpgrade(c.Request) && refused.Stage == refusal.Request {
		refuseUpgrade(c)
		return
	}
	turns.Refuse(&wire{})(c, refused)
}

// isUpgrade reports whether a request asks for a WebSocket.
func isUpgrade(r *http.Request) bool { return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") }

// refuseUpgrade refuses a WebSocket by the one status at which Codex takes HTTP at once: any other it
// would ask for again and again first (RFC 9110, section 15.5.22).
func refuseUpgrade(c *gin.Context) {
	refused := turns.Unserved(refusal.New(refusal.MethodNotAllowed, "There are no WebSockets here. Send POST /v1/responses over HTTP."))
	c.Header("Upgrade", "HTTP/1.1")
	c.Header("Connection", "Upgrade, close")
	refused.Log(c)
	c.Data(http.StatusUpgradeRequired, "application/json; charset=utf-8", append(turns.OpenAIError(refused), '\n'))
	c.Abort()
}

// bad is a fault of the request, at a parameter.
func bad(param, format string, args ...any) *turns.Failure { return turns.Bad(param, format, args...) }
