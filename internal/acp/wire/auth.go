package wire

import "encoding/json"

// AuthMethod is a way to authenticate: by the agent itself or, where it is Terminal, by its program in a
// terminal with Args and Env.
type AuthMethod struct {
	Type        string            `json:"type,omitempty" wire:"kind"`
	ID          string            `json:"id" wire:"required id"`
	Name        string            `json:"name" wire:"required"`
	Description string            `json:"description,omitempty"`
	Args        []string          `json:"args,omitzero" of:"terminal"`
	Env         map[string]string `json:"env,omitzero" of:"terminal"`
	Meta        Meta              `json:"_meta,omitempty"`
}

// Terminal reports whether the program of the agent authenticates in a terminal.
func (m AuthMethod) Terminal() bool { return m.Type == "terminal" }

func (m *AuthMethod) read(o *object) {
	if o.fields(m); m.Type == "agent" {
		m.Type = ""
	}
}

// AuthenticateRequest is the params of authenticate.
type AuthenticateRequest struct {
	MethodID string `json:"methodId" wire:"required id"`
	Meta     Meta   `json:"_meta,omitempty"`
}

// LogoutRequest is the params of logout.
type LogoutRequest struct {
	Meta Meta `json:"_meta,omitempty"`
}

// CancelRequestNotification is the params of $/cancel_request. No request has the id null.
type CancelRequestNotification struct {
	RequestID json.RawMessage `json:"requestId" wire:"required request"` // a string, or a whole number of 64 bits
	Meta      Meta            `json:"_meta,omitempty"`
}
