package responses

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/refusal"
)

type handler = func(*gin.Context, server.Request)

const contentJSON = "application/json; charset=utf-8"

// writeFailure answers with a failure: the provider's own error as it was sent (RS-80), or ours
// in the shape of the API (RS-82).
func writeFailure(c *gin.Context, f *turns.Failure) {
	if !f.WriteUpstream(c) {
		f.Write(c, contentJSON, append(turns.OpenAIError(f), '\n'))
	}
}

// refuse answers a request that did not get as far as this face.
func refuse(c *gin.Context, refused *refusal.Error) {
	if isUpgrade(c.Request) && refused.Stage == refusal.Request {
		refuseUpgrade(c)
		return
	}
	writeFailure(c, turns.Unserved(refused))
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
	c.Data(http.StatusUpgradeRequired, contentJSON, append(turns.OpenAIError(refused), '\n'))
	c.Abort()
}

// bad is a fault of the request, at a parameter.
func bad(param, format string, args ...any) *turns.Failure { return turns.Bad(param, format, args...) }
