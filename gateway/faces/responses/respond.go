package responses

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/faces/responses/internal/emit"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
)

// Mount mounts the routes of the face. All other paths of the API below /v1/responses are
// refused: a stored response was never judged (RS-71).
func (f *Face) Mount(s *server.Server) {
	for path, serve := range map[string]func(*Face) handler{
		"/v1/responses":              func(f *Face) handler { return f.respond },
		"/v1/responses/input_tokens": func(f *Face) handler { return f.countTokens },
	} {
		s.Mount(server.Route{
			Method: http.MethodPost, Path: path, Refuse: refuse, Serve: serve(f),
			MaxBody: func() int { return maxBodyBytes }, ExtraHeaders: []string{turns.HeaderMode},
		})
	}
}

// respond answers a request for a response.
func (f *Face) respond(c *gin.Context, received server.Request) {
	if isUpgrade(c.Request) {
		refuseUpgrade(c)
		return
	}
	r, err := f.newRun(c, received)
	if err != nil {
		writeFailure(c, turns.FailureOf(err))
		return
	}
	if r.request.stream {
		r.stream = emit.NewStream(r.NewEventWriter(c), r.request.model, r.encodeResponse)
		r.KeepAlive = r.stream.Comment // which clients pass over (RS-64)
		defer r.stream.Release()
	}
	r.Answer(c, r)
}

// Finish answers with the last turn.
func (r *run) Finish(c *gin.Context) {
	if r.stream != nil {
		r.finishStream()
		return
	}
	r.SetHeaders(c)
	r.writeResponse(c, r.last)
}

// Fail answers with a failure: in the stream if that has begun.
func (r *run) Fail(c *gin.Context, f *turns.Failure) {
	if r.stream != nil && r.stream.Begun() {
		r.failStream(f)
		return
	}
	r.SetHeaders(c)
	writeFailure(c, f)
}

// FinishMessage answers with a text in place of the last turn of the model.
func (r *run) FinishMessage(c *gin.Context, text string) {
	if r.stream != nil {
		r.finishStreamWith(text)
		return
	}
	r.SetHeaders(c)
	reply := *r.last.reply
	reply.Status = "completed"
	r.writeOutput(c, &reply, [][]byte{emit.EncodeMessage(emit.TextItem(text), "completed", true)})
}
