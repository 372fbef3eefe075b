// Package oxp is the face of the Open eXecution Protocol 1.0 (OXP), by which a
// gateway is a tool server: it translates the protocol to the kernel and back, and
// decides nothing.
//
//	GET  /health                          the gateway takes requests; nobody is asked who it is
//	GET  /tools                           what the agent may use
//	POST /tools/call                      judges and executes
//	GET  /tools/authorizations/{id}/{n}   how an authorization stands that a call was refused for
//
// Bodies are flat, and the version is a header (OXP-Version), which every answer
// has. They are read strictly: closed, no member twice, bounded. What is judged are
// the very bytes of the member input.
//
// # Tools
//
// A tool's id is its name in the registry where that is Toolkit.Tool. Other names
// are mapped one to one when the configuration is loaded (registry.OXP). An id with
// @x.y.z is that version, one with @x is x.0.0, and one without is the highest.
//
// # Errors
//
// The three classes of the protocol are never mixed:
//
//	400  nothing was run: the request, its tool, the policy, a limit, or a person who
//	     has to authorize it first (missing_requirements)
//	422  nothing was run: the input is not what the tool's schema asks for
//	     (parameter_errors)
//	200  success: false: the tool was called, and there is no result
//
// Before a request is one of the protocol HTTP has its own: 401 with
// WWW-Authenticate, 404 and 405 for paths and methods, 429 and 503, with
// Retry-After, for a caller or a gateway that has enough to do. Every error carries
// the members of a refusal as everywhere else: code, stage, message, violations.
//
// # Calls
//
// A call_id is an idempotency key of its caller, workspace and project: a repeat gets
// the first answer, and another call under the same id is refused. Refusals before
// dispatch are not kept. A call without one is answered with Callgate's own id, which
// is the key of that call from then on.
package oxp

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
)

// Options are what a face works with.
type Options struct {
	Kernel *gateway.Kernel
	Log    *slog.Logger
	// CheckReady says why nobody can be let in now, or nil. It may be nil itself.
	CheckReady func() error
	// URL is that of this gateway, without a slash at its end, as those see it who
	// ask how an authorization stands. Where it is empty, or nil, they are not told
	// where to ask.
	URL func() string
}

// Face answers requests. It is safe for concurrent use.
type Face struct{ options Options }

// New returns the face of a kernel.
func New(options Options) *Face { return &Face{options: options} }

const (
	pathHealth = "/health"
	pathTools  = "/tools"
	pathCall   = "/tools/call"
	pathChecks = "/tools/authorizations/"
)

// Mount mounts the routes of the face.
func (f *Face) Mount(s *server.Server) {
	for _, r := range f.routes(s.Draining) {
		s.Mount(r)
	}
}

func (f *Face) routes(draining func() bool) []server.Route {
	return []server.Route{
		{Method: http.MethodGet, Path: pathHealth, Pool: server.Free, Public: true, Refuse: f.refuse, Serve: f.health(draining)},
		{Method: http.MethodGet, Path: pathTools, AnyScheme: true, Refuse: f.refuse, Admit: checkVersion, Serve: f.tools},
		{Method: http.MethodPost, Path: pathCall, AnyScheme: true, Refuse: f.refuse, Admit: checkVersion, Serve: f.call,
			MaxBody: func() int { return MaxBody(f.options.Kernel.ParserOptions().MaxBytes) }},
		{Method: http.MethodGet, Path: pathChecks + ":id/:nth", AnyScheme: true, Pool: server.Reserved, Refuse: f.refuse, Admit: checkVersion, Serve: f.authorization},
	}
}

// health says whether the gateway takes requests, to anybody.
func (f *Face) health(draining func() bool) func(*gin.Context, server.Request) {
	return func(c *gin.Context, _ server.Request) {
		if draining() || f.options.CheckReady != nil && f.options.CheckReady() != nil {
			f.write(c, http.StatusServiceUnavailable, map[string]string{"status": "not ready"})
			return
		}
		f.write(c, http.StatusOK, map[string]string{"status": "ready"})
	}
}

// definition is a tool as the protocol states it.
type definition struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	Version      string          `json:"version"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
}

// tools lists what the agent may use and what can be run here. A version that the
// protocol has no words for is not listed.
func (f *Face) tools(c *gin.Context, a server.Request) {
	tools, err := f.options.Kernel.Tools(c.Request.Context(), a.Request)
	if err != nil {
		f.refuse(c, refusal.From(refusal.Identity, err))
		return
	}
	items := []definition{}
	for _, t := range tools {
		if !t.Client && plainVersion.MatchString(t.Version) {
			items = append(items, definition{t.ID, t.Wire, t.Description, t.Version, t.InputSchema, t.OutputSchema})
		}
	}
	f.write(c, http.StatusOK, map[string][]definition{"items": items})
}

// call judges and executes.
func (f *Face) call(c *gin.Context, a server.Request) {
	asked, err := readBody(a.Body)
	if err != nil {
		f.refuse(c, bad("The body is not a call: %v.", err))
		return
	}
	request, refused := asked.kernelRequest(a.Request)
	if refused != nil {
		f.refuse(c, refused)
		return
	}
	name, known := f.options.Kernel.ToolName(gateway.OXP, asked.tool)
	if !known {
		name = asked.tool
	}
	request.Inputs = []gateway.Input{{Native: &gateway.NativeCall{
		Name: name, Wire: asked.tool, Alphabet: gateway.OXP, Version: asked.version, Arguments: asked.input,
	}}}
	key := ""
	if asked.callID != "" {
		key = "oxp " + asked.callID // which no key of another face begins with
	}
	start := time.Now()
	o := f.options.Kernel.Handle(c.Request.Context(), request, key)
	c.Header(server.HeaderCallID, o.CallID)
	server.LogRefusal(c, o.Refusal)
	if o.Refusal != nil {
		server.RetryAfter(c, o.Refusal)
	}
	f.writeOutcome(c, asked.callID, o, time.Since(start))
}
