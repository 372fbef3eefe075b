package chat

import "github.com/go-json-experiment/json/jsontext"

// Completion is one answer of a model, whole.
type Completion struct {
	ID, Model string
	Created   int64
	Choices   []Choice // by index, from 0, without gaps; at least one
	Usage     *Usage   // nil if the provider sent none
	Extra     Extra    // system_fingerprint, service_tier and all other members
}

// Choice is one of the n answers that were requested.
type Choice struct {
	Index        int
	FinishReason string // may be empty if the completion was not streamed
	Message      Message
	Extra        Extra // logprobs and the like
}

// Message is the message of a choice.
type Message struct {
	Content   *string // nil: null or absent
	Refusal   *string
	ToolCalls []ToolCall
	// FunctionCall reports that the message has the legacy member function_call.
	FunctionCall bool
	Extra        Extra // reasoning, reasoning_content, annotations, audio and the like
}

// ToolCall is one native call.
type ToolCall struct {
	Index int    // its place in the message
	ID    string // empty if the provider sent none
	// Type is as the provider wrote it; empty, if it wrote none, means function.
	Type      string
	Name      string // of the function; empty if there is none
	Arguments []byte // of the function, unescaped; empty if there are none
	Extra     Extra  // custom, extra_content and the like
}

// Usage is how many tokens a completion took. Raw is the provider's whole usage object.
type Usage struct {
	PromptTokens, CompletionTokens, TotalTokens int64
	Raw                                         []byte // one JSON object
}

// Chunk is one event of a stream. It is valid until the next call of Events.Next; its
// strings and byte slices stay valid. It must not be modified.
type Chunk struct {
	ID, Model string
	Created   int64
	Choices   []DeltaChoice // may be empty, as in the chunk with the usage
	Usage     *Usage
	Extra     Extra
}

// DeltaChoice is the part of a choice in one chunk.
type DeltaChoice struct {
	Index        int
	Delta        Delta
	FinishReason *string // nil: not yet
	Extra        Extra
}

// Delta is the part of a message in one chunk.
type Delta struct {
	Role         string
	Content      *string
	Refusal      *string
	ToolCalls    []ToolDelta
	FunctionCall bool
	Extra        Extra
}

// ToolDelta is the part of a call in one chunk.
type ToolDelta struct {
	Index     int // -1 where the provider gave none
	ID        string
	Type      string
	Name      string
	Arguments []byte
	Extra     Extra
}

// Extra are the members of an object that have no field here, in their order.
type Extra []Member

// Member is one member of an object.
type Member struct {
	Name  string
	Value []byte // strict JSON
}

// Lookup returns the value of a member, or nil.
func (x Extra) Lookup(name string) []byte {
	for _, m := range x {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// object writes the members as one JSON object.
func (x Extra) object() []byte {
	b := []byte{'{'}
	for i, m := range x {
		if i > 0 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, m.Name) // a parsed name is valid UTF-8
		b = append(b, ':')
		b = append(b, m.Value...)
	}
	return append(b, '}')
}
