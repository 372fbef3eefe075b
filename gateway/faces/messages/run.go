package messages

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	wire "github.com/callgate/callgate/upstream/messages"
)

// request is a request for a reply, as it was read.
type request struct {
	members rawjson.Object // in their order
	model   string
	tools   []toolEntry // nil: it has none
	changes []toolChange
	choice  turns.ToolChoice
	// singleCall says that the model may make one call in a turn.
	singleCall bool
	stream     bool
	// unknownBlock is a content block of a type that is not known in its place.
	unknownBlock toolUnknown
}

// Model is the model that is requested.
func (r *request) Model() string { return r.model }

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
	// mentionsKey reports whether the operator's key stands in a text of that answer.
	mentionsKey func(text []byte) bool
}

// setHeaders sets the headers of an answer: those of the provider, and of the run.
func (r *run) setHeaders(c *gin.Context) {
	setHeaders(c, r.answered)
	r.SetHeaders(c)
}

// screen takes out of a reply's head what a reader could take for a call: nobody judges it.
func (r *run) screen(reply *wire.Reply) { reply.Screen(rawjson.HoldsNoCall, r.request.model) }

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

// body is the next request to the model: the application's, with changes only to the members that
// this face answers for.
func (r *run) body() []byte {
	o := r.request.members
	if r.Route.UpstreamModel != r.request.model {
		o = o.Set("model", rawjson.Quote(r.Route.UpstreamModel))
	}
	if r.tools != nil {
		o = o.Set("tools", r.tools)
	} else if o = o.Without("tools"); len(r.Offer.Tools) == 0 { // no message has one either
		o = o.Without("tool_choice")
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
	return wire.Options{MaxBytes: r.Route.MaxBody(), Unknown: r.allowsUnknown(), Cites: rawjson.HoldsNoCall}
}

func (r *run) allowsUnknown() bool { return r.Route.Rules.Messages.UnknownBlocks == upstream.Pass }

// unreadable is the failure of an answer that breaks the rules of the wire. The cause is for the
// operator.
func (r *run) unreadable(err error) error {
	var provider *wire.ProviderError
	switch {
	case errors.As(err, &provider):
		status := &upstream.StatusError{Upstream: r.Route.Upstream, Status: statusOf(provider.Type)}
		if r.mentionsKey(provider.Data) {
			status.Withheld = upstream.WithheldKey
		} else {
			status.Type, status.Body, status.ContentType = provider.Type, provider.Data, contentJSON
		}
		return &turns.Failure{Upstream: status, Retryable: true}
	case errors.Is(err, wire.ErrIncomplete):
		return upstream.BrokenOff(r.Route, err)
	case errors.Is(err, wire.ErrTooLarge):
		return upstream.TooLarge(r.Route, err)
	}
	return upstream.Malformed(r.Route, err)
}
