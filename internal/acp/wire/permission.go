package wire

// OptionKind is the kind of a permission option: it alone says what the answer means.
type OptionKind string

// The kinds of permission options.
const (
	AllowOnce    OptionKind = "allow_once"
	AllowAlways  OptionKind = "allow_always"
	RejectOnce   OptionKind = "reject_once"
	RejectAlways OptionKind = "reject_always"
)

// RequestPermissionRequest is the params of session/request_permission. The ids of the options differ, and
// there is at least one.
type RequestPermissionRequest struct {
	_         closed
	SessionID string                 `json:"sessionId" wire:"required id"`
	ToolCall  ToolCallUpdate         `json:"toolCall" wire:"required"`
	Options   List[PermissionOption] `json:"options" wire:"required"`
	Meta      Meta                   `json:"_meta,omitempty"`
}

// PermissionOption is one answer that the user may choose.
type PermissionOption struct {
	OptionID string     `json:"optionId" wire:"required id"`
	Name     string     `json:"name" wire:"required"`
	Kind     OptionKind `json:"kind" wire:"required" enum:"allow_once allow_always reject_once reject_always"`
	Meta     Meta       `json:"_meta,omitempty"`
}

// RequestPermissionResponse is the answer.
type RequestPermissionResponse struct {
	Outcome PermissionOutcome `json:"outcome" wire:"required"`
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
	Outcome  Outcome `json:"outcome" wire:"required kind" enum:"cancelled selected"`
	OptionID string  `json:"optionId,omitempty" wire:"id" of:"selected!"`
	Meta     Meta    `json:"_meta,omitempty" of:"selected"`
}

func (r *RequestPermissionRequest) read(o *object) {
	o.fields(r)
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
}
