package responses

import (
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
func refuse(c *gin.Context, refused *refusal.Error) { writeFailure(c, turns.Unserved(refused)) }

// bad is a fault of the request, at a parameter.
func bad(param, format string, args ...any) *turns.Failure { return turns.Bad(param, format, args...) }
