package messages

import (
	"context"
	"net/http"
	"slices"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/upstream"
)

// Bounds of a request.
const (
	maxMessages      = 100_000 // the API's own (AM-06)
	maxHistoryBlocks = 1 << 16 // of all messages: what is read of a block takes more than its bytes
	maxTools         = 1 << 10
)

// dialogue is a request for a reply, as it was read, and the conversation that becomes of it.
type dialogue struct {
	*turns.Run
	members rawjson.Object // in their order
	model   string
	tools   []toolEntry // nil: it has none
	changes []toolChange
	choice  turns.ToolChoice
	stream  bool
	brought []rawjson.Object // the calls whose results the history has; nil for what the provider ran
	// unknownBlock is a content block of a type that is not known in its place.
	unknownBlock toolUnknown

	header  http.Header // of the requests to the model
	query   string
	offered []byte   // the tools for the model; nil: none
	added   [][]byte // messages that the run has added
	reader  *reader  // of the last reply
	// container is the id of the provider's container in an earlier reply, as JSON; nil: none.
	container []byte
}

// Read is of turns.Wire.
func (wire) Read(members rawjson.Object, model string) (turns.Dialogue, error) {
	d := &dialogue{members: members, model: model}
	var err error
	if d.stream, err = turns.Flag(members, "stream", false); err != nil {
		return nil, err
	}
	if d.tools, err = readTools(members.Get("tools")); err != nil {
		return nil, err
	}
	if err = d.readChoice(); err != nil {
		return nil, err
	}
	h, err := readHistory(members.Get("messages"))
	if err != nil {
		return nil, err
	}
	d.changes, d.unknownBlock, d.brought = h.changes, h.unknown, h.brought
	return d, nil
}

// readChoice reads tool_choice (AM-15).
func (d *dialogue) readChoice() error {
	const param = "tool_choice"
	raw := d.members.Get(param)
	if raw == nil {
		return nil
	}
	o, _ := rawjson.Members(raw)
	kind, _ := rawjson.String(o.Get("type"))
	switch kind {
	case "auto":
	case "any":
		d.choice.Required = true
	case "none":
		d.choice.None = true
	case "tool":
		name, _ := rawjson.String(o.Get("name"))
		if !slices.ContainsFunc(d.tools, func(t toolEntry) bool { return t.name == name && name != "" }) {
			return bad(param, "\"tool_choice\" names a tool that is not in \"tools\".")
		}
		d.choice = turns.ToolChoice{Required: true, Names: []string{name}, Forced: true}
	default:
		return bad(param, "\"tool_choice\" must be an object of the type auto, any, tool or none.")
	}
	switch string(o.Get("disable_parallel_tool_use")) {
	case "", "false":
	case "true":
		d.choice.Single = true
	default:
		return bad(param, "\"disable_parallel_tool_use\" must be true or false.")
	}
	return nil
}

// Model is of turns.Dialogue.
func (d *dialogue) Model() string { return d.model }

// Streams is of turns.Dialogue.
func (d *dialogue) Streams() bool { return d.stream }

// Begin is of turns.Dialogue.
func (d *dialogue) Begin(r *turns.Run, request *http.Request) (err error) {
	d.Run = r
	if d.header, err = forwardedHeaders(request.Header); err != nil {
		return err
	}
	if request.URL.RawQuery != "" {
		if d.query, err = forwardedQuery(request.URL.Query()); err != nil {
			return err
		}
	}
	if err = d.checkRules(); err != nil {
		return err
	}
	if err = d.readSafeguards(); err != nil {
		return err
	}
	return d.checkTools()
}

// Reader is of turns.Dialogue.
func (d *dialogue) Reader() turns.Reader {
	d.reader = newReader(options{unknown: d.allowsUnknown(), programs: d.Route.Rules.Messages.ProgrammaticCalls})
	return d.reader
}

func (d *dialogue) allowsUnknown() bool { return d.Route.Rules.Messages.UnknownBlocks == upstream.Pass }

// Writer is of turns.Dialogue.
func (d *dialogue) Writer() turns.Writer { return &writer{requested: d.model, runID: d.ID} }

// History is of turns.Dialogue. What hooks leave alone stays byte for byte.
func (d *dialogue) History(ctx context.Context) error {
	d.narrowOffer()
	for _, call := range d.brought {
		d.Admission.BringsResult(d.toolOf(call), call.Get("input"))
	}
	if err := d.writeTools(); err != nil {
		return err
	}
	return d.hookHistory(ctx)
}

// Body is of turns.Dialogue: the application's request, with changes only to the members that this face answers for.
func (d *dialogue) Body() upstream.Request {
	o := d.members
	if d.Route.UpstreamModel != d.model {
		o = o.Set("model", rawjson.Quote(d.Route.UpstreamModel))
	}
	if d.offered != nil {
		o = o.Set("tools", d.offered)
	} else if o = o.Without("tools"); len(d.Offer.Tools) == 0 { // no message has one either
		o = o.Without("tool_choice")
	}
	if len(d.added) > 0 {
		list := o.Get("messages")
		messages := slices.Clone(list[:len(list)-1]) // without its bracket
		for _, m := range d.added {
			messages = append(append(messages, ','), m...)
		}
		o = o.Set("messages", append(messages, ']'))
		if id := containerID(d.reader.reply.Head); id != nil {
			d.container = id
		}
	}
	if d.container != nil && o.Get("container") == nil {
		o = o.Set("container", d.container)
	}
	if d.choice.Required && !d.Choice.Required && d.Choice.Names == nil {
		choice, _ := rawjson.Members(o.Get("tool_choice")) // it was met
		o = o.Set("tool_choice", choice.Set("type", rawjson.Quote("auto")).Without("name").Bytes())
	}
	return upstream.Request{Endpoint: upstream.Messages, Query: d.query, Header: d.header, Body: o.Bytes(), Last: isLast}
}

// Append is of turns.Dialogue: the turn exactly as it was received, and one message with the result of each of its
// calls (AM-73).
func (d *dialogue) Append(a *turns.Answer, told []turns.Told) (added int) {
	before := len(d.added)
	if len(a.Parts) > 0 {
		content := []byte{'['}
		for i, p := range a.Parts {
			if i > 0 {
				content = append(content, ',')
			}
			content = append(content, p.Raw...)
		}
		d.added = append(d.added, message("assistant", append(content, ']')))
	}
	var results []byte
	for i := range told {
		t := &told[i]
		result := rawjson.Object{rawjson.Field("type", rawjson.Quote("text")), rawjson.Field("text", rawjson.Quote(t.Result))}
		if t.Call != nil {
			result = rawjson.Object{
				rawjson.Field("type", rawjson.Quote("tool_result")), rawjson.Field("tool_use_id", rawjson.Quote(t.Call.Call.ID)),
				rawjson.Field("content", rawjson.Quote(t.Result)),
			}
			if t.Failed {
				result = append(result, rawjson.Field("is_error", []byte("true")))
			}
		}
		results = append(append(results, ','), result.Bytes()...)
	}
	results[0] = '['
	d.added = append(d.added, message("user", append(results, ']')))
	for _, m := range d.added[before:] {
		added += len(m)
	}
	return added
}

func message(role string, content []byte) []byte {
	return rawjson.Object{rawjson.Field("role", rawjson.Quote(role)), rawjson.Field("content", content)}.Bytes()
}
