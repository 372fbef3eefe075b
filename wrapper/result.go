package wrapper

import (
	"bytes"
	"encoding/json"

	"github.com/callgate/callgate/refusal"
)

// Result returns {"tool_result":{"tool":…,"output":…}} for the output of a
// tool. The output must be valid JSON; one that is no object, or that has a
// member "error", is wrapped as {"value":…}, so that output.error is always
// Callgate's own.
func Result(tool string, output json.RawMessage) ([]byte, error) {
	if !bare(output) {
		wrapped, err := Marshal(struct {
			Value json.RawMessage `json:"value"`
		}{output})
		if err != nil {
			return nil, err
		}
		output = wrapped
	}
	return marshalResult(&tool, output)
}

// Text returns the result of a tool that answered in text.
func Text(tool, text string) ([]byte, error) {
	quoted, err := Marshal(text)
	if err != nil {
		return nil, err
	}
	return Result(tool, quoted)
}

// Refusal returns the result that tells a model why its completion was refused
// or its call failed. tool is nil where no name was read.
func Refusal(tool *string, refused *refusal.Error) ([]byte, error) {
	output, err := Marshal(struct {
		Error *refusal.Error `json:"error"`
	}{refused})
	if err != nil {
		return nil, err
	}
	return marshalResult(tool, output)
}

func marshalResult(tool *string, output json.RawMessage) ([]byte, error) {
	type result struct {
		Tool   *string         `json:"tool"`
		Output json.RawMessage `json:"output"`
	}
	return Marshal(struct {
		Result result `json:"tool_result"`
	}{result{tool, output}})
}

// Wraps tells whether Result would wrap an output, which is valid JSON.
func Wraps(output json.RawMessage) bool { return !bare(output) }

// bare tells whether an output can stand as it is: an object without a member
// "error". Names are compared as they decode.
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
