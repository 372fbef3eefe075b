package turns

import (
	"encoding/json"
	"errors"
	"fmt"
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
	Wire, Name string
	// LongName says that the wire takes names of registry.MaxBroughtName bytes; a tool of a namespace may
	// have as many on every wire.
	LongName    bool
	Description string
	Schema      json.RawMessage // of the arguments; nil: the request does not state it
	// Param is the part of the request that states the schema.
	Param string
}

// BringTools takes the definitions of tools in the request, before SetOffer. A tool that the
// registry has keeps the registry's schema: if the request states another one, the head of the answer
// and the log name the tool. Where the registry does not describe it, the model gets the request's words. A tool that the registry does not
// have joins the registry of this request, where the rules of the upstream allow that (tools: request) and the application runs the calls;
// otherwise SetOffer refuses it. One that cannot be judged is left out of the offer, and the head of the answer and the log name it. Its
// error is a *Failure.
func (r *Run) BringTools(tools []RequestTool) error {
	var brought []registry.Brought
	var params []string
	size := 0
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
		if fault := t.checkName(); fault != "" {
			r.leaveOut(t.Wire, fault)
			continue
		}
		size += len(b.InputSchema)
		brought, params = append(brought, b), append(params, t.Param)
	}
	if brought == nil {
		return nil
	}
	if len(brought) > registry.MaxBrought || size > registry.MaxBroughtBytes {
		return Bad("tools", "There are too many tools: %d that are not in the registry, with schemas of %d bytes. With tools: request, the upstream %s takes at most %d, of %d bytes. "+
			"Send fewer; or the operator puts them into the registry, with callgate tools import, where they do not count.",
			len(brought), size, r.Route.Upstream, registry.MaxBrought, registry.MaxBroughtBytes)
	}
	admission, leftOut, cured, err := r.Admission.WithTools(brought)
	if err != nil {
		return badTool(err, params)
	}
	for _, fault := range leftOut {
		wire := strings.ReplaceAll(fault.Name, ".", "_") // as tools of a namespace are called here
		r.leaveOut(wire, explain(fault))
	}
	r.replaced = append(r.replaced, cured...)
	r.Admission = admission
	return nil
}

// checkName says what is wrong with the name of a tool that a request brings, or returns "".
func (t *RequestTool) checkName() string {
	alphabet := registry.OpenAI()
	most := alphabet.MaxBytes
	if t.LongName || t.Name != "" {
		most = registry.MaxBroughtName
	}
	if len(t.Wire) > most || strings.Trim(t.Wire, alphabet.Allowed) != "" {
		return fmt.Sprintf("its name is not one of letters, digits, _ and -, at most %d", most)
	}
	return ""
}

// leaveOut leaves a tool of the request out of the offer. The first reason stands.
func (r *Run) leaveOut(wire, why string) {
	if r.leftOut[wire] != "" {
		return
	}
	if r.leftOut == nil {
		r.leftOut = map[string]string{}
	}
	r.leftOut[wire] = why
	r.leftOutNames = append(r.leftOutNames, wire)
}

// UnknownTool is the failure for a tool of the request, by its name on the wire, that is not in the
// registry. The subcommand of tools import reads requests of the face's API.
func (r *Run) UnknownTool(param, wire, subcommand string) *Failure {
	return Bad(param, "The tool %s is not in the registry. Put the body of the request into FILE, and import its tools with: callgate tools import %s FILE; "+
		"or the operator lets requests bring tools, with tools: request at the upstream %s.", parser.Quote(wire), subcommand,
		r.Route.Upstream)
}

// noArguments is the schema of a tool of which a request states none.
var noArguments = json.RawMessage(`{"type":"object","properties":{}}`)

// badTool is the failure for tools whose names could mean another.
func badTool(err error, params []string) error {
	var fault *registry.LoadError
	if !errors.As(err, &fault) {
		return Bad("tools", "The tools of the request cannot be told apart: %v.", err)
	}
	param := "tools"
	if fault.Tool < len(params) {
		param = params[fault.Tool]
	}
	return Bad(param, "The tool %s cannot be told from another: %s.", parser.Quote(fault.Name), explain(fault))
}

// explain is a fault without the name of the tool.
func explain(fault *registry.LoadError) string {
	at := strings.Join(fault.Field, ".")
	if fault.Pointer != "" {
		at += " at " + fault.Pointer
	}
	return strings.TrimPrefix(at+": "+fault.Message, ": ")
}

// maxListed bounds a header with the names of tools, in bytes.
const maxListed = 1024
