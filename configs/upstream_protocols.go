package configs

import (
	"slices"
	"strings"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/upstream"
)

// wireFields are the keys of an upstream and of a model about the protocols that it speaks, and
// about what only one of them has.
func wireFields(r *upstream.Rules) []document.FieldReader {
	m, o := &r.Messages, &r.Responses
	return []document.FieldReader{
		document.Field("speaks", func(n document.Node) {
			r.Speaks = nil
			n.List("protocols", func(_ int, item document.Node) {
				var w upstream.Wire
				const of = "the API that models are asked in"
				document.ReadChoice(item, of, &w, upstream.ChatWire, upstream.MessagesWire, upstream.ResponsesWire)
				r.Speaks = append(r.Speaks, w)
			})
			n.Unique()
			n.HasElements()
		}),
		document.Choice("tools", "where definitions of tools come from", &r.Tools, upstream.FromRegistry, upstream.FromRequest),
		document.Choice("refusals", "what an application gets when a completion stays refused", &r.Refusals, upstream.AsError, upstream.AsMessage),
		document.Group("messages",
			namesField("server_tools", "types of tools that the provider runs", &m.ServerTools),
			namesField("mcp_servers", "names of servers that the provider may call", &m.MCPServers),
			document.Bool("thread", "whether the provider may keep conversations", &m.Thread),
			document.Bool("container", "whether the provider may keep a container", &m.Container),
			document.Bool("fallbacks", "whether another model may answer", &m.Fallbacks),
			document.Bool("programmatic_calls", "whether a program at the provider may call tools", &m.ProgrammaticCalls),
			document.Bool("tool_definitions", "whether messages may define tools", &m.ToolDefinitions),
			document.Choice("unknown_blocks", "what becomes of content blocks of unknown types", &m.UnknownBlocks, upstream.Refuse, upstream.Pass),
			document.Choice("safeguards", "what becomes of an agent's request for verdicts of the provider", &m.Safeguards, upstream.Auto, upstream.Pass, upstream.Drop, upstream.Refuse),
		),
		document.Group("responses",
			hostedTools(&o.HostedTools),
			namesField("mcp_servers", "labels of servers that the provider may call", &o.MCPServers),
			document.Choice("state", "what becomes of conversations that the provider keeps", &o.State, upstream.RefuseState, upstream.BindState),
			document.Bool("background", "whether an answer may be fetched later", &o.Background),
			document.Bool("prompt", "whether a request may name a stored template", &o.Prompt),
			document.Bool("async", "whether the result of a call may come in a later turn", &o.Async),
			document.Bool("programmatic_calls", "whether a program at the provider may call tools", &o.ProgrammaticCalls),
			document.Bool("additional_tools", "whether input may define tools", &o.AdditionalTools),
			document.Choice("unknown_items", "what becomes of items of unknown types", &o.UnknownItems, upstream.Refuse, upstream.Pass),
		),
	}
}

// namesField is a list of names that takes the place of the one before.
func namesField(key, of string, into *[]string) document.FieldReader {
	return document.Field(key, func(n document.Node) { readWireNames(n, of, into) }).Matching(wireNamesPattern)
}

const wireNamesPattern = `^([!-)+-~]|[!-~]{2,256})$`

func readWireNames(n document.Node, of string, into *[]string) {
	*into = nil
	n.Texts(of, into)
	n.Unique()
}

// hostedTools are the tools of the provider. A word that is no type of one known here is warned of: it lets
// a tool of a request pass, and no item of an answer.
func hostedTools(into *[]string) document.FieldReader {
	return document.Field("hosted_tools", func(n document.Node) {
		readWireNames(n, "types of tools that the provider hosts", into)
		for _, word := range n.Content {
			if !slices.ContainsFunc(upstream.HostedTypes, func(known string) bool { return word.Value == known || strings.HasPrefix(word.Value, known+"_2") }) {
				n.With(word).Warn("%q is no type of a tool that is known here: it lets tools of this type pass in a request, and no item in a conversation. "+
					"Items pass by mcp_servers, programmatic_calls or unknown_items", word.Value)
			}
		}
	}).Matching(wireNamesPattern)
}

// bringsTools reports whether requests to a model of the upstream may bring tools that the registry
// does not have.
func bringsTools(d upstream.Definition) bool {
	return d.Rules.Tools == upstream.FromRequest || slices.ContainsFunc(d.Models, func(m upstream.Model) bool {
		return m.Rules != nil && m.Rules.Tools == upstream.FromRequest
	})
}

// checkSwitches reports switches of a protocol that is not spoken: they would have no effect.
func checkSwitches(n document.Node, r upstream.Rules) {
	for _, w := range []upstream.Wire{upstream.MessagesWire, upstream.ResponsesWire} {
		if key, _, ok := n.Child(string(w)); ok && !slices.Contains(r.Speaks, w) {
			key.Fail("found switches of %s, which is not among the protocols that are spoken; expected speaks: [%s]", w, w)
		}
	}
}
