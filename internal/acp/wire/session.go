package wire

import "encoding/json"

// NewSessionRequest is the params of session/new.
type NewSessionRequest struct {
	Cwd                   string          `json:"cwd" wire:"required path"`                   // absolute
	AdditionalDirectories []string        `json:"additionalDirectories,omitzero" wire:"path"` // absolute
	MCPServers            List[MCPServer] `json:"mcpServers" wire:"required"`
	Meta                  Meta            `json:"_meta,omitempty"`
}

// OpenSessionRequest is the params of session/load and session/resume, where mcpServers may be absent.
type OpenSessionRequest struct {
	SessionID             string          `json:"sessionId" wire:"required id"`
	Cwd                   string          `json:"cwd" wire:"required path"`                   // absolute
	AdditionalDirectories []string        `json:"additionalDirectories,omitzero" wire:"path"` // absolute
	MCPServers            List[MCPServer] `json:"mcpServers"`
	Meta                  Meta            `json:"_meta,omitempty"`
}

// MCPTransport is how an MCP server is reached.
type MCPTransport string

// The transports. A server on stdio is written without a type.
const (
	Stdio MCPTransport = "stdio"
	HTTP  MCPTransport = "http"
	SSE   MCPTransport = "sse"
)

// MCPServer is an MCP server that the client names: a program (Command, Args, Env) or a URL with
// headers.
type MCPServer struct {
	Transport MCPTransport      `json:"type" wire:"notnull kind" enum:"http sse stdio"`
	Name      string            `json:"name" wire:"required"`
	Command   string            `json:"command" of:"stdio!"`
	Args      List[string]      `json:"args" of:"stdio!"`
	Env       List[EnvVariable] `json:"env" of:"stdio!"`
	URL       string            `json:"url" of:"http! sse!"`
	Headers   List[HTTPHeader]  `json:"headers" of:"http! sse!"`
	Meta      Meta              `json:"_meta"`
}

// HTTPHeader is a header for each request to a server.
type HTTPHeader struct {
	Name  string `json:"name" wire:"required"`
	Value string `json:"value" wire:"required"`
	Meta  Meta   `json:"_meta,omitempty"`
}

// NewSessionResponse is the result of session/new.
type NewSessionResponse struct {
	SessionID     string         `json:"sessionId" wire:"required id"`
	Modes         *ModeState     `json:"modes,omitempty"`
	ConfigOptions []ConfigOption `json:"configOptions,omitzero" wire:"null"`
	Meta          Meta           `json:"_meta,omitempty"`
}

// OpenSessionResponse is the result of session/load and session/resume.
type OpenSessionResponse struct {
	Modes         *ModeState     `json:"modes,omitempty"`
	ConfigOptions []ConfigOption `json:"configOptions,omitzero" wire:"null"`
	Meta          Meta           `json:"_meta,omitempty"`
}

// SessionRequest is the params of session/close, session/delete and session/cancel.
type SessionRequest struct {
	SessionID string `json:"sessionId" wire:"required id"`
	Meta      Meta   `json:"_meta,omitempty"`
}

// ListSessionsRequest is the params of session/list.
type ListSessionsRequest struct {
	Cwd    string `json:"cwd,omitempty" wire:"path"` // absolute; empty: all
	Cursor string `json:"cursor,omitempty"`
	Meta   Meta   `json:"_meta,omitempty"`
}

// ListSessionsResponse is the result of session/list.
type ListSessionsResponse struct {
	Sessions   List[SessionInfo] `json:"sessions" wire:"required"`
	NextCursor string            `json:"nextCursor,omitempty"` // empty: there are no more
	Meta       Meta              `json:"_meta,omitempty"`
}

// SessionInfo is one session of a list.
type SessionInfo struct {
	SessionID             string   `json:"sessionId" wire:"required id"`
	Cwd                   string   `json:"cwd" wire:"required path"`                   // absolute
	AdditionalDirectories []string `json:"additionalDirectories,omitzero" wire:"path"` // absolute
	Title                 string   `json:"title,omitempty"`
	UpdatedAt             string   `json:"updatedAt,omitempty"`
	Meta                  Meta     `json:"_meta,omitempty"`
}

// ReadLoadSessionRequest reads the params of session/load, where mcpServers must be there.
func ReadLoadSessionRequest(raw json.RawMessage) (OpenSessionRequest, error) {
	r, err := Read[OpenSessionRequest](raw)
	if err == nil && r.MCPServers == nil {
		return OpenSessionRequest{}, &Error{Expected: `a member "mcpServers"`, Found: "none"}
	}
	return r, err
}

func (s *MCPServer) read(o *object) {
	s.Transport = Stdio
	o.fields(s)
	o.at("env").differ(s.Env)
}

// MarshalJSON writes the members that the transport has.
func (s MCPServer) MarshalJSON() ([]byte, error) {
	kind := string(s.Transport)
	if s.Transport == Stdio {
		s.Transport = ""
	}
	return written(kind, s)
}
