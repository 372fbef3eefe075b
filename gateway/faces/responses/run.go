package responses

import (
	"net/http"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/responses/internal/emit"
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

// Model is the model that is requested.
func (q *request) Model() string { return q.model }

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
	confirmations []confirmation        // that are still to be taken
	lastOfModel   int                   // the last item of the input that a model made; -1: none
	servers       map[string]bool       // labels of the provider's MCP that the request has
	approved      map[string]remoteCall // calls at the provider that have not been made yet, by the ids of their approvals
	approvals     int                   // rounds of approvals of calls at the provider
	// The bytes that those rounds have added to the conversation, and the tokens that they have used; the next
	// turn counts them.
	approvedBytes  int
	approvedTokens int64
	stream         *emit.Stream
	last           *turn
	mentionsKey    func(text []byte) bool // the operator's key stands in a text of the last answer
}

// isEnforced reports whether the application runs the calls.
func (r *run) isEnforced() bool { return r.Mode == gateway.ModeEnforce }

// shows reports whether the rules let an item pass that is neither a message nor a call.
func (r *run) shows(item *responses.Item) bool {
	return item.Class != responses.Reasoning || r.Route.Rules.Reasoning != upstream.Drop
}
