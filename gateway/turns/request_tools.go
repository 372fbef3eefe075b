package turns

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/upstream"
)

// RequestTool is a tool as a request defines it.
type RequestTool struct {
	// Wire is its name on the wire, of letters, digits, _ and -. Name is the one that it gets in
	// the registry, which must become Wire there; empty is Wire. A tool of a namespace, or of a
	// toolset, is NAMESPACE.NAME in the registry, and NAMESPACE_NAME here.
	Wire, Name  string
	Description string
	Schema      json.RawMessage // of the arguments; nil: the request does not state it
	// Param is the part of the request that states the schema.
	Param string
}

// BringTools takes the definitions of tools in the request, before SetOffer. A tool that the
// registry has keeps the registry's schema: if the request states another one, the head of the answer
// and the log name the tool. Where the registry does not describe it, the model gets the request's words. A tool that the registry does not have joins the registry of this request,
// where the rules of the upstream allow that (tools: request) and the application runs the
// calls; otherwise SetOffer refuses it. Its error is a *Failure.
func (r *Run) BringTools(tools []RequestTool) error {
	var brought []registry.Brought
	var params []string
	for i := range tools {
		t := &tools[i]
		if name, known := r.Admission.ToolName(t.Wire); known {
			if t.Description != "" {
				if r.described == nil {
					r.described = map[string]string{}
				}
				r.described[name] = t.Description
			}
			if t.Schema != nil && !r.Admission.Agrees(name, t.Schema) {
				r.replaced = append(r.replaced, name)
			}
			continue
		}
		if r.Route.Rules.Tools != upstream.FromRequest {
			continue
		}
		if r.Mode == gateway.ModeCall {
			return Bad(t.Param, "The tool %s is not in the registry, and only the application could run it. Send the request with the header %s: %s.",
				parser.Quote(t.Wire), HeaderMode, upstream.Enforce)
		}
		b := registry.Brought{Name: t.Name, Description: t.Description, InputSchema: t.Schema}
		if b.Name == "" {
			b.Name = t.Wire
		}
		if b.InputSchema == nil {
			b.InputSchema = noArguments
		}
		brought, params = append(brought, b), append(params, t.Param)
	}
	if brought == nil {
		return nil
	}
	admission, err := r.Admission.WithTools(brought)
	if err != nil {
		return badTool(err, params)
	}
	for i := range tools {
		// A name outside of the wire's alphabet stands for no tool.
		if _, known := admission.ToolName(tools[i].Wire); !known {
			return Bad(tools[i].Param, "The name %s is not one of letters, digits, _ and -, at most 64.", parser.Quote(tools[i].Wire))
		}
	}
	r.Admission = admission
	return nil
}

// UnknownTool is the failure for a tool of the request, by its name on the wire, that is not in the
// registry. The subcommand of tools import reads requests of the face's API.
func (r *Run) UnknownTool(param, wire, subcommand string) *Failure {
	return Bad(param, "The tool %s is not in the registry. Put the body of the request into FILE, and import its tools with: callgate tools import %s FILE; "+
		"or the operator lets requests bring tools, with tools: request at the upstream %s.", parser.Quote(wire), subcommand, r.Route.Upstream)
}

// noArguments is the schema of a tool of which a request states none.
var noArguments = json.RawMessage(`{"type":"object","properties":{}}`)

// badTool is the failure for definitions that the registry does not take: it names the first of them.
func badTool(err error, params []string) error {
	var fault *registry.LoadError
	if !errors.As(err, &fault) {
		return Bad("tools", "The tools of the request cannot be told apart: %v.", err)
	}
	param := "tools"
	if fault.Tool < len(params) {
		param = params[fault.Tool]
	}
	at := strings.Join(fault.Field, ".")
	if fault.Pointer != "" {
		at += " at " + fault.Pointer
	}
	why := strings.TrimPrefix(at+": "+fault.Message, ": ")
	return Bad(param, "The tool %s cannot be judged strictly: %s.", parser.Quote(fault.Name), why)
}

// maxReplaced bounds the header with the names of tools, in bytes.
const maxReplaced = 1024
