package messages

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	wire "github.com/callgate/callgate/upstream/messages"
	"github.com/callgate/callgate/wrapper"
)

// run is one request: the turns of the model until one is the answer.
type run struct {
	*turns.Run
	request   *request
	header    http.Header // of the requests to the model
	query     string
	tools     []byte   // for the model; nil: none
	offered   []string // registry names of the tools that messages have left
	added     [][]byte // messages that the run has added
	container []byte   // the id of the provider's container, as JSON; nil: none
	stream    *eventStream
	last      *turn
	answered  http.Header // of the last answer of the model
	executed  bool        // calls of an earlier turn were executed
}

// create answers a request for a reply.
func (f *Face) create(c *gin.Context, received server.Request) {
	r, err := f.newRun(c, received)
	if err != nil {
		writeFailure(c, nil, turns.FailureOf(err))
		return
	}
	if r.request.stream {
		r.stream = newEventStream(c, r)
		r.KeepAlive = r.stream.keepAlive
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
		writeFailure(c, r, failed)
	case r.stream != nil:
		r.stream.finish(r.last)
	default:
		r.write(c, r.last.reply.AppendMessage(nil, r.shownBlocks(), r.usage()))
	}
}

// write answers with a whole message.
func (r *run) write(c *gin.Context, message []byte) {
	r.setHeaders(c)
	turns.ExtendWriteDeadline(c)
	c.Data(http.StatusOK, contentJSON, wrapper.Escape(message))
}

// answerMessage answers with a text in place of the last turn of the model.
func (r *run) answerMessage(c *gin.Context, text string) {
	reply := r.last.reply.Ended("end_turn")
	block := wire.TextBlock(text)
	if r.stream != nil {
		r.stream.finishMessage(reply, &block)
		return
	}
	r.write(c, reply.AppendMessage(nil, []*wire.Block{&block}, r.usage()))
}

// setHeaders sets the headers of an answer: those of the provider, and of the run.
func (r *run) setHeaders(c *gin.Context) {
	setHeaders(c, r.answered)
	r.SetHeaders(c)
}

// usage is what all turns have taken.
func (r *run) usage() []byte {
	if sum := r.Usage().Encode(); sum != nil {
		return sum
	}
	return r.last.reply.Usage.Raw
}

// shows reports whether a block goes to the application. Where Callgate runs the tools, their calls
// stay here, and so does the thinking that led to them: its signature holds for a conversation that the
// application does not have.
func (r *run) shows(b wire.Kind) bool {
	return r.Mode != gateway.ModeCall || b != wire.Call && b != wire.Thinking
}

// shownBlocks are the blocks of the last turn that go to the application.
func (r *run) shownBlocks() []*wire.Block {
	var blocks []*wire.Block
	for i := range r.last.reply.Blocks {
		if b := &r.last.reply.Blocks[i]; r.shows(b.Kind) {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// RequestTurn requests the next turn from the model, and judges it.
func (r *run) RequestTurn(modelCtx, ctx context.Context) (*turns.Turn, error) {
	var (
		t   *turn
		err error
	)
	if r.stream == nil {
		t, err = r.requestWhole(modelCtx, ctx)
	} else {
		t, err = r.requestStream(modelCtx, ctx)
	}
	if err != nil {
		return nil, err
	}
	r.last = t
	if id := t.reply.ContainerID(); id != nil {
		r.container = id
	}
	usage := t.reply.Usage.Raw
	if !rawjson.HoldsNoCall(usage) {
		usage = t.reply.Usage.Sums()
	}
	return &turns.Turn{Decisions: []*gateway.Decision{t.decision}, Final: t.sent, Tokens: t.reply.Usage.Tokens(), Usage: usage}, nil
}

// Input is an input of the last turn: of a call its arguments, of the text all of it.
func (r *run) Input(i int) []byte {
	if at := i - r.last.texts; at >= 0 {
		return r.last.calls[at].Input
	}
	return r.last.text
}

// Append adds the last turn to the conversation exactly as it was received, and one message with the
// result of each of its calls (AM-73).
func (r *run) Append(outcomes []calls.Outcome) int {
	t := r.last
	if r.stream != nil {
		r.stream.endTurn(t)
	}
	r.executed = r.executed || t.decision.Refusal() == nil
	before := len(r.added)
	if blocks := t.reply.Blocks; len(blocks) > 0 {
		content := []byte{'['}
		for i := range blocks {
			if i > 0 {
				content = append(content, ',')
			}
			content = append(content, blocks[i].Raw...)
		}
		r.added = append(r.added, message("assistant", append(content, ']')))
	}
	var results []byte
	for i, call := range t.calls {
		outcome, report := outcomes[t.texts+i], &t.decision.Reports[t.texts+i]
		result := rawjson.Object{
			rawjson.Field("type", rawjson.Quote("tool_result")), rawjson.Field("tool_use_id", rawjson.Quote(call.ID)),
			rawjson.Field("content", rawjson.Quote(turns.Feedback(outcome, report.Tool))),
		}
		if outcome.Refusal != nil {
			result = append(result, rawjson.Field("is_error", []byte("true")))
		}
		results = append(append(results, ','), result.Bytes()...)
	}
	if len(t.calls) == 0 {
		first := max(0, slices.IndexFunc(t.decision.Reports, func(report gateway.Report) bool { return report.Refusal != nil }))
		results = append(results, ',')
		results = append(results, rawjson.Object{
			rawjson.Field("type", rawjson.Quote("text")), rawjson.Field("text", rawjson.Quote(turns.Feedback(outcomes[first], t.decision.Reports[first].Tool))),
		}.Bytes()...)
	}
	results[0] = '['
	r.added = append(r.added, message("user", append(results, ']')))
	size := 0
	for _, m := range r.added[before:] {
		size += len(m)
	}
	return size
}

func message(role string, content []byte) []byte {
	return rawjson.Object{rawjson.Field("role", rawjson.Quote(role)), rawjson.Field("content", content)}.Bytes()
}

// body is the next request to the model: the application's, with changes only to the members that
// this face answers for.
func (r *run) body() []byte {
	o := r.request.members
	if r.Route.UpstreamModel != r.request.model {
		o = o.Set("model", rawjson.Quote(r.Route.UpstreamModel))
	}
	if r.tools != nil {
		o = o.Set("tools", r.tools)
	}
	if len(r.added) > 0 {
		list := o.Get("messages")
		messages := slices.Clone(list[:len(list)-1]) // without its bracket
		for _, m := range r.added {
			messages = append(append(messages, ','), m...)
		}
		o = o.Set("messages", append(messages, ']'))
	}
	if r.container != nil && o.Get("container") == nil && len(r.added) > 0 {
		o = o.Set("container", r.container)
	}
	if r.request.choice.Required && !r.Choice.Required && r.Choice.Names == nil {
		choice, _ := rawjson.Members(o.Get("tool_choice")) // it was met
		o = o.Set("tool_choice", choice.Set("type", rawjson.Quote("auto")).Without("name").Bytes())
	}
	return o.Bytes()
}

// ask makes a request to the model.
func (r *run) ask(endpoint upstream.Endpoint) upstream.Request {
	return upstream.Request{Endpoint: endpoint, Query: r.query, Header: r.header, Body: r.body(), Last: wire.IsLast}
}

// post requests a whole answer.
func (r *run) post(ctx context.Context, endpoint upstream.Endpoint) (*upstream.Reply, error) {
	if r.Client() == nil {
		return nil, refusal.New(refusal.UpstreamUnavailable, "There is no way to ask the model.")
	}
	return r.Client().Post(ctx, r.Route, r.ask(endpoint))
}

// readerOptions are those of the one reading of the wire.
func (r *run) readerOptions() wire.Options {
	return wire.Options{MaxBytes: r.Route.MaxBody(), Unknown: r.allowsUnknown()}
}

func (r *run) allowsUnknown() bool { return r.Route.Rules.Messages.UnknownBlocks == upstream.Pass }

// unreadable is the failure of an answer that breaks the rules of the wire. The cause is for the
// operator.
func (r *run) unreadable(err error) error {
	var provider *wire.ProviderError
	switch {
	case errors.As(err, &provider):
		status := &upstream.StatusError{Upstream: r.Route.Upstream, Status: statusOf(provider.Type), Type: provider.Type, Body: provider.Data, ContentType: contentJSON}
		return &turns.Failure{Upstream: status, Retryable: true}
	case errors.Is(err, wire.ErrIncomplete):
		return upstream.BrokenOff(r.Route, err)
	case errors.Is(err, wire.ErrTooLarge):
		return upstream.TooLarge(r.Route, err)
	}
	return upstream.Malformed(r.Route, err)
}
