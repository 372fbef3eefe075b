package responses

import (
	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/upstream"
)

// respond answers a request for a response.
func (f *Face) respond(c *gin.Context, received server.Request) {
	r, err := f.newRun(c, received)
	if err != nil {
		writeFailure(c, turns.FailureOf(err))
		return
	}
	if r.request.stream {
		r.stream = newEventStream(c, r)
		r.KeepAlive = r.stream.Comment // which clients pass over (RS-64)
		defer r.stream.Release()
	}
	failed := r.Turns(c.Request.Context(), r)
	switch {
	case failed != nil && failed.Message != "":
		failed.Log(c)
		r.answerMessage(c, failed.Message)
	case failed != nil && r.stream != nil && r.stream.Begun():
		r.stream.fail(failed)
	case failed != nil:
		r.SetHeaders(c)
		writeFailure(c, failed)
	case r.stream != nil:
		r.stream.finish(r.last)
	default:
		r.SetHeaders(c)
		r.writeResponse(c, r.last)
	}
}

// answerMessage answers with a text in place of the last turn of the model.
func (r *run) answerMessage(c *gin.Context, text string) {
	if r.stream != nil {
		r.stream.finishMessage(r.last, text)
		return
	}
	r.SetHeaders(c)
	reply := *r.last.reply
	reply.Status = "completed"
	r.writeOutput(c, &reply, [][]byte{encodeMessage(textItem(text), "completed", true)})
}

// remember binds the response that the application knows by an id to its caller, where it may
// continue it. One that asks its caller is continued by its items: the provider has the calls, and not
// what they were asked by.
func (r *run) remember(id string) {
	if r.last.asked != nil {
		return
	}
	if r.Route.Rules.Responses.State != upstream.BindState || string(r.request.members.Get("store")) == "false" {
		return
	}
	principal := r.Admission.Principal()
	r.face.ledger.add(principal, r.Route.Upstream, id, r.last.reply.ID)
	for _, item := range r.last.reply.Items {
		if item.ID != "" {
			r.face.ledger.add(principal, r.Route.Upstream, item.ID, item.ID)
		}
	}
}
