package chat

import (
	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/refusal"
)

const contentJSON = "application/json; charset=utf-8"

// writeFailure answers with a failure: the provider's own error as it was sent, or ours in the shape of
// the API.
func writeFailure(c *gin.Context, f *turns.Failure) {
	if !f.WriteUpstream(c) {
		f.Write(c, contentJSON, append(turns.OpenAIError(f), '\n'))
	}
}

// Refuse answers a request that did not get as far as a face of OpenAI's API, in its shape.
func Refuse(c *gin.Context, refused *refusal.Error) { writeFailure(c, turns.Unserved(refused)) }

// bad is a fault of the request, at a parameter.
func bad(param, format string, args ...any) *turns.Failure { return turns.Bad(param, format, args...) }
