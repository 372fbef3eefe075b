package wire

import (
	"encoding/json"
	"math"
)

// InitializeRequest is the params of initialize.
type InitializeRequest struct {
	ProtocolVersion    uint16             `json:"protocolVersion"`
	ClientCapabilities ClientCapabilities `json:"clientCapabilities"`
	ClientInfo         *Implementation    `json:"clientInfo,omitempty"`
	Meta               Meta               `json:"_meta,omitempty"`
}

// Implementation names a program.
type Implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
	Meta    Meta   `json:"_meta,omitempty"`
}

// Capability is one that is there where it is not nil.
type Capability struct{}

// ClientCapabilities is the record of methods that the client runs for the agent. Absent is not supported.
type ClientCapabilities struct {
	FS          FSCapabilities             `json:"fs"`
	Terminal    bool                       `json:"terminal"`
	Session     *ClientSessionCapabilities `json:"session,omitempty"`
	Auth        ClientAuthCapabilities     `json:"auth"`
	Elicitation *ElicitationCapabilities   `json:"elicitation,omitempty"`
	Meta        Meta                       `json:"_meta,omitempty"`
}

// FSCapabilities says which methods fs/* the client runs.
type FSCapabilities struct {
	ReadTextFile  bool `json:"readTextFile"`
	WriteTextFile bool `json:"writeTextFile"`
}

// ClientSessionCapabilities says which parts of sessions the client knows.
type ClientSessionCapabilities struct {
	ConfigOptions *ConfigOptionCapabilities `json:"configOptions,omitempty"`
}

// ConfigOptionCapabilities says which types of options the client knows beside select.
type ConfigOptionCapabilities struct {
	Boolean *Capability `json:"boolean,omitempty"`
}

// ClientAuthCapabilities says whether the client runs authentication in a terminal.
type ClientAuthCapabilities struct {
	Terminal bool `json:"terminal"`
}

// ElicitationCapabilities says which modes of elicitation the client knows.
type ElicitationCapabilities struct {
	Form *Capability `json:"form,omitempty"`
	URL  *Capability `json:"url,omitempty"`
}

// InitializeResponse is the result of initialize.
type InitializeResponse struct {
	ProtocolVersion   uint16            `json:"protocolVersion"`
	AgentCapabilities AgentCapabilities `json:"agentCapabilities"`
	AuthMethods       List[AuthMethod]  `json:"authMethods"`
	AgentInfo         *Implementation   `json:"agentInfo,omitempty"`
	Meta              Meta              `json:"_meta,omitempty"`
}

// AgentCapabilities is the record of methods that the agent knows. Absent is not supported.
type AgentCapabilities struct {
	LoadSession         bool                  `json:"loadSession"`
	PromptCapabilities  PromptCapabilities    `json:"promptCapabilities"`
	MCPCapabilities     MCPCapabilities       `json:"mcpCapabilities"`
	SessionCapabilities SessionCapabilities   `json:"sessionCapabilities"`
	Auth                AgentAuthCapabilities `json:"auth"`
	Meta                Meta                  `json:"_meta,omitempty"`
}

// PromptCapabilities says which content a prompt may have beside text and links.
type PromptCapabilities struct {
	Image           bool `json:"image"`
	Audio           bool `json:"audio"`
	EmbeddedContext bool `json:"embeddedContext"`
}

// MCPCapabilities says which MCP servers the agent connects to beside those on stdio.
type MCPCapabilities struct {
	HTTP bool `json:"http"`
	SSE  bool `json:"sse"`
}

// SessionCapabilities says which methods of sessions the agent knows.
type SessionCapabilities struct {
	List                  *Capability `json:"list,omitempty"`
	Delete                *Capability `json:"delete,omitempty"`
	AdditionalDirectories *Capability `json:"additionalDirectories,omitempty"`
	Resume                *Capability `json:"resume,omitempty"`
	Close                 *Capability `json:"close,omitempty"`
}

// AgentAuthCapabilities says whether the agent knows logout.
type AgentAuthCapabilities struct {
	Logout *Capability `json:"logout,omitempty"`
}

// ReadInitializeRequest reads the params of initialize.
func ReadInitializeRequest(raw json.RawMessage) (InitializeRequest, error) {
	return read(raw, drop, func(o *object) InitializeRequest {
		return InitializeRequest{
			ProtocolVersion:    o.version(),
			ClientCapabilities: dObject(o, "clientCapabilities", readClientCapabilities),
			ClientInfo:         oObject(o, "clientInfo", readImplementation),
			Meta:               o.meta(),
		}
	})
}

func (o *object) version() uint16 {
	n := o.at("protocolVersion").whole(o.required("protocolVersion"), 0, math.MaxUint16)
	if n == nil {
		return 0
	}
	return uint16(*n)
}

func readImplementation(o *object) Implementation {
	return Implementation{o.rText("name"), o.oText("title"), o.rText("version"), o.meta()}
}

// capability reads an object whose presence is the capability.
func capability(o *object, name string) *Capability {
	return oObject(o, name, func(*object) Capability { return Capability{} })
}

func readClientCapabilities(o *object) ClientCapabilities {
	return ClientCapabilities{
		FS: dObject(o, "fs", func(o *object) FSCapabilities {
			return FSCapabilities{o.flag("readTextFile"), o.flag("writeTextFile")}
		}),
		Terminal: o.flag("terminal"),
		Session: oObject(o, "session", func(o *object) ClientSessionCapabilities {
			return ClientSessionCapabilities{oObject(o, "configOptions", func(o *object) ConfigOptionCapabilities {
				return ConfigOptionCapabilities{capability(o, "boolean")}
			})}
		}),
		Auth: dObject(o, "auth", func(o *object) ClientAuthCapabilities {
			return ClientAuthCapabilities{o.flag("terminal")}
		}),
		Elicitation: oObject(o, "elicitation", func(o *object) ElicitationCapabilities {
			return ElicitationCapabilities{capability(o, "form"), capability(o, "url")}
		}),
		Meta: o.meta(),
	}
}

// ReadInitializeResponse reads the result of initialize. Methods of authentication of a type
// that the protocol does not have are left out.
func ReadInitializeResponse(raw json.RawMessage) (InitializeResponse, error) {
	return read(raw, drop, func(o *object) InitializeResponse {
		return InitializeResponse{
			ProtocolVersion:   o.version(),
			AgentCapabilities: dObject(o, "agentCapabilities", readAgentCapabilities),
			AuthMethods:       readAuthMethods(o),
			AgentInfo:         oObject(o, "agentInfo", readImplementation),
			Meta:              o.meta(),
		}
	})
}

func readAgentCapabilities(o *object) AgentCapabilities {
	return AgentCapabilities{
		LoadSession: o.flag("loadSession"),
		PromptCapabilities: dObject(o, "promptCapabilities", func(o *object) PromptCapabilities {
			return PromptCapabilities{o.flag("image"), o.flag("audio"), o.flag("embeddedContext")}
		}),
		MCPCapabilities: dObject(o, "mcpCapabilities", func(o *object) MCPCapabilities {
			return MCPCapabilities{o.flag("http"), o.flag("sse")}
		}),
		SessionCapabilities: dObject(o, "sessionCapabilities", func(o *object) SessionCapabilities {
			return SessionCapabilities{
				List: capability(o, "list"), Delete: capability(o, "delete"),
				AdditionalDirectories: capability(o, "additionalDirectories"),
				Resume:                capability(o, "resume"), Close: capability(o, "close"),
			}
		}),
		Auth: dObject(o, "auth", func(o *object) AgentAuthCapabilities {
			return AgentAuthCapabilities{capability(o, "logout")}
		}),
		Meta: o.meta(),
	}
}
