package turns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/wrapper"
)

// Wire is an API that models are asked in, and that applications speak to the gateway: how it is read and
// written. What is done to a reply in between is the same on every wire. It is one value for all requests.
type Wire interface {
	Spec() *Spec
	// Read reads a request for a model. Its error is a *Failure.
	Read(members rawjson.Object, model string) (Dialogue, error)
	// Error is the body of an answer that is a failure of a run; runID is empty where there is none.
	Error(f *Failure, runID string) []byte
}

// Spec is what a wire is made of.
type Spec struct {
	Wire upstream.Wire
	// Rows are types of its parts. The first of a kind is that of parts that the gateway makes: a text, and a call
	// where the model writes calls as text.
	Rows []*Row
	// Own are the members of a request that the wire reads, and answers for, and Forwarded those that are sent on
	// as they were written.
	Own       []string
	Forwarded [][]string
	// Switches are the members that are sent on where the upstream's entry allows them by a key of their own.
	Switches map[string]Switch
	// Structured are the places where a request states the form of its answer, each as the path of a member: at most one
	// of them in a request.
	Structured [][]string
	Hooked     []string // members of Reply.Head that hooks see
	MaxBody    int      // how long a request may be, and how much a run may add to it
	MaxName    int      // how long a name may be that a conversation brings back; 0: it brings back each as it came
	Import     string   // the subcommand of tools import that reads its requests
	// UnknownKey is what of the upstream's entry lets unknown types of parts pass.
	UnknownKey string
	// IDHeader is the header that names the run on failures; empty: HeaderRunID alone does.
	IDHeader string
	// Count is how tokens are counted; nil: this wire has no request for it.
	Count *Count
	// Ordered says that the parts of an answer have an order, and that each begins and ends in a stream: nothing
	// overtakes the text in front of it. Where hooks see texts, such a stream goes out once it is judged: they see each
	// part as a whole, and may take of it what would have been sent.
	Ordered bool
	// HidesThoughtsInRuns says that thoughts are not shown where Callgate runs the tools: they are bound to calls that
	// the application does not have.
	HidesThoughtsInRuns bool
}

// Switch is what allows a member of a request.
type Switch struct {
	Key, Reason string // of the upstream's entry; and what the provider would do
	Allowed     func(rules *upstream.Rules, value []byte) bool
}

// Count is the request for the number of tokens of a request.
type Count struct {
	Endpoint upstream.Endpoint
	// Answer is what the application gets of the provider's answer; ok is false where that is no number of tokens.
	Answer func(body []byte) (answer []byte, ok bool)
}

// row is the row of parts of a kind that the gateway makes.
func (s *Spec) row(kind Kind) *Row {
	for _, row := range s.Rows {
		if row.Kind == kind {
			return row
		}
	}
	return nil
}

// Dialogue is one request, and the conversation that becomes of it. It only grows.
type Dialogue interface {
	// Model is the one that is requested.
	Model() string
	// Streams reports whether the answer is a stream.
	Streams() bool
	// Begin checks the request by the rules of its route. request is nil where a face leads the dialogue. Its error is
	// a *Failure.
	Begin(r *Run, request *http.Request) error
	// Definitions are the tools that the request defines, and Tools what it says of them, once those have joined the
	// registry.
	Definitions() []RequestTool
	Tools() Tools
	// Name is the registry's name of the tool that a part calls, and the one on the wire.
	Name(*Part) (registry, wire string)
	// History begins the conversation with what the request brings, as hooks leave it.
	History(context.Context) error
	// Body is the next request to the model, and Reader reads its reply.
	Body() upstream.Request
	Reader() Reader
	// Writer writes the answer to the request.
	Writer() Writer
	// Append adds a turn of the model to the conversation, and what the model is told of it: of each of its calls, or
	// of the whole turn, whose text alone is brought back then. It returns how many bytes it added.
	Append(a *Answer, told []Told) (added int)
}

// Confirming is a dialogue whose request can answer what the caller was asked in an earlier one.
type Confirming interface {
	// Confirm takes the answers, before the first turn.
	Confirm(context.Context) error
	// Asks is nil where the caller cannot be asked, and else whether it can be of a call.
	Asks() func(*Part, *calls.Question) bool
}

// Checking is a dialogue that knows what the provider may have done.
type Checking interface {
	// Check fails a reply with a part that the provider may not have come to. Such a part begins once it has ended.
	Check(context.Context, *Part) error
}

// Tools are what a request says of tools.
type Tools struct {
	// Names are those on the wire; nil: it says nothing of tools.
	Names []string
	// Param is where the request names a tool.
	Param  func(i int) string
	Choice ToolChoice
}

// Led is a dialogue that a face leads itself, of no request.
type Led interface {
	Dialogue
	// Load begins the conversation: with a text for the model, the messages before, and the content of the user's
	// message, whose length it returns.
	Load(system string, before []json.RawMessage, content []byte) (added int, err error)
	// Say adds what the model said last.
	Say(text []byte)
	// Messages are those of the conversation from the user's on.
	Messages() []json.RawMessage
}

// Leader is a wire in whose conversations a face can lead.
type Leader interface {
	Wire
	Lead(model string) Led
}

// Progress says how far a reply has come.
type Progress uint8

// How far a reply has come.
const (
	Coming  Progress = iota
	Settled          // it is whole if nothing more comes
	Ended            // its last event was read
)

// Reader reads one reply. Its errors hold no text of the reply. They are one of the errors below, or else say what
// was found.
type Reader interface {
	// Reply is what was read so far.
	Reply() *Reply
	// Whole reads a reply that is no stream. It alone says why that is not whole.
	Whole(body []byte) error
	// Event reads an event. What it returns is valid until the next one.
	Event(name, data []byte) ([]Delta, error)
	// End is called after the last event of a stream, or after the end of its body: it says why the reply is not whole.
	End() error
	// AddsNothing reports whether an event behind the last one adds nothing.
	AddsNothing(name, data []byte) bool
	// State is about how many bytes are held of the reply, how long it is, and how far.
	State() (held, size int, at Progress)
}

// ErrIncomplete is wrapped by the error of a reply that ended before it was whole.
var ErrIncomplete = errors.New("the stream ended")

// ErrUnknown is wrapped by the error of what is of an unknown type, which the upstream's entry could let pass.
var ErrUnknown = errors.New("of a type that is not known")

// UnknownType is such an error. It quotes the type only if it is a plain word.
func UnknownType(what, kind string) error {
	const most = 64
	if len(kind) > most || !ascii.IsPlainID(kind) {
		return fmt.Errorf("%s %w", what, ErrUnknown)
	}
	return fmt.Errorf("%s %w: %s", what, ErrUnknown, kind)
}

// ProviderError is a failure that the provider states in its reply.
type ProviderError struct {
	Failure upstream.Failure
	// Body is the error as the application is to get it, with a status; nil: it gets ours, of the failure's words.
	Body   []byte
	Status int
}

func (e *ProviderError) Error() string { return "an error stands in the answer" }

// Unfit is the error of a reply whose parts do not fit together.
type Unfit struct {
	Fault error
	Cure  string // what the operator can do where this happens often
}

func (e *Unfit) Error() string { return e.Fault.Error() }

func (e *Unfit) Unwrap() error { return e.Fault }

// ModelName is the name of the model in an answer: the provider's, or the requested one if the provider's could be
// mistaken for something else.
func ModelName(stated, requested string) string {
	const most = 256
	if _, hides := wrapper.Hidden(stated); hides || stated == "" || len(stated) > most || !rawjson.IsProse([]byte(stated)) {
		return requested
	}
	return stated
}

// Writer writes one answer. It appends to a buffer, and decides nothing: text is what it is given, and never taken
// from a part.
type Writer interface {
	// Turn says that what follows in a stream is of another turn, which may show nothing: its reply is not read yet.
	Turn(*Reply)
	// Delta writes a piece of a stream: a text that was released, a thought, or what an ordered wire has beside them.
	Delta(b []byte, d *Delta, text []byte) []byte
	// Rest writes what of an answer that passed was not sent yet, which may be nothing: a part that has begun and is not
	// among it ends. ended says that the answer ends with it, and last that it is the last one of its reply.
	Rest(b []byte, a *Answer, shown []Shown, ended, last bool) []byte
	// Close ends a stream. usage, which may be nil, is that of all its turns.
	Close(b, usage []byte) []byte
	// Whole writes a reply as one body, of each answer its parts.
	Whole(r *Reply, shown [][]Shown, usage []byte) []byte
	// Fail ends a stream that has begun by a failure. Nothing that is open is closed before it.
	Fail(b []byte, f *Failure) []byte
	// Alive writes a sign of life.
	Alive(b []byte, note string) []byte
}
