package schema

import "github.com/callgate/callgate/refusal"

// Position says which bytes a violation points at.
type Position int

const (
	Value  Position = iota // the value that Path leads to
	Name                   // the name of the member that Path leads to
	Parent                 // the object without the member that Path leads to
)

// Violation is one fault of one call's arguments.
type Violation struct {
	Code refusal.Code // wrong_type, missing_argument, unexpected_argument or invalid_value
	// Path leads from the arguments to the place: member names, unescaped, and
	// indices in decimal. Empty is the arguments themselves.
	Path    []string
	At      Position
	Message string // for the model: one or two sentences that say what to change
	// Cause is for the operator where the fault may be Callgate's own: the
	// judges disagreed, or one failed. It holds no value of the model.
	Cause error
}
