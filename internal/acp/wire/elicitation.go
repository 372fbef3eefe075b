package wire

import (
	"encoding/json"

	"github.com/callgate/callgate/internal/weburl"
)

// ElicitationMode is how a user is asked.
type ElicitationMode string

// The modes.
const (
	Form ElicitationMode = "form"
	URL  ElicitationMode = "url"
)

// CreateElicitationRequest is the params of elicitation/create. It is asked within a session
// (SessionID, and perhaps ToolCallID) or a request (RequestID).
type CreateElicitationRequest struct {
	_               closed
	Mode            ElicitationMode  `json:"mode" wire:"required kind" enum:"form url"`
	Message         string           `json:"message" wire:"required"`
	SessionID       string           `json:"sessionId,omitempty" wire:"-"`
	ToolCallID      string           `json:"toolCallId,omitempty" wire:"-"`
	RequestID       json.RawMessage  `json:"requestId,omitempty" wire:"-"`                // a string, or a whole number of 64 bits
	RequestedSchema *RequestedSchema `json:"requestedSchema,omitempty" of:"form!"`        // of a form
	ElicitationID   string           `json:"elicitationId,omitempty" wire:"id" of:"url!"` // of a url
	URL             string           `json:"url,omitempty" of:"url!"`                     // https, at a public name
	Meta            Meta             `json:"_meta,omitempty"`
}

// ElicitationAction is the user's answer.
type ElicitationAction string

// The actions.
const (
	Accept  ElicitationAction = "accept"
	Decline ElicitationAction = "decline"
	Cancel  ElicitationAction = "cancel"
)

// CreateElicitationResponse is the result of elicitation/create. Of the values of Content each
// is a string, a number, a truth value or a list of strings.
type CreateElicitationResponse struct {
	Action  ElicitationAction          `json:"action" wire:"required" enum:"accept decline cancel"`
	Content map[string]json.RawMessage `json:"content,omitzero" wire:"-"`
	Meta    Meta                       `json:"_meta,omitempty"`
}

// CompleteElicitationNotification is the params of elicitation/complete.
type CompleteElicitationNotification struct {
	ElicitationID string `json:"elicitationId" wire:"required id"`
	Meta          Meta   `json:"_meta,omitempty"`
}

func (r *CreateElicitationRequest) read(o *object) {
	o.fields(r)
	if o.has("requestId") {
		o.take("requestId", &r.RequestID, `wire:"required request"`)
	} else {
		o.take("sessionId", &r.SessionID, `wire:"required id"`)
		o.take("toolCallId", &r.ToolCallID, `wire:"id"`)
	}
	if r.Mode == URL && !weburl.IsPublic(r.URL) {
		o.at("url").fail("an https URL at a public name", "another string")
	}
}

func (r *CreateElicitationResponse) read(o *object) {
	o.fields(r)
	if content := o.nullable("content"); content != nil && r.Action == Accept {
		r.Content = readElicitationContent(o.at("content").object(content))
	}
}

func readElicitationContent(o *object) map[string]json.RawMessage {
	o.bound()
	values := map[string]json.RawMessage{}
	for name, raw := range o.members {
		switch kind := kindOf(raw); kind {
		case "an array":
			o.take(name, &[]string{}, "")
		case "an object", "null":
			o.at(name).fail("a string, a number, true, false or a list of strings", kind)
		}
		values[name] = append(json.RawMessage(nil), raw...)
	}
	return values
}
