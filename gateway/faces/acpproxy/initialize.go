package acpproxy

import (
	"slices"

	"github.com/callgate/callgate/internal/acp/wire"
)

// toAgent is the initialize that the agent gets for the editor's. It is told of nothing that the
// proxy does not judge or understand: no elicitation, no authentication in a terminal, which would
// run the agent beside the proxy, and no _meta, by which agents are told to run commands
// themselves.
func toAgent(r wire.InitializeRequest) wire.InitializeRequest {
	c := wire.ClientCapabilities{FS: r.ClientCapabilities.FS, Terminal: r.ClientCapabilities.Terminal, Session: r.ClientCapabilities.Session}
	out := wire.InitializeRequest{ProtocolVersion: wire.Version, ClientCapabilities: c, ClientInfo: r.ClientInfo}
	if out.ClientInfo != nil {
		info := *out.ClientInfo
		info.Meta = nil
		out.ClientInfo = &info
	}
	return out
}

// toEditor is the answer to initialize that the editor gets for the agent's. The MCP servers of a
// session are the proxy's, so that the editor's are not asked for; a way to authenticate in a
// terminal is left out.
func toEditor(r wire.InitializeResponse) wire.InitializeResponse {
	r.ProtocolVersion = wire.Version
	r.AgentCapabilities.MCPCapabilities = wire.MCPCapabilities{}
	r.AuthMethods = slices.DeleteFunc(slices.Clone(r.AuthMethods), wire.AuthMethod.Terminal)
	return r
}

// delegated names what the editor runs for the agent, and what it does not.
func delegated(c wire.ClientCapabilities) (offered, missing []string) {
	for _, each := range []struct {
		has  bool
		name string
	}{
		{c.FS.ReadTextFile, wire.MethodReadTextFile}, {c.FS.WriteTextFile, wire.MethodWriteTextFile}, {c.Terminal, "terminal/*"},
	} {
		if each.has {
			offered = append(offered, each.name)
		} else {
			missing = append(missing, each.name)
		}
	}
	return offered, missing
}

// offers reports whether the editor runs a method.
func offers(c wire.ClientCapabilities, method string) bool {
	switch method {
	case wire.MethodReadTextFile:
		return c.FS.ReadTextFile
	case wire.MethodWriteTextFile:
		return c.FS.WriteTextFile
	default:
		return c.Terminal
	}
}

// may reports whether the agent has said that it knows a method of the editor.
func may(a wire.InitializeResponse, method string) bool {
	c := a.AgentCapabilities
	switch method {
	case wire.MethodSessionLoad:
		return c.LoadSession
	case wire.MethodSessionResume:
		return c.SessionCapabilities.Resume != nil
	case wire.MethodSessionList:
		return c.SessionCapabilities.List != nil
	case wire.MethodSessionDelete:
		return c.SessionCapabilities.Delete != nil
	case wire.MethodSessionClose:
		return c.SessionCapabilities.Close != nil
	case wire.MethodLogout:
		return c.Auth.Logout != nil
	}
	return true
}

// takes reports whether the agent has said that it takes the content of a prompt.
func takes(c wire.PromptCapabilities, prompt []wire.ContentBlock) bool {
	return !slices.ContainsFunc(prompt, func(b wire.ContentBlock) bool {
		switch b.Type {
		case wire.Image:
			return !c.Image
		case wire.Audio:
			return !c.Audio
		case wire.Resource:
			return !c.EmbeddedContext
		}
		return false
	})
}
