package responses

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/wrapper"
)

// countTokens answers how many tokens a request would take, after the checks that the request
// itself would meet (RS-70).
func (f *Face) countTokens(c *gin.Context, received server.Request) {
	r, err := f.newRun(c, received)
	if err == nil && r.Client() == nil {
		err = refusal.New(refusal.UpstreamUnavailable, "There is no way to ask the model.")
	}
	if err != nil {
		writeFailure(c, turns.FailureOf(err))
		return
	}
	answer, err := r.Client().Post(c.Request.Context(), r.Route, upstream.Request{Endpoint: upstream.InputTokens, Body: r.requestBody()})
	if err != nil {
		writeFailure(c, turns.FailureOf(err))
		return
	}
	members, err := rawjson.Read(answer.Body)
	number := members.Get("input_tokens")
	if err != nil || number == nil || len(number) > 20 || number[0] < '0' || number[0] > '9' {
		writeFailure(c, turns.FailureOf(refusal.New(refusal.UpstreamUnavailable, "The model's provider did not answer with a number of tokens.")))
		return
	}
	o := rawjson.Object{rawjson.Field("object", rawjson.Quote("response.input_tokens")), rawjson.Field("input_tokens", number)}
	c.Data(http.StatusOK, contentJSON, append(wrapper.Escape(o.Bytes()), '\n'))
}
