package upstream

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/callgate/callgate/internal/ascii"
)

// MaxWireName bounds the names in ServerTools, HostedTools and MCPServers, in bytes.
const MaxWireName = 256

func (v *validation) wires(r Rules, path []string) {
	speaks := childPath(path, "speaks")
	if len(r.Speaks) == 0 {
		v.add("found no protocols, expected chat, messages, responses or several of them", speaks...)
	}
	for i, w := range r.Speaks {
		at := childPath(speaks, strconv.Itoa(i))
		if oneOf(v, w, wires(), at); slices.Contains(r.Speaks[:i], w) {
			v.add(fmt.Sprintf("found %q twice, expected each protocol once", w), at...)
		}
	}
	if r.Protocol == Text && (slices.Contains(r.Speaks, MessagesWire) || slices.Contains(r.Speaks, ResponsesWire)) {
		// Text mode needs instructions that the gateway adds to the conversation, and a signature may
		// bind the conversation (AM-74).
		v.add("found text beside messages or responses, expected native: only chat has calls as text", childPath(path, "protocol")...)
	}
	oneOf(v, r.Tools, []ToolSource{FromRegistry, FromRequest}, childPath(path, "tools"))
	oneOf(v, r.Refusals, []RefusalForm{AsError, AsMessage}, childPath(path, "refusals"))
	messages, responses := childPath(path, "messages"), childPath(path, "responses")
	v.wireNames(r.Messages.ServerTools, childPath(messages, "server_tools"))
	v.wireNames(r.Messages.MCPServers, childPath(messages, "mcp_servers"))
	oneOf(v, r.Messages.UnknownBlocks, []Treatment{Refuse, Pass}, childPath(messages, "unknown_blocks"))
	oneOf(v, r.Messages.Safeguards, []Treatment{Auto, Pass, Drop, Refuse}, childPath(messages, "safeguards"))
	v.wireNames(r.Responses.HostedTools, childPath(responses, "hosted_tools"))
	v.wireNames(r.Responses.MCPServers, childPath(responses, "mcp_servers"))
	oneOf(v, r.Responses.State, []State{RefuseState, BindState}, childPath(responses, "state"))
	oneOf(v, r.Responses.UnknownItems, []Treatment{Refuse, Pass}, childPath(responses, "unknown_items"))
}

func (v *validation) wireNames(names, path []string) {
	for i, name := range names {
		at := childPath(path, strconv.Itoa(i))
		switch {
		case name == "" || len(name) > MaxWireName || !ascii.IsVisible(name) || name == "*":
			v.add(fmt.Sprintf("found %q, expected one name of 1 to %d visible ASCII characters, not * for all", name, MaxWireName), at...)
		case slices.Contains(names[:i], name):
			v.add(fmt.Sprintf("found %q twice, expected each once", name), at...)
		}
	}
}
