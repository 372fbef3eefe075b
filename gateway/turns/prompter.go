package turns

import (
	"context"
	"encoding/json"

	"github.com/callgate/callgate/gateway"
)

// Prompter runs prompts of conversations that a face leads which speaks no wire of a model itself. The
// face in front of the wire of chat completions is one.
type Prompter interface {
	// Prompt runs the loop for one message of a user, until the model answers in text: what is
	// judged goes to the sink while it comes, and Callgate runs the tools. A refused turn is
	// repaired also where some of its text was shown, since each turn is shown apart. A prompt
	// that fails before anything was shown or executed leaves the conversation as it was.
	Prompt(context.Context, Prompt, *Conversation) (Ended, *Failure)
}

// Sink takes what a prompt shows during its run. Its methods are called by the goroutine of
// the run, and must not keep what they are given.
type Sink interface {
	// BeginTurn says that what follows is of another turn of the model.
	BeginTurn()
	// Text is a piece of the content that was judged and released.
	Text(text []byte)
	// Reasoning is a piece of what the model thought, which is not judged.
	Reasoning(text string)
}

// Conversation is a conversation that a face leads itself, over any number of prompts: its
// messages as the model gets them, without the system message, which each prompt makes anew. The
// zero value is empty. It is for one prompt at a time.
type Conversation struct {
	// Messages are written in the protocol of the model, and only grow.
	Messages []json.RawMessage
}

// Size is how long the messages are.
func (v *Conversation) Size() (size int) {
	for _, m := range v.Messages {
		size += len(m)
	}
	return size
}

// Prompt is a message of a user in a Conversation, and the observer of the run.
type Prompt struct {
	Request gateway.Request // its inputs are ignored
	Model   string
	// System is the text of the system message beside its tools; it may be empty.
	System string
	// Content is that of the user's message: a string, or a list of parts, as JSON.
	Content []byte
	Sink    Sink
	// ClientRuns, Observer and Asker are those of Run.
	ClientRuns func(gateway.Tool) bool
	Observer   Observer
	Asker      Asker
}

// Ended says how a prompt has ended.
type Ended struct {
	Cut      bool // the answer is cut: a bound of tokens was reached
	Filtered bool // the provider's filter of contents has ended it
	// Refused means that turns of the model were refused and it did not correct them. The
	// conversation is as it was before the prompt.
	Refused bool
}
