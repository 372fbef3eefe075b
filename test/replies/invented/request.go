// Package invented is a model API that no provider has, as a wire of package turns: the least that a wire is made of.
// The table of replies runs on it beside the real ones.
//
// A request has turns, {"by":"user"|"model"|"tool","say":text} with calls of a model and the ref that a tool answers, tools
// {"name","about","input"}, tool_choice (auto, none, required, {"call":name} or {"only":[names]}), single, form {"type","schema"} and
// stream. A reply is {"id","model","parts":[…],"end":"done"|"calls"|"length"|"filter","usage":{"in","out"}}. Its parts are {"text"},
// {"thought"} and {"call":name,"ref","input":text}. A stream has the head, then of each part {"begin":part}, whose text is empty,
// {"more":text} and {"stop":true}, and then the end. {"error":{"code","message"}} stands in the place of any of them.
package invented

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/upstream"
)

// Path is where the API is served.
const Path = "/v1/invented"

type wire struct{}

// Wire is the API.
var Wire turns.Wire = wire{}

// Spec is the wire as data. It is asked where upstreams are asked for chat completions: package upstream knows no fourth wire.
var Spec = &turns.Spec{
	Wire: upstream.ChatWire, Rows: []*turns.Row{rowText, rowThought, rowCall},
	Own:     []string{"model", "turns", "tools", "tool_choice", "single", "form", "stream"},
	MaxBody: 1 << 20, MaxName: 64, Import: "openai", Structured: [][]string{{"form"}}, Ordered: true,
}

// Spec is of turns.Wire.
func (wire) Spec() *turns.Spec { return Spec }

// Error is of turns.Wire.
func (wire) Error(f *turns.Failure, _ string) []byte {
	var code, message string
	if f.Upstream != nil {
		code, message = "upstream_unavailable", f.Upstream.Why()
	} else {
		code, message = string(f.Refused.Code), f.Refused.Message
	}
	return fmt.Appendf(nil, `{"error":{"code":%s,"message":%s}}`, rawjson.Quote(code), rawjson.Quote(message))
}

// Mount mounts the API.
func Mount(o turns.Options, s *server.Server) { MountAt(Path, Wire, o, s) }

// MountAt mounts a form of the API at a path.
func MountAt(path string, w turns.Wire, o turns.Options, s *server.Server) {
	s.Mount(server.Route{Method: http.MethodPost, Path: path, Refuse: turns.Refuse(w), Serve: turns.Serve(w, o),
		MaxBody: func() int { return Spec.MaxBody }})
}

type dialogue struct {
	*turns.Run
	members rawjson.Object
	model   string
	stream  bool
	tools   turns.Tools
	defined []turns.RequestTool
	turns   []byte // of the conversation, each behind a comma
}

// Read is of turns.Wire.
func (wire) Read(members rawjson.Object, model string) (turns.Dialogue, error) {
	d := &dialogue{members: members, model: model}
	var err error
	if d.stream, err = turns.Flag(members, "stream", false); err != nil {
		return nil, err
	}
	if d.tools.Choice.Single, err = turns.Flag(members, "single", false); err != nil {
		return nil, err
	}
	list, ok := rawjson.Elements(members.Get("tools"))
	if members.Get("tools") != nil && !ok {
		return nil, turns.Bad("tools", "\"tools\" must be a list.")
	}
	param := func(i int) string { return "tools." + strconv.Itoa(i) + ".name" }
	d.tools.Param = param
	if ok {
		d.tools.Names = []string{}
		for i, raw := range list {
			o, _ := rawjson.Members(raw)
			t := turns.RequestTool{Schema: o.Get("input"), Param: param(i)}
			t.Wire, _ = rawjson.String(o.Get("name"))
			t.Description, _ = rawjson.String(o.Get("about"))
			if t.Wire == "" {
				return nil, turns.Bad(param(i), "A tool must have a name.")
			}
			d.tools.Names, d.defined = append(d.tools.Names, t.Wire), append(d.defined, t)
		}
	}
	return d, d.readChoice(members.Get("tool_choice"))
}

func (d *dialogue) readChoice(raw []byte) error {
	c := &d.tools.Choice
	word, _ := rawjson.String(raw)
	o, _ := rawjson.Members(raw)
	name, named := rawjson.String(o.Get("call"))
	list, only := rawjson.Elements(o.Get("only"))
	switch {
	case raw == nil, word == "auto":
	case word == "none":
		c.None = true
	case word == "required":
		c.Required = true
	case named:
		c.Required, c.Forced, c.Names = true, true, []string{name}
	case only:
		c.Names = []string{}
		for _, raw := range list {
			name, _ := rawjson.String(raw)
			c.Names = append(c.Names, name)
		}
	default:
		return turns.Bad("tool_choice", "\"tool_choice\" must be auto, none, required, {\"call\":NAME} or {\"only\":[NAMES]}.")
	}
	return nil
}

func (d *dialogue) Model() string { return d.model }

func (d *dialogue) Streams() bool { return d.stream }

// Begin is of turns.Dialogue.
func (d *dialogue) Begin(r *turns.Run, _ *http.Request) error {
	d.Run = r
	return nil
}

func (d *dialogue) Definitions() []turns.RequestTool { return d.defined }

func (d *dialogue) Tools() turns.Tools { return d.tools }

// Name is of turns.Dialogue.
func (d *dialogue) Name(p *turns.Part) (registry, wire string) {
	return d.RegistryName(p.Call.Name), p.Call.Name
}

func (*dialogue) Reader() turns.Reader { return newReader() }

func (d *dialogue) Writer() turns.Writer { return &writer{requested: d.model} }

// History is of turns.Dialogue.
func (d *dialogue) History(ctx context.Context) error {
	list, ok := rawjson.Elements(d.members.Get("turns"))
	if !ok {
		return turns.Bad("turns", "\"turns\" must be a list.")
	}
	names := map[string]string{} // of the tools of calls, by their refs
	for _, raw := range list {
		o, _ := rawjson.Members(raw)
		by, _ := rawjson.String(o.Get("by"))
		ref, _ := rawjson.String(o.Get("ref"))
		_, err := turns.HookMembers(o, func(name string, value []byte) ([]byte, error) {
			switch {
			case by == "tool" && name == "say":
				return d.BroughtResult(ctx, names[ref], value)
			case by == "model" && name == "say":
				return d.HookValue(ctx, value, false)
			case by == "model" && name == "calls":
				return rawjson.MapElements(value, func(_ int, raw []byte) ([]byte, error) { return d.hookCall(ctx, raw, names) })
			}
			return value, nil
		})
		if err != nil {
			return err
		}
		d.add(o)
	}
	return nil
}

func (d *dialogue) hookCall(ctx context.Context, raw []byte, names map[string]string) ([]byte, error) {
	o, _ := rawjson.Members(raw)
	ref, _ := rawjson.String(o.Get("ref"))
	name, _ := rawjson.String(o.Get("call"))
	input, _ := rawjson.String(o.Get("input"))
	names[ref] = d.RegistryName(name)
	if !rawjson.Readable([]byte(input)) {
		return nil, turns.Bad("turns", "The input of a call must be a string that holds JSON.")
	}
	left, err := d.Admission.Hooks().Brought(ctx, hook.Call, names[ref], []byte(input))
	return o.Set("input", rawjson.Quote(left)).Bytes(), err
}

// add adds a turn to the conversation, and returns how long it is.
func (d *dialogue) add(o rawjson.Object) int {
	before := len(d.turns)
	d.turns = append(append(d.turns, ','), o.Bytes()...)
	return len(d.turns) - before
}

// Append is of turns.Dialogue.
func (d *dialogue) Append(a *turns.Answer, told []turns.Told) (added int) {
	said := rawjson.Object{rawjson.Field("by", rawjson.Quote("model"))}
	var text, calls []byte
	for _, p := range a.Parts {
		if p.Kind == turns.Text {
			text = append(text, p.Text...)
		}
	}
	said = append(said, rawjson.Field("say", rawjson.Quote(text)))
	for i := range told {
		if told[i].Call != nil {
			calls = append(append(calls, ','), callOf(told[i].Call, told[i].Arguments)...)
		}
	}
	if calls != nil {
		calls[0] = '['
		said = append(said, rawjson.Field("calls", append(calls, ']')))
	}
	added = d.add(said)
	for i := range told {
		result := rawjson.Object{rawjson.Field("by", rawjson.Quote("user")), rawjson.Field("say", rawjson.Quote(told[i].Result))}
		if call := told[i].Call; call != nil {
			result = append(result.Set("by", rawjson.Quote("tool")), rawjson.Field("ref", rawjson.Quote(call.Call.ID)))
		}
		added += d.add(result)
	}
	return added
}

// Body is of turns.Dialogue.
func (d *dialogue) Body() upstream.Request {
	o := d.members.Set("model", rawjson.Quote(d.Route.UpstreamModel)).Set("turns", listOf(d.turns))
	if o = o.Without("tools"); len(d.Offer.Tools) > 0 {
		var tools []byte
		for i := range d.Offer.Tools {
			t := &d.Offer.Tools[i]
			tools = fmt.Appendf(tools, `,{"name":%s,"about":%s,"input":%s}`, rawjson.Quote(t.Wire), rawjson.Quote(t.Description),
				t.InputSchema)
		}
		o = o.Set("tools", listOf(tools))
	}
	if len(d.Offer.Tools) == 0 || d.tools.Choice.Required && !d.Choice.Required { // it was met
		o = o.Without("tool_choice")
	}
	return upstream.Request{Endpoint: upstream.ChatCompletions, Body: o.Bytes(), Last: isLast}
}

// listOf is a list of elements, each of which stands behind a comma.
func listOf(elements []byte) []byte {
	if len(elements) == 0 {
		return []byte("[]")
	}
	return append(append([]byte{'['}, elements[1:]...), ']')
}
