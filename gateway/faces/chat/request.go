package chat

import (
	"strconv"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
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

// request is a request for a completion, as it was read.
type request struct {
	members rawjson.Object // in their order
	model   string
	history []message
	tools   []string        // the names of the tools, in OpenAI's alphabet; nil: it says nothing of them
	toolSet map[string]bool // the same
	// definitions are the same tools as the request defines them.
	definitions []turns.RequestTool
	choice      turns.ToolChoice
	// singleCall says that the model may make one call in a turn.
	singleCall   bool
	stream       bool
	includeUsage bool // the usage is requested, at the end of a stream
	n            int
}

// Model is the model that is requested.
func (r *request) Model() string { return r.model }

// readRequest reads the body of a request. Its error is a *turns.Failure.
func readRequest(body []byte) (*request, error) {
	members, model, err := turns.ReadBody(body)
	if err != nil {
		return nil, err
	}
	r := &request{members: members, model: model, n: 1}
	for _, name := range []string{"functions", "function_call"} {
		if members.Get(name) != nil {
			return nil, bad(name, "%q is the legacy form, which is not taken here; use \"tools\" and \"tool_choice\".", name)
		}
	}
	for _, read := range []func() error{r.readStream, r.readN, r.readTools, r.readChoice, r.readHistory} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *request) readStream() (err error) {
	if r.stream, err = turns.Flag(r.members, "stream", false); err != nil {
		return err
	}
	parallel, err := turns.Flag(r.members, "parallel_tool_calls", true)
	if err != nil {
		return err
	}
	r.singleCall = !parallel
	raw := r.members.Get("stream_options")
	if raw == nil {
		return nil
	}
	options, ok := rawjson.Members(raw)
	if !ok || !r.stream {
		return bad("stream_options", "\"stream_options\" must be an object, and stand with \"stream\": true.")
	}
	r.includeUsage, err = turns.Flag(options, "include_usage", false)
	return err
}

func (r *request) readN() error {
	raw := r.members.Get("n")
	if raw == nil {
		return nil
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < 1 || n > maxChoices {
		return bad("n", "\"n\" must be a whole number from 1 to %d.", maxChoices)
	}
	r.n = n
	return nil
}

// readTools reads which tools the application offers.
func (r *request) readTools() error {
	raw := r.members.Get("tools")
	if raw == nil {
		return nil
	}
	list, ok := rawjson.Elements(raw)
	if !ok {
		return bad("tools", "\"tools\" must be a list.")
	}
	r.tools, r.toolSet = []string{}, map[string]bool{}
	for i, raw := range list {
		if i == maxTools {
			return bad("tools", "\"tools\" must be at most %d.", maxTools)
		}
		tool, err := readTool(raw, "tools."+strconv.Itoa(i))
		if err != nil {
			return err
		}
		if r.toolSet[tool.Wire] {
			return bad("tools", "Two tools have the same name.")
		}
		r.toolSet[tool.Wire] = true
		r.tools, r.definitions = append(r.tools, tool.Wire), append(r.definitions, tool)
	}
	return nil
}

// readTool reads {"type":"function","function":{"name":…,"description":…,"parameters":…}}.
func readTool(raw []byte, param string) (turns.RequestTool, error) {
	t := turns.RequestTool{Param: param + ".function.parameters"}
	tool, ok := rawjson.Members(raw)
	kind, _ := rawjson.String(tool.Get("type"))
	switch {
	case kind == "custom":
		return t, bad(param, "Custom tools are not taken in chat completions. Send them to POST /v1/responses, with a model whose upstream has speaks: [responses]; or make the tool a function.")
	case !ok || !isFunction(tool):
		return t, bad(param, "A tool must be an object of the type \"function\"; no other is taken here.")
	}
	function, _ := rawjson.Members(tool.Get("function"))
	t.Wire, _ = rawjson.String(function.Get("name"))
	if t.Wire == "" {
		return t, bad(param, "A tool must have a function with a name.")
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
