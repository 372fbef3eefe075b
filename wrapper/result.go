package wrapper

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/callgate/callgate/refusal"
)

// ToolResult is the tool_result line that a model reads, together with its parts, so that
// no reader has to parse the line again.
type ToolResult struct {
	Line   []byte          // {"tool_result":{"tool":…,"output":…}}
	Object json.RawMessage // the value of the member tool_result, as in Line
	Output json.RawMessage // its member output
	// Refusal is the member error of Output; nil where the output is the tool's own.
	Refusal *refusal.Error
	// Subscription is the id of the call whose tool sends events; else empty.
	Subscription string
}

// Result returns {"tool_result":{"tool":…,"output":…}} for the output of a tool. The output
// must be JSON that a strict reader has accepted; of what is none, only text that could end
// the output early is refused. An output that is no object, or that has a member "error", is
// wrapped as {"value":…}, so that output.error is always Callgate's own.
func Result(tool string, output json.RawMessage) (ToolResult, error) {
	return newToolResult(&tool, output, Wraps(output))
}

// WithSubscription returns the result of a call whose tool sends events: beside its output the
// model reads the id of the call, by which it can end the subscription.
func (r ToolResult) WithSubscription(id string) (ToolResult, error) {
	quoted, err := Marshal(id)
	if err != nil {
		return ToolResult{}, err
	}
	line := append(bytes.Clone(r.Line[:len(r.Line)-len(afterOutput)]), `,"subscription":`...)
	line = append(append(line, quoted...), afterOutput...)
	r.Line, r.Object, r.Subscription = line, objectOf(line), id
	return r, nil
}

// Text returns the result of a tool that answered in text.
func Text(tool, text string) (ToolResult, error) {
	quoted, err := Marshal(text)
	if err != nil {
		return ToolResult{}, err
	}
	return newToolResult(&tool, quoted, true)
}

// Refusal returns the result that tells a model why its completion was refused
// or its call failed. tool is nil where no name was read.
func Refusal(tool *string, refused *refusal.Error) (ToolResult, error) {
	output, err := Marshal(struct {
		Error *refusal.Error `json:"error"`
	}{refused})
	if err != nil {
		return ToolResult{}, err
	}
	r, err := newToolResult(tool, output, false)
	r.Refusal = refused
	return r, err
}

const (
	beforeTool   = `{"tool_result":{"tool":`
	beforeOutput = `,"output":`
	afterOutput  = `}}`
	// beforeObject and afterObject enclose the value of the member tool_result.
	beforeObject = `{"tool_result":`
	afterObject  = `}`
	// beforeValue and afterObject enclose an output that is wrapped.
	beforeValue = `{"value":`
)

// newToolResult builds the line in one buffer: without white space between tokens, and with
// nothing hidden.
func newToolResult(tool *string, output []byte, wraps bool) (ToolResult, error) {
	line := make([]byte, 0, len(output)+96)
	line, err := appendName(append(line, beforeTool...), tool)
	if err != nil {
		return ToolResult{}, err
	}
	line = append(line, beforeOutput...)
	from := len(line)
	if wraps {
		line = append(line, beforeValue...)
	}
	line, ok := appendCompact(line, output)
	if !ok {
		return ToolResult{}, errNoJSON
	}
	if wraps {
		line = append(line, afterObject...)
	}
	if escaped := Escape(line[from:]); len(escaped) > len(line)-from {
		line = append(line[:from], escaped...)
	}
	to := len(line)
	line = append(line, afterOutput...)
	return ToolResult{Line: line, Object: objectOf(line), Output: line[from:to:to]}, nil
}

var errNoJSON = errors.New("the output is no JSON")

// appendName appends the name of a tool as JSON. The names of registered tools need no escape.
func appendName(line []byte, tool *string) ([]byte, error) {
	if tool == nil {
		return append(line, "null"...), nil
	}
	if !strings.ContainsFunc(*tool, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
	}) {
		return append(append(append(line, '"'), *tool...), '"'), nil
	}
	name, err := Marshal(*tool)
	return append(line, name...), err
}

// appendCompact appends JSON without the white space between its tokens. It is not ok where a
// bracket or a quote does not end, or where one ends that did not begin.
func appendCompact(line, b []byte) (compact []byte, ok bool) {
	depth, from := 0, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case ' ', '\t', '\n', '\r':
			line = append(line, b[from:i]...)
			from = i + 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return line, false
			}
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if i >= len(b) {
				return line, false
			}
		}
	}
	return append(line, b[from:]...), depth == 0 && len(b) > 0
}

// objectOf is the value of the member tool_result of a line.
func objectOf(line []byte) json.RawMessage {
	end := len(line) - len(afterObject)
	return line[len(beforeObject):end:end]
}

// Read takes a line apart that Result, Text or Refusal has made, such as one that was
// stored.
func Read(line []byte) (ToolResult, error) {
	var parts struct {
		Result struct {
			Output       json.RawMessage `json:"output"`
			Subscription string          `json:"subscription"`
		} `json:"tool_result"`
	}
	if err := json.Unmarshal(line, &parts); err != nil {
		return ToolResult{}, err
	}
	if !bytes.HasPrefix(line, []byte(beforeObject)) || len(parts.Result.Output) == 0 {
		return ToolResult{}, errors.New("found no tool_result with an output")
	}
	r := ToolResult{Line: line, Object: objectOf(line), Output: parts.Result.Output, Subscription: parts.Result.Subscription}
	var members map[string]json.RawMessage // which compares names exactly, unlike a struct
	if err := json.Unmarshal(r.Output, &members); err != nil {
		return ToolResult{}, fmt.Errorf("the output is no object: %w", err)
	}
	if raw, refused := members["error"]; refused {
		r.Refusal = new(refusal.Error)
		if err := json.Unmarshal(raw, r.Refusal); err != nil {
			return ToolResult{}, fmt.Errorf("output.error is no refusal: %w", err)
		}
	}
	return r, nil
}

// Wraps reports whether Result would wrap an output, which is valid JSON.
func Wraps(output json.RawMessage) bool { return !bare(output) }

// bare reports whether an output needs no wrapping: an object without a member "error".
// Names are compared as they decode.
func bare(output json.RawMessage) bool {
	if !bytes.HasPrefix(bytes.TrimLeft(output, " \t\r\n"), []byte("{")) {
		return false
	}
	if !bytes.Contains(output, []byte("error")) && bytes.IndexByte(output, '\\') < 0 {
		return true // no member has that name, however deep
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(output, &members) != nil {
		return false
	}
	_, has := members["error"]
	return !has
}
