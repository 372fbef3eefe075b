package gateway

import (
	"encoding/json"

	"github.com/callgate/callgate/store"
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
	LastEventDigest string `json:"last,omitempty"`
	LastEvent       *Event `json:"last_event,omitempty"`
	// Wrapped says that the tool's own answer stands in the result as its member value.
	Wrapped bool `json:"wrapped,omitempty"`
	// Challenges are what a person has to do before such a call can pass.
	Challenges []Challenge `json:"challenges,omitempty"`
	// Asked is what the tool wants to know of its caller.
	Asked *Asked `json:"asked,omitempty"`
	// AskedCallDigest is the digest of the call that was asked.
	AskedCallDigest string `json:"asked_for,omitempty"`
}

// Challenge is one authorization that a tool's server asks for.
type Challenge struct {
	ID  string `json:"id"`
	URL string `json:"url"` // where a person goes
	// CheckURL is where the server says how that stands; empty where it does not.
	CheckURL string `json:"check_url,omitempty"`
}

// addMetadata adds to what is kept of the end of a call beside its result.
func (c *call) addMetadata(add func(*Metadata)) {
	n := MetadataOf(&store.Call{Metadata: c.metadata})
	add(&n)
	c.metadata = n.encode()
}

// applyMetadata takes from a note what goes with an outcome to a caller, which is asked only
// what it can answer.
func (o *Outcome) applyMetadata(note []byte, d *Dialogue) {
	n := MetadataOf(&store.Call{Metadata: note})
	o.Wrapped, o.Challenges = n.Wrapped, n.Challenges
	o.addInputRequest(n.Asked, o.CallID, d)
}

// MetadataOf is what is known of a call; what cannot be read is nothing.
func MetadataOf(call *store.Call) (n Metadata) {
	if json.Unmarshal(call.Metadata, &n) != nil {
		return Metadata{}
	}
	return n
}

// encode is the note as the store keeps it. What a tool asks stands in it as it was read,
// and is no longer for that: it is read again once it is answered.
func (n Metadata) encode() []byte {
	b, err := wrapper.Marshal(n)
	if err != nil {
		return nil // a note always encodes: its one raw part was read
	}
	return b
}
