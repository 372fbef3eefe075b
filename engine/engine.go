package engine

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"time"

	"github.com/callgate/callgate/refusal"
)

// Call is one judged call.
type Call struct {
	Tool    string // the registry's name
	Version string
	Effect  string // read or idempotent; anything else is run as once
	Run     Run
	// Arguments are the bytes that were judged: one JSON object. They are sent
	// as they are, and not changed.
	Arguments []byte
	// Typed tells that a schema says what the tool's results are: what it gives is
	// that, and nothing around it.
	Typed bool
	ID    string   // the call id; the tool sees it
	Roots []string // absolute folders of the project, for files.read
	// Thread is the conversation, Ancestors those that it came from, the oldest
	// first, and User who it is held for; each empty where nothing is known.
	Thread    string
	Ancestors []string
	User      string
	// Progress is told how far the tool says that it is; nil does not ask it. It is
	// called by one goroutine at a time, never after Run has returned, and is quick.
	Progress func(Progress)
	// Log is told what the tool logs of LogLevel and above, which is one of the eight of
	// MCP; without either it is not asked. It is called as Progress is, and never at the
	// same time.
	Log      func(Log)
	LogLevel string
	// Asks are the kinds of questions that the tool may put to whoever called: form,
	// url, sampling and roots. None says that nobody is there to answer.
	Asks []string
	// State and Answers go back to a tool that has asked: what it gave to be given
	// back, nil where that was nothing, and the answers by the names of its questions,
	// which were judged.
	State   *string
	Answers map[string]json.RawMessage
}

// Progress is how far a tool says that it is.
type Progress struct {
	Done    float64 // finite, and more each time
	Total   float64 // finite; 0 is unknown
	Message string  // the tool's words; may be empty
}

// Log is a message that a tool logs.
type Log struct {
	Level  string          // debug, info, notice, warning, error, critical, alert or emergency
	Logger string          // the tool's name for where it comes from; may be empty
	Data   json.RawMessage // any JSON of the tool's, read strictly
}

// InputRequired is what a tool wants to know before it goes on. Its questions are of the
// kinds that it may ask, and not judged beyond that.
type InputRequired struct {
	Questions []Question // in the order of their names
	State     *string    // goes back with the answers; may be nil
}

// Question is one of them.
type Question struct {
	Name   string
	Kind   string // one of Call.Asks
	Method string
	Params json.RawMessage // one JSON object, read strictly
}

// Run says how the tool is run. Its fields are those of a tool's definition.
type Run struct {
	Type           string        // http, demo, client, mcp, oxp or callback
	URL            string        // of http, mcp, oxp and callback
	Timeout        time.Duration // of all attempts together; 0 or less is 10 s
	MaxResultBytes int64         // after decoding; 0 or less is 1 MiB
	Addresses      []string      // prefixes or addresses; none means public ones only

	Server     string            // of the servers file; may be empty
	Tool       string            // the tool's name there; with oxp its id and version
	Command    []string          // of mcp, instead of a URL
	Folder     string            // that the command is started in; empty is the gateway's own
	Env        map[string]string // of the command: values, or their places (see Options.ReadSecret)
	Credential string            // where it stands; see Options.ReadSecret
	MaxAge     time.Duration     // of callback: how long the answer may take
	Asks       []string          // of mcp: what it may ever ask; see Call.Asks

	// Method makes a request of http in which each argument has its place. Without
	// one it is a POST of the arguments.
	Method     string
	Parameters []Parameter
}

// Result is what a tool gave.
type Result struct {
	Body []byte
	// JSON tells that Body is JSON by its content type. It was not read.
	// Otherwise Body is valid UTF-8.
	JSON bool
	// Attempts counts how often the tool was tried, also where a refusal is
	// returned with the result; 0 where it was not tried at all.
	Attempts int
	// Pending says that the tool has taken the call and will answer later, until
	// Until at the latest; there is no body then.
	Pending bool
	Until   time.Time
	// Challenges come with a refusal that a person can lift.
	Challenges []Challenge
	// InputRequired comes with a refusal that answers can lift.
	InputRequired *InputRequired
}

// Options are what an engine needs of its surroundings. The zero value is
// usable and the strictest.
type Options struct {
	Now      func() time.Time // nil is time.Now
	Resolver *net.Resolver    // nil is the system's
	// Certificates that may sign for https tools; nil is the system's pool.
	Certificates *x509.CertPool
	// Interfaces lists this host's own addresses, which are never public; nil
	// is net.InterfaceAddrs. If it fails, nothing is public.
	Interfaces func() ([]net.Addr, error)
	// OnBreaker is told of the tools' breakers; nil is nobody. It must be quick, and
	// safe for concurrent use.
	OnBreaker func(BreakerEvent)
	// Transports run the types that the engine does not run itself.
	Transports map[string]Transport
	// ReadSecret reads what stands at env:NAME or file:PATH; nil has no secrets.
	ReadSecret func(place string) (string, error)
	// CallbackURL makes the address at which the answer of a call is taken until a
	// time; nil takes none, and tools that answer later are tool_unavailable.
	CallbackURL func(callID string, until time.Time) (string, error)
	// ServerURL is where a server stands, by its name; nil knows none.
	ServerURL func(server string) string
}

const (
	defaultTimeout     = 10 * time.Second
	defaultResultBytes = 1 << 20
)

// Engine runs tools. It is safe for concurrent use.
type Engine struct {
	now      func() time.Time
	pool     *pool
	breakers *breakers
	demos    map[string]demo
	secret   func(place string) (string, error) // may be nil
	// transports run what this package does not.
	transports map[string]Transport
}

// New returns an engine. Close it to give up its idle connections.
func New(options Options) *Engine {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Interfaces == nil {
		options.Interfaces = net.InterfaceAddrs
	}
	e := &Engine{
		now:      options.Now,
		pool:     newPool(options),
		breakers: newBreakers(options.OnBreaker),
		demos:    newDemos(options.Now),
		secret:   options.ReadSecret,

		transports: map[string]Transport{},
	}
	e.transports["callback"] = &callbacks{&Outbound{e.now, e.pool, e.breakers, options.ReadSecret}, options.CallbackURL, options.ServerURL}
	e.transports["oxp"] = &oxp{&Outbound{e.now, e.pool, e.breakers, options.ReadSecret}}
	maps.Copy(e.transports, options.Transports)
	return e
}

// Close closes idle connections. Calls in flight go on, and the engine can
// still be used.
func (e *Engine) Close() {
	if e != nil {
		e.pool.closeIdle()
	}
}

// OpenBreakers is of how many tools the breaker is not closed.
func (e *Engine) OpenBreakers() int {
	if e == nil {
		return 0
	}
	return e.breakers.countOpen()
}

// Run runs a call and returns what the tool gave, or a *refusal.Error. It
// returns within the tool's timeout. The context is the caller's own: a client
// that goes away must not end it once the call was dispatched.
func (e *Engine) Run(ctx context.Context, call Call) (Result, error) {
	if e == nil {
		return Result{}, Unavailable("there is no engine")
	}
	result, refused := e.run(ctx, call)
	if refused != nil {
		return Result{Attempts: result.Attempts, Challenges: result.Challenges, InputRequired: result.InputRequired}, refused
	}
	return result, nil
}

func (e *Engine) run(ctx context.Context, call Call) (result Result, refused *refusal.Error) {
	defer func() {
		if p := recover(); p != nil {
			refused = Internal(PanicText(p))
		}
	}()
	if len(call.Arguments) == 0 {
		return Result{}, Internal("the call has no arguments, so nothing was judged")
	}
	if call.Run.Timeout <= 0 {
		call.Run.Timeout = defaultTimeout
	}
	if call.Run.MaxResultBytes <= 0 {
		call.Run.MaxResultBytes = defaultResultBytes
	}
	ctx, cancel := context.WithTimeout(ctx, call.Run.Timeout)
	defer cancel()
	if ctx.Err() != nil {
		return Result{}, Stopped(ctx, call)
	}
	switch call.Run.Type {
	case "http":
		return e.runHTTP(ctx, call)
	case "demo":
		return e.runDemo(ctx, call)
	case "client":
		return Result{}, refusal.New(refusal.ToolUnavailable,
			"This tool is run by the application and cannot be run here; continue without it.").
			WithCause(fmt.Errorf("%s is of type client, which the gateway does not run", call.Tool))
	}
	t := e.transports[call.Run.Type]
	if t == nil {
		return Result{}, Unavailable("%s has a type that this engine does not run", call.Tool)
	}
	result, err := t.Run(ctx, call)
	return result, refusal.From(refusal.Execute, err)
}
