package chat

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
	a := answerer{run: r}
	if r.request.stream {
		a.events = &eventStream{EventWriter: r.NewEventWriter(c), run: r}
		r.stream, r.KeepAlive = a.events, a.events.Comment
		defer a.events.Release()
	}
	r.Answer(c, a)
}

// answerer is a run that answers a request of HTTP.
type answerer struct {
	*run
	events *eventStream // nil: the answer is one body
}

// Finish answers with the last turn.
func (r answerer) Finish(c *gin.Context) {
	if r.events != nil {
		r.events.finish(r.last)
		return
	}
	r.SetHeaders(c)
	r.writeCompletion(c, r.last, r.appendChoice)
}

// Fail answers with a failure: in the stream if that has begun.
func (r answerer) Fail(c *gin.Context, f *turns.Failure) {
	if r.events != nil && r.events.Begun() {
		r.events.fail(f)
		return
	}
	r.SetHeaders(c)
	writeFailure(c, f)
}

// FinishMessage answers with a text in place of the last turn of the model.
func (r answerer) FinishMessage(c *gin.Context, text string) {
	if r.events != nil {
		r.events.finishMessage(r.last, text)
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
