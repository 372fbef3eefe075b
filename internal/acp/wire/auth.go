package wire

import (
	"encoding/json"
	"fmt"
)

// AuthMethod is a way to authenticate: by the agent itself or, with Terminal, by its program in
// a terminal with Args and Env.
type AuthMethod struct {
	ID          string
	Name        string
	Description string
	Terminal    bool
	Args        []string
	Env         map[string]string
	Meta        Meta
}

// AuthenticateRequest is the params of authenticate.
type AuthenticateRequest struct {
	MethodID string `json:"methodId"`
	Meta     Meta   `json:"_meta,omitempty"`
}

// LogoutRequest is the params of logout.
type LogoutRequest struct {
	Meta Meta `json:"_meta,omitempty"`
}

// ReadAuthenticateRequest reads the params of authenticate.
func ReadAuthenticateRequest(raw json.RawMessage) (AuthenticateRequest, error) {
	return read(raw, drop, func(o *object) AuthenticateRequest {
		return AuthenticateRequest{o.rID("methodId"), o.meta()}
	})
}

// ReadLogoutRequest reads the params of logout.
func ReadLogoutRequest(raw json.RawMessage) (LogoutRequest, error) {
	return read(raw, drop, func(o *object) LogoutRequest { return LogoutRequest{o.meta()} })
}

func readAuthMethods(o *object) List[AuthMethod] {
	known := List[AuthMethod]{}
	objects(o, "authMethods", o.optional("authMethods"), func(o *object) bool {
		kind := o.oText("type")
		m := AuthMethod{
			ID: o.rID("id"), Name: o.rText("name"), Description: o.oText("description"),
			Terminal: kind == "terminal", Meta: o.meta(),
		}
		if m.Terminal {
			m.Args, m.Env = o.texts("args"), readStrings(o, "env")
		}
		if m.Terminal || kind == "" || kind == "agent" {
			known = append(known, m)
		}
		return true
	})
	return known
}

// readStrings reads an object of strings that may be absent, but not null.
func readStrings(o *object, name string) map[string]string {
	raw := o.optional(name)
	if raw == nil {
		return nil
	}
	values := o.at(name).object(raw)
	strings := make(map[string]string, len(values.members))
	for name := range values.members {
		strings[name] = values.rText(name)
	}
	if len(strings) > MaxItems {
		values.fail(fmt.Sprintf("at most %d members", MaxItems), "more")
	}
	return strings
}

// MarshalJSON writes the members that the type has.
func (m AuthMethod) MarshalJSON() ([]byte, error) {
	type common struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
		Meta        Meta   `json:"_meta,omitempty"`
	}
	head := common{m.ID, m.Name, m.Description, m.Meta}
	if !m.Terminal {
		return json.Marshal(head)
	}
	return json.Marshal(struct {
		common
		Type string            `json:"type"`
		Args []string          `json:"args,omitzero"`
		Env  map[string]string `json:"env,omitzero"`
	}{head, "terminal", m.Args, m.Env})
}

// CancelRequestNotification is the params of $/cancel_request.
type CancelRequestNotification struct {
	RequestID json.RawMessage `json:"requestId"` // a string, or a whole number of 64 bits
	Meta      Meta            `json:"_meta,omitempty"`
}

// ReadCancelRequestNotification reads the params of $/cancel_request. No request has the id
// null, so null is refused.
func ReadCancelRequestNotification(raw json.RawMessage) (CancelRequestNotification, error) {
	return read(raw, drop, func(o *object) CancelRequestNotification {
		return CancelRequestNotification{o.requestID("requestId"), o.meta()}
	})
}

// requestID reads the id of a request.
func (o *object) requestID(name string) json.RawMessage {
	raw := o.required(name)
	if raw == nil {
		return nil
	}
	var n int64
	switch kind := kindOf(raw); {
	case kind == "a string":
		o.at(name).id(raw)
	case kind != "a number" || json.Unmarshal(raw, &n) != nil:
		o.at(name).fail("a string, or a whole number of 64 bits", kind)
	}
	return append(json.RawMessage(nil), raw...)
}
