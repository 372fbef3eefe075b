package responses

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/upstream/responses"
)

// request is a request as it was read.
type request struct {
	members rawjson.Object // in their order
	model   string
	stream  bool
	// singleCall says that the model may make one call in a turn.
	singleCall bool
}

// run is one request: the turns of the model until one is the answer.
type run struct {
	*turns.Run
	face    *Face
	header  http.Header // of the answer
	request *request
	reading responses.Options
	// registered is the admission without the tools that the request brings.
	registered *gateway.Admission
	choice     turns.ToolChoice // of the request

	tools      []definition // of the request, without those of its input
	named      bool         // the request names tools, here or in its input
	kinds      map[string]string
	wires      []string            // of tools that the client runs, in order
	defined    []turns.RequestTool // the same as they are defined
	namespaces map[string]bool
	// namespaceOf are the namespaces of tools that are in one, by their names on the wire.
	namespaceOf map[string]string
	toolCount   int
	inInput     bool                 // tools of the input are read
	inputTools  map[int][]definition // by the index of their item
	hasHosted   bool

	previous     string // previous_response_id at the provider; empty: none
	conversation conversation
	// asksAt is the entry of the tools by which the client says that it can be asked; empty: none.
	asksAt        string
	confirmations []confirmation // that are still to be taken
	lastOfModel   int            // the last item of the input that a model made; -1: none
	approvals     int            // rounds of approvals of calls at the provider
	// What those rounds have added to the conversation, and what they have taken; the next turn
	// counts them.
	approvedBytes  int
	approvedTokens int64
	stream         *eventStream
	last           *turn
	failed         *responses.ProviderError // the provider's own failure, of the last turn
	mentionsKey    func(text []byte) bool   // the operator's key stands in a text of the last stream
}

// readRequest reads the members of the body that do not depend on the model.
func readRequest(body []byte) (*request, error) {
	members, model, err := turns.ReadBody(body)
	if err != nil {
		return nil, err
	}
	q := &request{members: members, model: model}
	if q.stream, err = turns.Flag(members, "stream", false); err != nil {
		return nil, err
	}
	parallel, err := turns.Flag(members, "parallel_tool_calls", true)
	if err != nil {
		return nil, err
	}
	q.singleCall = !parallel
	if raw := members.Get("stream_options"); raw != nil && (raw[0] != '{' || !q.stream) {
		return nil, bad("stream_options", "\"stream_options\" must be an object, and stand with \"stream\": true.")
	}
	if raw := members.Get("instructions"); raw != nil && raw[0] != '"' {
		return nil, bad("instructions", "\"instructions\" must be a string.")
	}
	return q, nil
}

// newRun admits the caller, then reads the request and decides how to run it.
func (f *Face) newRun(c *gin.Context, received server.Request) (*run, error) {
	admission, err := f.options.Executor.Admit(c.Request.Context(), received.Request)
	if err != nil {
		return nil, err
	}
	q, err := readRequest(received.Body)
	if err != nil {
		return nil, err
	}
	opened, err := f.options.Open(received, admission, upstream.ResponsesWire, q.model)
	if err != nil {
		return nil, err
	}
	r := &run{Run: opened, registered: admission, face: f, header: c.Writer.Header(), request: q, kinds: map[string]string{},
		namespaces: map[string]bool{}, namespaceOf: map[string]string{}, lastOfModel: -1,
	}
	r.MaxAdded, r.reading = maxBodyBytes, readOptions(&opened.Route.Rules.Responses)
	for _, check := range []func() error{
		r.checkMembers, r.checkState, r.checkInclude, r.readAllTools, r.readInputTools,
		func() error { return r.SetMode(c.GetHeader(turns.HeaderMode)) },
		r.checkOwn, r.bringTools, func() error { return r.readInput(c.Request.Context()) }, r.offerTools,
	} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	if r.asksAt != "" {
		r.AskLater = r.askCaller
	}
	return r, nil
}

// readAllTools reads the tools of the request.
func (r *run) readAllTools() error {
	raw := r.request.members.Get("tools")
	if raw == nil {
		return nil
	}
	var err error
	r.tools, err = r.readTools(raw, "tools")
	r.tools = slices.DeleteFunc(r.tools, func(d definition) bool { return d.param == r.asksAt })
	r.named = len(r.tools) > 0 || r.asksAt == ""
	for i := range r.tools {
		d := &r.tools[i]
		r.hasHosted = r.hasHosted || d.wire == "" && d.kind != "namespace"
	}
	return err
}

// offerTools decides which tools are offered to the model, and what it must call.
func (r *run) offerTools() error {
	var wires []string
	if r.named {
		if wires = r.wires; wires == nil {
			wires = []string{}
		}
	}
	if err := r.SetOffer(wires, r.unknownTool); err != nil {
		return err
	}
	choice, err := r.readChoice()
	if err != nil {
		return err
	}
	r.choice = choice
	return r.NarrowChoice(choice, wires)
}

// isEnforced reports whether the application runs the calls.
func (r *run) isEnforced() bool { return r.Mode == gateway.ModeEnforce }
