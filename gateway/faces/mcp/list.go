package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// maxPage is how many tools are listed at a time.
const maxPage = 100

// clientName is the one name by which clients know a tool.
func (f *Face) clientName(t *gateway.Tool) string {
	if f.options.RegistryNames {
		return t.Name
	}
	return t.Wire
}

// nativeCall is a call of the tool that clients know by a name. The kernel refuses any other
// name of that tool as unknown.
func (f *Face) nativeCall(a *gateway.Admission, name string, arguments []byte) *gateway.NativeCall {
	n := &gateway.NativeCall{Name: name, Arguments: arguments}
	if f.options.RegistryNames {
		return n
	}
	n.Wire = name
	if registered, ok := a.ToolName(name); ok {
		n.Name = registered
	}
	return n
}

// listTools lists what the agent may use, in the order of the names. Tools that an
// application runs itself cannot be called here and are left out.
func (f *Face) listTools(r request) *response {
	after, fault := f.readCursor(r)
	if fault != nil {
		return &response{fault: fault}
	}
	all, err := r.admission.Tools()
	if err != nil {
		return &response{fault: refusalError(refusal.From(refusal.Identity, err))}
	}
	all = slices.DeleteFunc(all, func(t gateway.Tool) bool { return t.Client || f.clientName(&t) <= after })
	slices.SortFunc(all, func(a, b gateway.Tool) int { return strings.Compare(f.clientName(&a), f.clientName(&b)) })
	page := all[:min(len(all), maxPage)]
	list := make([]object, 0, len(page))
	for i := range page {
		list = append(list, f.describeTool(&page[i]))
	}
	result := r.cacheable(object{"tools": list})
	if len(page) < len(all) {
		result["nextCursor"] = f.newCursor(r, f.clientName(&page[len(page)-1]))
	}
	return &response{result: result}
}

// describeTool returns a tool as the list describes it.
func (f *Face) describeTool(t *gateway.Tool) object {
	d := object{
		"name": f.clientName(t), "inputSchema": t.AuthoredSchema,
		"annotations": object{"readOnlyHint": t.Effect == "read", "idempotentHint": t.Effect != "once",
			"destructiveHint": t.Effect != "read"},
	}
	if t.Description != "" {
		d["description"] = t.Description
	}
	if listsOutput(t) {
		d["outputSchema"] = t.OutputSchema
	}
	return d
}

// listsOutput reports whether a tool's output schema describes structuredContent. A result
// that is no object, or has a member error, which is Callgate's own, is wrapped in a member
// value; so the schema must allow neither. A schema with a $ref at its root is not listed,
// because that cannot be seen from it.
func listsOutput(t *gateway.Tool) bool {
	if len(t.OutputSchema) == 0 {
		return false
	}
	schema := parser.DecodeObject(bytes.TrimSpace(t.OutputSchema))
	if _, refers := schema["$ref"]; refers || schema["type"] != "object" {
		return false
	}
	properties, _ := schema["properties"].(map[string]any)
	if own, stated := properties["error"]; stated {
		return own == false
	}
	_, patterns := schema["patternProperties"]
	return schema["additionalProperties"] == false && !patterns
}

// The cursor of a list is the last name of the page, with a checksum over configuration,
// agent and name. A cursor of another configuration or agent, or that was made up, is
// refused. It gives access to nothing.
func (f *Face) readCursor(r request) (after string, _ *rpcError) {
	if fault := r.checkParams("cursor"); fault != nil {
		return "", fault
	}
	cursor, has := r.params["cursor"]
	if !has {
		return "", nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(stringOf(cursor))
	if err != nil || len(b) <= cursorSumBytes {
		return "", badCursor()
	}
	after = string(b[cursorSumBytes:])
	if !bytes.Equal(b[:cursorSumBytes], f.cursorSum(r, after)) {
		return "", badCursor()
	}
	return after, nil
}

func badCursor() *rpcError {
	return newError(jsonrpc.CodeParams, "The cursor is not one that this list was given with, or the list has changed since. Ask for it from the start.").withStatus(http.StatusOK)
}

const cursorSumBytes = 12

func (f *Face) newCursor(r request, name string) string {
	return base64.RawURLEncoding.EncodeToString(append(f.cursorSum(r, name), name...))
}

func (f *Face) cursorSum(r request, name string) []byte {
	// Strings always encode.
	of, _ := json.Marshal([]any{f.options.Executor.Kernel.Digest(), r.admission.Subject(), name})
	sum := sha256.Sum256(of)
	return sum[:cursorSumBytes]
}
