package responses

import (
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/upstream"
)

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
	opened, q, err := turns.Begin(c.Request.Context(), f.options, received, upstream.ResponsesWire, readRequest)
	if err != nil {
		return nil, err
	}
	r := &run{Run: opened, registered: opened.Admission, face: f, header: c.Writer.Header(), request: q, kinds: map[string]string{},
		namespaces: map[string]bool{}, namespaceOf: map[string]string{}, servers: map[string]bool{}, approved: map[string]remoteCall{}, lastOfModel: -1,
	}
	r.MaxAdded, r.reading = maxBodyBytes, readOptions(opened.Route)
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
