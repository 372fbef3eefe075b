package chat

import (
	"net/http"
	"strconv"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/upstream"
)

const (
	// maxBodyBytes is how long a request may be, and how much a run may add to it.
	maxBodyBytes = 8 << 20
	// maxChoices is how many completions may be requested at a time.
	maxChoices = 128
	// maxMessages is how many messages a conversation may begin with, and maxTools
	// how many tools a request may name.
	maxMessages = 1 << 14
	maxTools    = 1 << 10
)

// dialogue is a request for a completion, as it was read, and the conversation that becomes of it.
type dialogue struct {
	*turns.Run
	messages [][]byte // the history as it is sent to the model; it only grows
	asCame   bool     // and is the one of the request, byte for byte
	led      int      // how many messages stood before the user's, of one that a face leads

	members rawjson.Object // in their order
	model   string
	history []message
	tools   []string        // the names of the tools, in OpenAI's alphabet; nil: it says nothing of them
	toolSet map[string]bool // the same
	// definitions are the same tools as the request defines them.
	definitions  []turns.RequestTool
	choice       turns.ToolChoice
	stream       bool
	includeUsage bool // the usage is requested, at the end of a stream
	n            int
}

// Model is of turns.Dialogue.
func (d *dialogue) Model() string { return d.model }

// Streams is of turns.Dialogue.
func (d *dialogue) Streams() bool { return d.stream }

// Definitions is of turns.Dialogue.
func (d *dialogue) Definitions() []turns.RequestTool { return d.definitions }

// Name is of turns.Dialogue.
func (d *dialogue) Name(p *turns.Part) (registry, wire string) {
	return d.RegistryName(p.Call.Name), p.Call.Name
}

// Tools is of turns.Dialogue.
func (d *dialogue) Tools() turns.Tools {
	return turns.Tools{
		Names: d.tools, Choice: d.choice,
		Param: func(i int) string { return "tools." + strconv.Itoa(i) + ".function.name" },
	}
}

// Reader is of turns.Dialogue.
func (d *dialogue) Reader() turns.Reader {
	return &reader{asked: d.n, dropsAudio: d.Route.Rules.Audio == upstream.Drop}
}

// Writer is of turns.Dialogue.
func (d *dialogue) Writer() turns.Writer {
	return &writer{requested: d.model, includeUsage: d.includeUsage}
}

// Begin is of turns.Dialogue.
func (d *dialogue) Begin(r *turns.Run, _ *http.Request) error {
	d.Run = r
	if r.Answers = d.n; r.Mode == gateway.ModeCall && d.n > 1 {
		return turns.Bad("n", "\"n\" must be 1 where Callgate runs the tools.")
	}
	if err := d.checkTemplateVariables(); err != nil {
		return err
	}
	return d.checkModelVariant()
}

// Read reads a request. Its error is a *turns.Failure.
func (wire) Read(members rawjson.Object, model string) (turns.Dialogue, error) {
	d := &dialogue{members: members.Without(memberLegacyChoice), model: model, n: 1}
	if members.Get("functions") != nil {
		return nil, legacyForm("functions")
	}
	// Among no functions, some clients choose none, or any.
	if word, _ := rawjson.String(members.Get(memberLegacyChoice)); members.Get(memberLegacyChoice) != nil && word != "none" && word != "auto" {
		return nil, legacyForm(memberLegacyChoice)
	}
	for _, read := range []func() error{d.readStream, d.readN, d.readTools, d.readChoice, d.readHistory} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// memberLegacyChoice is tool_choice as it once was.
const memberLegacyChoice = "function_call"

func legacyForm(member string) error {
	return turns.Bad(member, "%q is the legacy form, which is not taken here; use \"tools\" and \"tool_choice\".", member)
}

func (d *dialogue) readStream() (err error) {
	if d.stream, err = turns.Flag(d.members, "stream", false); err != nil {
		return err
	}
	parallel, err := turns.Flag(d.members, "parallel_tool_calls", true)
	if err != nil {
		return err
	}
	d.choice.Single = !parallel
	raw := d.members.Get("stream_options")
	if raw == nil {
		return nil
	}
	options, ok := rawjson.Members(raw)
	if !ok || !d.stream {
		return turns.Bad("stream_options", "\"stream_options\" must be an object, and stand with \"stream\": true.")
	}
	d.includeUsage, err = turns.Flag(options, "include_usage", false)
	return err
}

func (d *dialogue) readN() error {
	raw := d.members.Get("n")
	if raw == nil {
		return nil
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < 1 || n > maxChoices {
		return turns.Bad("n", "\"n\" must be a whole number from 1 to %d.", maxChoices)
	}
	d.n = n
	return nil
}

// readTools reads which tools the application offers.
func (d *dialogue) readTools() error {
	raw := d.members.Get("tools")
	if raw == nil {
		return nil
	}
	if raw[0] != '[' {
		return turns.Bad("tools", "\"tools\" must be a list.")
	}
	d.tools, d.toolSet = []string{}, map[string]bool{}
	return rawjson.EachOf(raw, func(raw []byte) error {
		i := len(d.tools)
		if i == maxTools {
			return turns.Bad("tools", "\"tools\" must be at most %d.", maxTools)
		}
		tool, err := readTool(raw, "tools."+strconv.Itoa(i))
		if err != nil {
			return err
		}
		if d.toolSet[tool.Wire] {
			return turns.Bad("tools", "Two tools have the same name.")
		}
		d.toolSet[tool.Wire] = true
		d.tools, d.definitions = append(d.tools, tool.Wire), append(d.definitions, tool)
		return nil
	})
}

// readTool reads {"type":"function","function":{"name":…,"description":…,"parameters":…}}.
func readTool(raw []byte, param string) (turns.RequestTool, error) {
	t := turns.RequestTool{Param: param + ".function.parameters"}
	tool, ok := rawjson.Members(raw)
	kind, _ := rawjson.String(tool.Get("type"))
	switch {
	case kind == "custom":
		return t, turns.Bad(param, "Custom tools are not taken in chat completions. Send them to POST /v1/responses, with a model whose upstream has speaks: [responses]; or make the tool a function.")
	case !ok || !isFunction(tool):
		return t, turns.Bad(param, "A tool must be an object of the type \"function\"; no other is taken here.")
	}
	function, _ := rawjson.Members(tool.Get("function"))
	t.Wire, _ = rawjson.String(function.Get("name"))
	if t.Wire == "" {
		return t, turns.Bad(param, "A tool must have a function with a name: {\"type\":\"function\",\"function\":{\"name\":…}}.")
	}
	t.Description, _ = rawjson.String(function.Get("description"))
	if schema := function.Get("parameters"); string(schema) != "null" {
		t.Schema = schema
	}
	return t, nil
}

// isFunction reports whether a tool, a call or a choice is of the type function, which it also is where
// it has a function and names no type.
func isFunction(o rawjson.Object) bool {
	raw := o.Get("type")
	kind, _ := rawjson.String(raw)
	return kind == "function" || raw == nil && o.Get("function") != nil
}

// toolName reads the name of {"type":"function","function":{"name":…}}.
func toolName(raw []byte, param string) (string, error) {
	tool, err := readTool(raw, param)
	return tool.Wire, err
}
