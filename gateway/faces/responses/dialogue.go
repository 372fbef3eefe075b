package responses

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/upstream"
)

// dialogue is a request for a response, as it was read, and the conversation that becomes of it.
type dialogue struct {
	*turns.Run
	ledger  *ledger
	members rawjson.Object // in their order
	model   string
	stream  bool
	single  bool // the model may make one call in a turn
	reader  *reader
	// registered is the admission without the tools that the request brings.
	registered *gateway.Admission
	choice     turns.ToolChoice

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
}

// isEnforced reports whether the application runs the calls.
func (d *dialogue) isEnforced() bool { return d.Mode == gateway.ModeEnforce }

// Read is of turns.Wire.
func (w *wire) Read(members rawjson.Object, model string) (turns.Dialogue, error) {
	if string(members.Get("previous_response_id")) == `""` {
		members = members.Without("previous_response_id")
	}
	d := &dialogue{ledger: w.ledger, members: members, model: model, lastOfModel: -1}
	var err error
	if d.stream, err = turns.Flag(members, "stream", false); err != nil {
		return nil, err
	}
	parallel, err := turns.Flag(members, "parallel_tool_calls", true)
	if err != nil {
		return nil, err
	}
	d.single = !parallel
	if raw := members.Get("stream_options"); raw != nil && (raw[0] != '{' || !d.stream) {
		return nil, bad("stream_options", "\"stream_options\" must be an object, and stand with \"stream\": true.")
	}
	if raw := members.Get("instructions"); raw != nil && raw[0] != '"' {
		return nil, bad("instructions", "\"instructions\" must be a string.")
	}
	return d, nil
}

// Model is of turns.Dialogue.
func (d *dialogue) Model() string { return d.model }

// Streams is of turns.Dialogue.
func (d *dialogue) Streams() bool { return d.stream }

// Begin is of turns.Dialogue.
func (d *dialogue) Begin(r *turns.Run, _ *http.Request) error {
	d.Run, d.registered = r, r.Admission
	for _, check := range []func() error{d.checkState, d.checkInclude, d.readAllTools, d.readInputTools, d.checkOwn, d.readChoice} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// Definitions is of turns.Dialogue. Where a tool that is not a function is in the registry, its definition states no
// schema that could differ.
func (d *dialogue) Definitions() []turns.RequestTool {
	for i := range d.defined {
		t := &d.defined[i]
		if _, known := d.Admission.ToolName(t.Wire); !known && d.kinds[t.Wire] != kindFunction {
			t.Schema = fixedSchema(d.kinds[t.Wire])
		}
	}
	return d.defined
}

// Tools is of turns.Dialogue.
func (d *dialogue) Tools() turns.Tools {
	all := turns.Tools{Choice: d.choice, Param: func(i int) string { return d.defined[i].Param }}
	if d.named {
		if all.Names = d.wires; all.Names == nil {
			all.Names = []string{}
		}
	}
	return all
}

// History is of turns.Dialogue.
func (d *dialogue) History(ctx context.Context) error { return d.readInput(ctx) }

// Reader is of turns.Dialogue.
func (d *dialogue) Reader() turns.Reader {
	d.reader = newReader(&d.Route.Rules)
	d.reader.background = string(d.members.Get("background")) == "true"
	return d.reader
}

// Writer is of turns.Dialogue.
func (d *dialogue) Writer() turns.Writer { return &writer{dialogue: d} }

// readAllTools reads the tools of the request.
func (d *dialogue) readAllTools() error {
	raw := d.members.Get("tools")
	if raw == nil {
		return nil
	}
	var err error
	d.tools, err = d.readTools(raw, "tools")
	d.tools = slices.DeleteFunc(d.tools, func(t definition) bool { return t.param == d.asksAt })
	d.named = len(d.tools) > 0 || d.asksAt == ""
	for i := range d.tools {
		t := &d.tools[i]
		d.hasHosted = d.hasHosted || t.wire == "" && t.kind != "namespace"
	}
	return err
}

// input is the conversation as JSON.
func (d *dialogue) input() []byte {
	v := &d.conversation
	if v.text != nil {
		return v.text
	}
	size := len("[]") + len(v.items)
	for i := range v.items {
		size += len(v.items[i].raw)
	}
	b := append(make([]byte, 0, size), '[')
	for i := range v.items {
		if i > 0 {
			b = append(b, ',')
		}
		if item := &v.items[i]; item.raw != nil {
			b = append(b, item.raw...)
		} else {
			b = append(b, item.object.Set("tools", d.appendTools(nil, item.tools)).Bytes()...)
		}
	}
	return append(b, ']')
}

// Body is of turns.Dialogue: the next request to the model: the application's, with changes only to the
// members that this face is responsible for.
func (d *dialogue) Body() upstream.Request {
	changes := append(make([]rawjson.Member, 0, 3), rawjson.Field("model", rawjson.Quote(d.Route.UpstreamModel)))
	if d.conversation.text != nil || len(d.conversation.items) > 0 || d.members.Get("input") != nil { // else the prompt has it
		changes = append(changes, rawjson.Field("input", d.input()))
	}
	if d.previous != "" {
		changes = append(changes, rawjson.Field("previous_response_id", rawjson.Quote(d.previous)))
	}
	o := d.members.With(changes...)
	var tools []byte
	switch {
	case d.named && d.members.Get("tools") != nil:
		tools = d.appendTools(nil, d.tools)
	case !d.named && len(d.Offer.Tools) > 0:
		tools = d.registryTools()
	}
	if len(tools) > len("[]") {
		o = o.Set("tools", tools)
	} else {
		o = o.Without("tools")
	}
	if len(d.Offer.Tools) == 0 && !d.hasHosted {
		o = o.Without(paramChoice, "parallel_tool_calls")
	} else if choice := d.encodeChoice(); choice != nil {
		o = o.Set(paramChoice, choice)
	} else {
		o = o.Without(paramChoice)
	}
	return upstream.Request{Endpoint: upstream.Responses, Body: o.Bytes()}
}

// Append is of turns.Dialogue: the items as they were received, reasoning included, and one result for each of the calls
// (RS-90), or the answer to what the provider asked for.
func (d *dialogue) Append(a *turns.Answer, told []turns.Told) int {
	if told[0].Call == nil {
		message := rawjson.Object{rawjson.Field("role", rawjson.Quote("user")), rawjson.Field("content", rawjson.Quote(told[0].Result))}
		return d.conversation.add(d.received(nil)...) + d.conversation.add(message.Bytes())
	}
	added := d.conversation.add(d.received(told)...)
	for i := range told {
		it := told[i].Call.Wire.(*item)
		if it.Kind == turns.Ask {
			added += d.conversation.add(d.answerTo(it, &told[i]))
		} else {
			added += d.conversation.add(it.result(told[i].Result, told[i].Failed))
		}
	}
	return added
}

// received are the items of a turn as they were received; without calls where nothing is told of them.
func (d *dialogue) received(told []turns.Told) [][]byte {
	var all [][]byte
	called := slices.ContainsFunc(d.reader.items, func(it *item) bool { return it.Kind == turns.Call })
	for _, it := range d.reader.items {
		switch {
		case it.raw == nil, it.isCall() && told == nil:
			continue
		case it.Kind == turns.Thought && told == nil && called:
			continue // it belongs to the calls
		}
		raw := it.raw
		if it.own.Raw != nil {
			raw = it.own.Raw // as hooks have left it
		}
		at := slices.IndexFunc(told, func(t turns.Told) bool { return t.Call == &it.own })
		if it.Type == "function_call" && at >= 0 && string(told[at].Arguments) != string(it.call.payload) {
			o, _ := rawjson.Members(raw)
			raw = o.Set("arguments", rawjson.Quote(told[at].Arguments)).Bytes()
		}
		all = append(all, raw)
	}
	return all
}

// result is the result of a call, in its own type.
func (it *item) result(text []byte, failed bool) []byte {
	quoted := rawjson.Quote(text)
	o := rawjson.Object{rawjson.Field("type", rawjson.Quote(it.output)), rawjson.Field("call_id", rawjson.Quote(it.call.id))}
	switch it.Type {
	case "shell_call":
		code := "0"
		if failed {
			code = "1"
		}
		outcome := rawjson.Object{rawjson.Field("type", rawjson.Quote("exit")), rawjson.Field("exit_code", []byte(code))}
		part := rawjson.Object{rawjson.Field("stdout", quoted), rawjson.Field("stderr", rawjson.Quote(""))}
		part = append(part, rawjson.Field("outcome", outcome.Bytes()))
		return append(o, rawjson.Field("output", slices.Concat([]byte{'['}, part.Bytes(), []byte{']'}))).Bytes()
	case "apply_patch_call":
		status := "completed"
		if failed {
			status = "failed"
		}
		o = append(o, rawjson.Field("status", rawjson.Quote(status)))
	}
	return append(o, rawjson.Field("output", quoted)).Bytes()
}

// Name is of turns.Dialogue. A call of another type than its tool has in the request is one of an unknown tool.
func (d *dialogue) Name(p *turns.Part) (registry, wire string) {
	it := p.Wire.(*item)
	c, kind := &it.call, kindFunction
	switch {
	case it.Kind == turns.Ask:
		return d.providerTool(c.serverLabel, c.name), c.serverLabel + "_" + c.name
	case it.tool != "":
		kind, wire = strings.TrimSuffix(it.Type, "_call"), it.tool
	default:
		if wire = d.wireOf(c.namespace, c.name); it.Type == "custom_tool_call" {
			kind = kindCustom
		}
		if !d.isNamedSo(wire, c) {
			return noTool(it), wire
		}
	}
	known, named := d.kinds[wire]
	if known == "computer_use_preview" {
		known = "computer"
	}
	if named && known != kind || !named && kind != kindFunction || kind == "computer" && !d.isEnforced() {
		if c.name != "" { // the tool is there, and is not called so
			wire += " as a " + it.Type
		}
		return noTool(it), wire
	}
	return d.RegistryName(wire), wire
}

// noTool is the name of a call that is of no tool of the request. No registry can have it.
func noTool(it *item) string { return it.Type + ":" + it.call.name }

// isNamedSo reports whether a call has the namespace and the name of the tool that they stand for
// together. Another division of the same letters is another tool to the client, and a client that
// does not know namespaces goes by the name alone. A tool that was loaded by a search may have its own
// name as its namespace.
func (d *dialogue) isNamedSo(wire string, c *itemCall) bool {
	namespace := d.namespaceOf[wire]
	return c.namespace == namespace || namespace == "" && c.namespace == c.name
}

// conversation is the input as it is sent to the model. It only grows.
type conversation struct {
	text  []byte // a text of the request, as JSON; nil: items
	items []conversationItem
}

// conversationItem is an item: as it is, or an object with tools in it.
type conversationItem struct {
	raw    []byte
	object rawjson.Object
	tools  []definition
}

// add appends items of a turn, and returns how long they are.
func (v *conversation) add(items ...[]byte) int {
	if v.text != nil {
		message := rawjson.Object{rawjson.Field("role", rawjson.Quote("user")), rawjson.Field("content", v.text)}
		v.text, v.items = nil, []conversationItem{{raw: message.Bytes()}}
	}
	size := 0
	for _, item := range items {
		size += len(item)
		v.items = append(v.items, conversationItem{raw: item})
	}
	return size
}

// confirmation is the answer of the caller to an item of the input, and where its result goes.
type confirmation struct {
	calls.Confirmation
	at int // in the conversation
}
