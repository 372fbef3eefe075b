package wire

import (
	"encoding/json"
	"fmt"

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
	Mode            ElicitationMode  `json:"mode"`
	Message         string           `json:"message"`
	SessionID       string           `json:"sessionId,omitempty"`
	ToolCallID      string           `json:"toolCallId,omitempty"`
	RequestID       json.RawMessage  `json:"requestId,omitempty"`       // a string, or a whole number of 64 bits
	RequestedSchema *RequestedSchema `json:"requestedSchema,omitempty"` // of a form
	ElicitationID   string           `json:"elicitationId,omitempty"`   // of a url
	URL             string           `json:"url,omitempty"`             // https, at a public name
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
	Action  ElicitationAction          `json:"action"`
	Content map[string]json.RawMessage `json:"content,omitzero"`
	Meta    Meta                       `json:"_meta,omitempty"`
}

// CompleteElicitationNotification is the params of elicitation/complete.
type CompleteElicitationNotification struct {
	ElicitationID string `json:"elicitationId"`
	Meta          Meta   `json:"_meta,omitempty"`
}

// ReadCreateElicitationRequest reads the params of elicitation/create.
func ReadCreateElicitationRequest(raw json.RawMessage) (CreateElicitationRequest, error) {
	return read(raw, refuse, func(o *object) CreateElicitationRequest {
		r := CreateElicitationRequest{
			Mode:    enum(o.at("mode"), o.required("mode"), Form, URL),
			Message: o.rText("message"), Meta: o.meta(),
		}
		if o.has("requestId") {
			r.RequestID = o.requestID("requestId")
		} else {
			r.SessionID, r.ToolCallID = o.rID("sessionId"), o.oID("toolCallId")
		}
		if r.Mode == URL {
			r.ElicitationID, r.URL = o.rID("elicitationId"), o.rText("url")
			if !weburl.IsPublic(r.URL) {
				o.at("url").fail("an https URL at a public name", "another string")
			}
			return r
		}
		schema := rObject(o, "requestedSchema", readRequestedSchema)
		r.RequestedSchema = &schema
		return r
	})
}

// ReadCreateElicitationResponse reads the result of elicitation/create.
func ReadCreateElicitationResponse(raw json.RawMessage) (CreateElicitationResponse, error) {
	return read(raw, drop, func(o *object) CreateElicitationResponse {
		r := CreateElicitationResponse{Action: enum(o.at("action"), o.required("action"), Accept, Decline, Cancel), Meta: o.meta()}
		if content := o.nullable("content"); content != nil && r.Action == Accept {
			r.Content = readElicitationContent(o.at("content").object(content))
		}
		return r
	})
}

func readElicitationContent(o *object) map[string]json.RawMessage {
	if len(o.members) > MaxItems {
		o.fail(fmt.Sprintf("at most %d members", MaxItems), "more")
	}
	values := map[string]json.RawMessage{}
	for name, raw := range o.members {
		switch kind := kindOf(raw); kind {
		case "an array":
			list(o.at(name), raw, (*place).text)
		case "an object", "null":
			o.at(name).fail("a string, a number, true, false or a list of strings", kind)
		}
		values[name] = append(json.RawMessage(nil), raw...)
	}
	return values
}

// ReadCompleteElicitationNotification reads the params of elicitation/complete.
func ReadCompleteElicitationNotification(raw json.RawMessage) (CompleteElicitationNotification, error) {
	return read(raw, drop, func(o *object) CompleteElicitationNotification {
		return CompleteElicitationNotification{o.rID("elicitationId"), o.meta()}
	})
}
