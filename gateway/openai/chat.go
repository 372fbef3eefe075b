package openai

import (
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/upstream"
)

// chat answers a request for a completion.
func (f *Face) chat(c *gin.Context, request server.Request) {
	r, err := f.newRun(c, request)
	if err != nil {
		writeFailure(c, turns.FailureOf(err))
		return
	}
	var events *eventStream // nil: the answer is one body
	if r.request.stream {
		events = &eventStream{EventWriter: r.NewEventWriter(c), run: r}
		r.stream, r.KeepAlive = events, events.Comment
		defer events.Release()
	}
	failed := r.Turns(c.Request.Context(), r)
	switch {
	case failed != nil && failed.Message != "":
		failed.Log(c)
		r.answerMessage(c, events, failed.Message)
	case failed != nil && events != nil && events.Begun():
		events.fail(failed)
	case failed != nil:
		r.SetHeaders(c)
		writeFailure(c, failed)
	case events != nil:
		events.finish(r.last)
	default:
		r.SetHeaders(c)
		r.writeCompletion(c, r.last, r.appendChoice)
	}
}

// answerMessage answers with a text in place of the last turn of the model: in a stream, or as one
// body.
func (r *run) answerMessage(c *gin.Context, events *eventStream, text string) {
	if events != nil {
		events.finishMessage(r.last, text)
		return
	}
	t := *r.last.Completion
	t.Extra = nil // it belongs to what was refused
	r.SetHeaders(c)
	r.writeCompletion(c, &turn{Completion: &t, choices: r.last.choices}, func(b []byte, j *judgedChoice) []byte {
		b = strconv.AppendInt(append(b, `{"index":`...), int64(j.Index), 10)
		b = appendText(append(b, `,"message":{"role":"assistant","content":`...), &text)
		return append(b, `,"refusal":null},"logprobs":null,"finish_reason":"stop"}`...)
	})
}

// newRun admits the caller, then reads the request and decides how to run it.
func (f *Face) newRun(c *gin.Context, received server.Request) (*run, error) {
	opened, body, err := turns.Begin(c.Request.Context(), f.options, received, upstream.ChatWire, readRequest)
	if err != nil {
		return nil, err
	}
	r := &run{Run: opened, request: body}
	r.MaxAdded = maxBodyBytes
	if err = r.checkMembers(); err != nil {
		return nil, err
	}
	if err = r.SetMode(c.GetHeader(turns.HeaderMode)); err != nil {
		return nil, err
	}
	if r.Mode == gateway.ModeCall && body.n > 1 {
		return nil, bad("n", "\"n\" must be 1 where Callgate runs the tools.")
	}
	if err = r.BringTools(body.definitions); err != nil {
		return nil, err
	}
	if err = r.SetOffer(body.tools, r.unknownTool); err != nil {
		return nil, err
	}
	if err = r.NarrowChoice(body.choice, body.tools); err != nil {
		return nil, err
	}
	return r, r.writeHistory(c.Request.Context())
}
