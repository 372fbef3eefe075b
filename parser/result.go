package parser

import "github.com/callgate/callgate/refusal"

// Kind is one of the three verdicts. Its zero value is a refusal.
type Kind int

// The three verdicts.
const (
	Refused Kind = iota
	Text
	Call
)

// Result is the verdict on one completion.
type Result struct {
	Kind Kind
	// Refusal says why, when Kind is Refused; else it is nil.
	Refusal *refusal.Error
	// Text is, when Kind is Text, the completion as it came; from Stream.Close
	// only what Write has not released.
	Text []byte

	// JSON are the bytes of the value that ParseStructured has read, and JSONOffset is where they start in the
	// completion.
	JSON       []byte
	JSONOffset int

	// Object says that the completion is one object with a member "tool", read
	// without a fault: a refusal then concerns the envelope.
	Object bool
	// Name is the tool's name, decoded. It is set for a call, and also for a
	// refusal of the envelope where /tool/name is a string (Named).
	Name       string
	HasName    bool
	NameOffset int // of the name's value in the completion
	// Arguments are the bytes of the arguments object of a call, not copied;
	// ArgumentsOffset is where they start in the completion.
	Arguments       []byte
	ArgumentsOffset int
	// Claim is the member "agent", decoded, of an object that was read without a
	// fault, even where the envelope is refused (Claimed). It is the model's
	// word, and grants nothing.
	Claim   string
	Claimed bool
	// AgentStated reports that such an object has the member "agent", of any type.
	AgentStated bool
}
