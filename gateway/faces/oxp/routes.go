package oxp

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
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
			MaxBody: func() int { return MaxBody(f.options.Executor.Kernel.ParserOptions().MaxBytes) }},
		{Method: http.MethodGet, Path: pathChecks + ":id/:nth", AnyScheme: true, Pool: server.Reserved, Refuse: f.refuse,
			Admit: checkVersion, Serve: f.authorization},
	}
}

// health reports whether the gateway takes requests, without a credential.
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

// tools lists the tools that the agent may use and that can be run here. A version that the
// protocol cannot express is not listed.
func (f *Face) tools(c *gin.Context, a server.Request) {
	tools, err := f.options.Executor.Kernel.Tools(c.Request.Context(), a.Request)
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
	requested, err := readBody(a.Body)
	if err != nil {
		f.refuse(c, bad("The body is not a call: %v.", err))
		return
	}
	request, refused := requested.kernelRequest(a.Request)
	if refused != nil {
		f.refuse(c, refused)
		return
	}
	name, known := f.options.Executor.Kernel.ToolName(gateway.OXP, requested.tool)
	if !known {
		name = requested.tool
	}
	request.Inputs = []gateway.Input{{Native: &gateway.NativeCall{
		Name: name, Wire: requested.tool, Alphabet: gateway.OXP, Version: requested.version, Arguments: requested.input,
	}}}
	key := ""
	if requested.callID != "" {
		key = "oxp " + requested.callID // which no key of another face begins with
	}
	start := time.Now()
	o := f.options.Executor.Handle(c.Request.Context(), request, key)
	c.Header(server.HeaderCallID, o.CallID)
	server.LogRefusal(c, o.Refusal)
	if o.Refusal != nil {
		server.RefusalHeaders(c, o.Refusal)
	}
	f.writeOutcome(c, requested.callID, o, time.Since(start))
}
