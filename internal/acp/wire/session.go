package wire

import (
	"encoding/json"
	"fmt"
)

// NewSessionRequest is the params of session/new.
type NewSessionRequest struct {
	Cwd                   string          `json:"cwd"`                            // absolute
	AdditionalDirectories []string        `json:"additionalDirectories,omitzero"` // absolute
	MCPServers            List[MCPServer] `json:"mcpServers"`
	Meta                  Meta            `json:"_meta,omitempty"`
}

// OpenSessionRequest is the params of session/load and session/resume.
type OpenSessionRequest struct {
	SessionID             string          `json:"sessionId"`
	Cwd                   string          `json:"cwd"`                            // absolute
	AdditionalDirectories []string        `json:"additionalDirectories,omitzero"` // absolute
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
	Transport MCPTransport
	Name      string
	Command   string
	Args      []string
	Env       []EnvVariable
	URL       string
	Headers   []HTTPHeader
	Meta      Meta
}

// HTTPHeader is a header for each request to a server.
type HTTPHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Meta  Meta   `json:"_meta,omitempty"`
}

// NewSessionResponse is the result of session/new.
type NewSessionResponse struct {
	SessionID     string         `json:"sessionId"`
	Modes         *ModeState     `json:"modes,omitempty"`
	ConfigOptions []ConfigOption `json:"configOptions,omitzero"`
	Meta          Meta           `json:"_meta,omitempty"`
}

// OpenSessionResponse is the result of session/load and session/resume.
type OpenSessionResponse struct {
	Modes         *ModeState     `json:"modes,omitempty"`
	ConfigOptions []ConfigOption `json:"configOptions,omitzero"`
	Meta          Meta           `json:"_meta,omitempty"`
}

// SessionRequest is the params of session/close, session/delete and session/cancel.
type SessionRequest struct {
	SessionID string `json:"sessionId"`
	Meta      Meta   `json:"_meta,omitempty"`
}

// ListSessionsRequest is the params of session/list.
type ListSessionsRequest struct {
	Cwd    string `json:"cwd,omitempty"` // absolute; empty: all
	Cursor string `json:"cursor,omitempty"`
	Meta   Meta   `json:"_meta,omitempty"`
}

// ListSessionsResponse is the result of session/list.
type ListSessionsResponse struct {
	Sessions   List[SessionInfo] `json:"sessions"`
	NextCursor string            `json:"nextCursor,omitempty"` // empty: there are no more
	Meta       Meta              `json:"_meta,omitempty"`
}

// SessionInfo is one session of a list.
type SessionInfo struct {
	SessionID             string   `json:"sessionId"`
	Cwd                   string   `json:"cwd"`                            // absolute
	AdditionalDirectories []string `json:"additionalDirectories,omitzero"` // absolute
	Title                 string   `json:"title,omitempty"`
	UpdatedAt             string   `json:"updatedAt,omitempty"`
	Meta                  Meta     `json:"_meta,omitempty"`
}

// ReadNewSessionRequest reads the params of session/new.
func ReadNewSessionRequest(raw json.RawMessage) (NewSessionRequest, error) {
	return read(raw, drop, func(o *object) NewSessionRequest {
		return NewSessionRequest{o.rPath("cwd"), o.paths("additionalDirectories"), rObjects(o, "mcpServers", readMCPServer), o.meta()}
	})
}

// ReadLoadSessionRequest reads the params of session/load.
func ReadLoadSessionRequest(raw json.RawMessage) (OpenSessionRequest, error) {
	return readOpenSession(raw, (*object).required)
}

// ReadResumeSessionRequest reads the params of session/resume, where mcpServers may be absent.
func ReadResumeSessionRequest(raw json.RawMessage) (OpenSessionRequest, error) {
	return readOpenSession(raw, (*object).optional)
}

func readOpenSession(raw json.RawMessage, servers func(*object, string) json.RawMessage) (OpenSessionRequest, error) {
	return read(raw, drop, func(o *object) OpenSessionRequest {
		return OpenSessionRequest{
			SessionID: o.rID("sessionId"), Cwd: o.rPath("cwd"), AdditionalDirectories: o.paths("additionalDirectories"),
			MCPServers: objects(o, "mcpServers", servers(o, "mcpServers"), readMCPServer), Meta: o.meta(),
		}
	})
}

func readMCPServer(o *object) MCPServer {
	s := MCPServer{Transport: Stdio, Name: o.rText("name"), Meta: o.meta()}
	if raw := o.optional("type"); raw != nil {
		s.Transport = enum(o.at("type"), raw, HTTP, SSE, Stdio)
	}
	if s.Transport == Stdio {
		s.Command = o.rText("command")
		s.Args = list(o.at("args"), o.required("args"), (*place).text)
		s.Env = readEnv(o, o.required("env"))
		return s
	}
	s.URL = o.rText("url")
	s.Headers = rObjects(o, "headers", func(o *object) HTTPHeader {
		return HTTPHeader{o.rText("name"), o.rText("value"), o.meta()}
	})
	return s
}

// MarshalJSON writes the members that the transport has.
func (s MCPServer) MarshalJSON() ([]byte, error) {
	switch s.Transport {
	case Stdio:
		return json.Marshal(struct {
			Name    string            `json:"name"`
			Command string            `json:"command"`
			Args    List[string]      `json:"args"`
			Env     List[EnvVariable] `json:"env"`
			Meta    Meta              `json:"_meta,omitempty"`
		}{s.Name, s.Command, s.Args, s.Env, s.Meta})
	case HTTP, SSE:
		return json.Marshal(struct {
			Type    MCPTransport     `json:"type"`
			Name    string           `json:"name"`
			URL     string           `json:"url"`
			Headers List[HTTPHeader] `json:"headers"`
			Meta    Meta             `json:"_meta,omitempty"`
		}{s.Transport, s.Name, s.URL, s.Headers, s.Meta})
	}
	return nil, fmt.Errorf("%q is no transport of an MCP server", s.Transport)
}

// ReadNewSessionResponse reads the result of session/new.
func ReadNewSessionResponse(raw json.RawMessage) (NewSessionResponse, error) {
	return read(raw, drop, func(o *object) NewSessionResponse {
		return NewSessionResponse{o.rID("sessionId"), oObject(o, "modes", readModeState), oObjects(o, "configOptions", readConfigOption), o.meta()}
	})
}

// ReadOpenSessionResponse reads the result of session/load and session/resume. Null is an empty
// one.
func ReadOpenSessionResponse(raw json.RawMessage) (OpenSessionResponse, error) {
	return read(raw, drop, func(o *object) OpenSessionResponse {
		return OpenSessionResponse{oObject(o, "modes", readModeState), oObjects(o, "configOptions", readConfigOption), o.meta()}
	})
}

// ReadSessionRequest reads the params of session/close, session/delete and session/cancel.
func ReadSessionRequest(raw json.RawMessage) (SessionRequest, error) {
	return read(raw, drop, func(o *object) SessionRequest { return SessionRequest{o.rID("sessionId"), o.meta()} })
}

// ReadListSessionsRequest reads the params of session/list.
func ReadListSessionsRequest(raw json.RawMessage) (ListSessionsRequest, error) {
	return read(raw, drop, func(o *object) ListSessionsRequest {
		return ListSessionsRequest{o.oPath("cwd"), o.oText("cursor"), o.meta()}
	})
}

// ReadListSessionsResponse reads the result of session/list.
func ReadListSessionsResponse(raw json.RawMessage) (ListSessionsResponse, error) {
	return read(raw, drop, func(o *object) ListSessionsResponse {
		return ListSessionsResponse{rObjects(o, "sessions", func(o *object) SessionInfo {
			return SessionInfo{o.rID("sessionId"), o.rPath("cwd"), o.paths("additionalDirectories"), o.oText("title"), o.oText("updatedAt"), o.meta()}
		}), o.oText("nextCursor"), o.meta()}
	})
}
