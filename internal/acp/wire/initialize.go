package wire

import "slices"

// InitializeRequest is the params of initialize.
type InitializeRequest struct {
	ProtocolVersion    uint16             `json:"protocolVersion" wire:"required"`
	ClientCapabilities ClientCapabilities `json:"clientCapabilities"`
	ClientInfo         *Implementation    `json:"clientInfo,omitempty"`
	Meta               Meta               `json:"_meta,omitempty"`
}

// Implementation names a program.
type Implementation struct {
	Name    string `json:"name" wire:"required"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version" wire:"required"`
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

// InitializeResponse is the result of initialize. Methods of authentication of a type that the protocol
// does not have are left out.
type InitializeResponse struct {
	ProtocolVersion   uint16            `json:"protocolVersion" wire:"required"`
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

func (r *InitializeResponse) read(o *object) {
	o.fields(r)
	r.AuthMethods = slices.DeleteFunc(r.AuthMethods, func(m AuthMethod) bool { return m.Type != "" && !m.Terminal() })
}
