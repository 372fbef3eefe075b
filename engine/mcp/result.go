package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const maxEnvelope = 64 << 10

// maxWireBytes is how long the response to a call may be on the wire. A result stands in
// it escaped, and often twice: structured, and as text.
func maxWireBytes(limit int64) int64 { return 4*limit + maxEnvelope }

// resultOf reads a result of tools/call. A result that asks for input comes with a
// refusal.
func resultOf(call tool.Call, raw json.RawMessage) (tool.Result, *refusal.Error) {
	members, ok := object(raw)
	if !ok {
		return tool.Result{}, refuse.InvalidResult(call, "its result is not an object")
	}
	if !isComplete(members) {
		return incompleteResult(call, members)
	}
	switch failed := members["isError"]; {
	case string(failed) == "true":
		return tool.Result{}, toolFailure(call, wordsOf(members["content"]), "the tool says that it failed")
	case failed != nil && string(failed) != "false":
		return tool.Result{}, refuse.InvalidResult(call, "its result does not say whether it is an error")
	}
	structured := members["structuredContent"]
	blocks, ok := array(members["content"])
	if !ok && (members["content"] != nil || structured == nil) {
		return tool.Result{}, refuse.InvalidResult(call, "its result has no content")
	}
	contents := make([]content, len(blocks))
	for i, b := range blocks {
		if contents[i], ok = readContent(b); !ok {
			return tool.Result{}, refuse.InvalidResult(call, "its result has a block of content that cannot be read")
		}
	}
	result := bodyOf(call, members["content"], structured, contents)
	if int64(len(result.Body)) > call.Run.MaxResultBytes {
		return tool.Result{}, refuse.ResultTooLarge(call)
	}
	return result, nil
}

// bodyOf is the part of a result that is passed on. An output schema describes the
// structured content alone.
func bodyOf(call tool.Call, blocks, structured json.RawMessage, contents []content) tool.Result {
	plain := true
	for _, c := range contents {
		plain = plain && c.kind == "text"
	}
	switch {
	case structured != nil && (plain || call.Typed):
		return tool.Result{Body: structured, JSON: true}
	case structured == nil && plain && len(contents) == 1:
		return tool.Result{Body: []byte(contents[0].text)}
	}
	body := slices.Concat([]byte(`{"content":`), blocks)
	if structured != nil {
		body = slices.Concat(body, []byte(`,"structuredContent":`), structured)
	}
	return tool.Result{Body: append(body, '}'), JSON: true}
}

// toolFailure refuses a call whose tool failed. The model gets the tool's words, quoted;
// the operator does not. The tool is not named, because the model may know it by another
// name.
func toolFailure(call tool.Call, text, cause string) *refusal.Error {
	message := "The tool failed."
	if text = strings.TrimSpace(text); text != "" {
		message += " It says: " + refuse.Quote(text)
	}
	return refuse.Failed(message).WithCause(fmt.Errorf("%s: %s", call.Tool, cause))
}

// incompleteResult reads a result that is not complete.
func incompleteResult(call tool.Call, members map[string]json.RawMessage) (tool.Result, *refusal.Error) {
	switch kind := members[wire.MemberResultType]; {
	case isString(kind, wire.ResultInputRequired) && len(call.QuestionKinds) > 0:
		requested, refused := readInputRequired(call, members)
		return tool.Result{InputRequired: requested}, refused
	case isString(kind, wire.ResultInputRequired):
		return tool.Result{}, unsupported(call, "it asks for input, which it is not given here")
	case isString(kind, "task"):
		return tool.Result{}, unsupported(call, "it answers with a task, which is not waited for here")
	}
	return tool.Result{}, unsupported(call, "its result is of a type that is not known here")
}

// unsupported refuses a result of a kind that is not supported.
func unsupported(call tool.Call, cause string) *refusal.Error {
	return refuse.Failed("The tool asks for something that is not supported here; continue without it.").
		WithCause(fmt.Errorf("%s: %s", call.Tool, cause))
}
