package calls

import (
	"encoding/json"

	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// Metadata is what is known of a call beside how far it has come, and beside its
// result. None of it is for the model.
type Metadata struct {
	// AuthURL is where a person must go before a tool goes on. It is kept while the
	// call waits, and no longer.
	AuthURL string `json:"auth_url,omitempty"`
	// Display is how the tool would show its result to people: a list of segments.
	Display json.RawMessage `json:"display_as,omitempty"`
	// AnswerDigest is the digest of the message that ended the call.
	AnswerDigest string `json:"said,omitempty"`
	// Subscribed says that the tool tells of events, though the call has ended.
	Subscribed bool `json:"subscribed,omitempty"`
	// LastEventDigest is the digest of the event that ended the subscription, and LastEvent that
	// event: a client that follows the call later is told it from here.
	LastEventDigest string        `json:"last,omitempty"`
	LastEvent       *events.Event `json:"last_event,omitempty"`
	// Wrapped says that the tool's own answer stands in the result as its member value.
	Wrapped bool `json:"wrapped,omitempty"`
	// Challenges are what a person has to do before such a call can pass.
	Challenges []tool.Challenge `json:"challenges,omitempty"`
	// Asked is what the tool wants to know of its caller.
	Asked *tool.InputRequired `json:"asked,omitempty"`
	// AskedCallDigest is the digest of the call that was asked.
	AskedCallDigest string `json:"asked_for,omitempty"`
}

// applyMetadata adds to an outcome what its caller is told beside the result. The caller
// is asked only what it can answer.
func (o *Outcome) applyMetadata(m Metadata, d *elicit.Dialogue) {
	o.Wrapped, o.Challenges = m.Wrapped, m.Challenges
	o.addInputRequest(m.Asked, o.CallID, d)
}

// decodeMetadata reads the metadata of a stored call. What cannot be read is nothing.
func decodeMetadata(b []byte) (m Metadata) {
	if json.Unmarshal(b, &m) != nil {
		return Metadata{}
	}
	return m
}

// encode returns the metadata as the store keeps it. The questions of a tool stand in it
// as they were read, and are read again once they are answered.
func (m Metadata) encode() []byte {
	b, err := wrapper.Marshal(m)
	if err != nil {
		return nil // metadata always encodes: its one raw part was read
	}
	return b
}

// encodeEnding is encode for a call that ends, where no metadata at all is nil.
func (m Metadata) encodeEnding() []byte {
	if b := m.encode(); string(b) != "{}" {
		return b
	}
	return nil
}
