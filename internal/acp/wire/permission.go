package wire

import "encoding/json"

// OptionKind is the kind of a permission option: it alone says what the answer means.
type OptionKind string

// The kinds of permission options.
const (
	AllowOnce    OptionKind = "allow_once"
	AllowAlways  OptionKind = "allow_always"
	RejectOnce   OptionKind = "reject_once"
	RejectAlways OptionKind = "reject_always"
)

// RequestPermissionRequest is the params of session/request_permission.
type RequestPermissionRequest struct {
	SessionID string                 `json:"sessionId"`
	ToolCall  ToolCallUpdate         `json:"toolCall"`
	Options   List[PermissionOption] `json:"options"`
	Meta      Meta                   `json:"_meta,omitempty"`
}

// PermissionOption is one answer that the user may choose.
type PermissionOption struct {
	OptionID string     `json:"optionId"`
	Name     string     `json:"name"`
	Kind     OptionKind `json:"kind"`
	Meta     Meta       `json:"_meta,omitempty"`
}

// RequestPermissionResponse is the answer.
type RequestPermissionResponse struct {
	Outcome PermissionOutcome `json:"outcome"`
	Meta    Meta              `json:"_meta,omitempty"`
}

// Outcome says whether an option was chosen.
type Outcome string

// The outcomes.
const (
	OutcomeCancelled Outcome = "cancelled"
	OutcomeSelected  Outcome = "selected"
)

// PermissionOutcome is an outcome, and the chosen option.
type PermissionOutcome struct {
	Outcome  Outcome `json:"outcome"`
	OptionID string  `json:"optionId,omitempty"`
	Meta     Meta    `json:"_meta,omitempty"`
}

// ReadRequestPermissionRequest reads the params of session/request_permission. The ids of the
// options differ, and there is at least one.
func ReadRequestPermissionRequest(raw json.RawMessage) (RequestPermissionRequest, error) {
	return read(raw, refuse, func(o *object) RequestPermissionRequest {
		r := RequestPermissionRequest{
			SessionID: o.rID("sessionId"),
			ToolCall:  rObject(o, "toolCall", readToolCallUpdate),
			Options:   rObjects(o, "options", readPermissionOption),
			Meta:      o.meta(),
		}
		if len(r.Options) == 0 {
			o.at("options").fail("at least one option", "none")
		}
		ids := map[string]bool{}
		for i, option := range r.Options {
			if ids[option.OptionID] {
				o.at("options").element(i).fail("an optionId that no other option has", "one that stands twice")
			}
			ids[option.OptionID] = true
		}
		return r
	})
}

func readPermissionOption(o *object) PermissionOption {
	return PermissionOption{
		OptionID: o.rID("optionId"),
		Name:     o.rText("name"),
		Kind:     enum(o.at("kind"), o.required("kind"), AllowOnce, AllowAlways, RejectOnce, RejectAlways),
		Meta:     o.meta(),
	}
}

// ReadRequestPermissionResponse reads the result of session/request_permission.
func ReadRequestPermissionResponse(raw json.RawMessage) (RequestPermissionResponse, error) {
	return read(raw, drop, func(o *object) RequestPermissionResponse {
		return RequestPermissionResponse{rObject(o, "outcome", readPermissionOutcome), o.meta()}
	})
}

func readPermissionOutcome(o *object) PermissionOutcome {
	p := PermissionOutcome{Outcome: enum(o.at("outcome"), o.required("outcome"), OutcomeCancelled, OutcomeSelected)}
	if p.Outcome == OutcomeSelected {
		p.OptionID, p.Meta = o.rID("optionId"), o.meta()
	}
	return p
}
