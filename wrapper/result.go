package wrapper

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

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
}

// Result returns {"tool_result":{"tool":…,"output":…}} for the output of a
// tool. The output must be valid JSON; one that is no object, or that has a
// member "error", is wrapped as {"value":…}, so that output.error is always
// Callgate's own.
func Result(tool string, output json.RawMessage) (ToolResult, error) {
	if !bare(output) {
		wrapped, err := Marshal(struct {
			Value json.RawMessage `json:"value"`
		}{output})
		if err != nil {
			return ToolResult{}, err
		}
		output = wrapped
	}
	return newToolResult(&tool, output)
}

// Text returns the result of a tool that answered in text.
func Text(tool, text string) (ToolResult, error) {
	quoted, err := Marshal(text)
	if err != nil {
		return ToolResult{}, err
	}
	return Result(tool, quoted)
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
	r, err := newToolResult(tool, output)
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
)

// newToolResult builds the line from its two parts, each of which is JSON in which
// nothing hides.
func newToolResult(tool *string, output json.RawMessage) (ToolResult, error) {
	name, err := Marshal(tool)
	if err != nil {
		return ToolResult{}, err
	}
	if output, err = Marshal(output); err != nil {
		return ToolResult{}, err
	}
	line := make([]byte, 0, len(beforeTool)+len(name)+len(beforeOutput)+len(output)+len(afterOutput))
	line = append(append(line, beforeTool...), name...)
	line = append(append(line, beforeOutput...), output...)
	line = append(line, afterOutput...)
	return ToolResult{Line: line, Object: objectOf(line), Output: output}, nil
}

// objectOf is the value of the member tool_result of a line.
func objectOf(line []byte) json.RawMessage {
	return line[len(beforeObject) : len(line)-len(afterObject)]
}

// Read takes a line apart that Result, Text or Refusal has made, such as one that was
// stored.
func Read(line []byte) (ToolResult, error) {
	var parts struct {
		Result struct {
			Output json.RawMessage `json:"output"`
		} `json:"tool_result"`
	}
	if err := json.Unmarshal(line, &parts); err != nil {
		return ToolResult{}, err
	}
	if !bytes.HasPrefix(line, []byte(beforeObject)) || len(parts.Result.Output) == 0 {
		return ToolResult{}, errors.New("found no tool_result with an output")
	}
	r := ToolResult{Line: line, Object: objectOf(line), Output: parts.Result.Output}
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
	var members map[string]json.RawMessage
	if json.Unmarshal(output, &members) != nil {
		return false
	}
	_, has := members["error"]
	return !has
}
