package stored

import (
	"crypto/rand"
	"encoding/json"

	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// Metadata is the data about a call beside its state and its result. None of it is for the
// model.
type Metadata struct {
	// AuthURL is the URL that a person must open before a tool continues. It is kept only
	// while the call waits.
	AuthURL string `json:"auth_url,omitempty"`
	// Choice is a question of the tool to a person. It is kept only while the call waits, as are
	// EarlierChoices, those that were answered or replaced, the oldest first.
	Choice         *ChoiceRequest  `json:"choice,omitempty"`
	EarlierChoices []EarlierChoice `json:"chosen,omitempty"`
	// Display is how the tool would show its result to people: a list of segments.
	Display json.RawMessage `json:"display_as,omitempty"`
	// AnswerDigest is the digest of the message that ended the call.
	AnswerDigest string `json:"said,omitempty"`
	// Subscribed means that the tool sends events, though the call has ended.
	Subscribed bool `json:"subscribed,omitempty"`
	// LastEventDigest is the digest of the event that ended the subscription, and LastEvent
	// that event: a client that follows the call later gets it from here.
	LastEventDigest string        `json:"last,omitempty"`
	LastEvent       *events.Event `json:"last_event,omitempty"`
	// Wrapped means that the tool's own output is the member value of the result.
	Wrapped bool `json:"wrapped,omitempty"`
	// Challenges are the actions that a person must take before such a call can pass.
	Challenges []tool.Challenge `json:"challenges,omitempty"`
	// Questions holds the questions of the tool to its caller.
	Questions *tool.InputRequired `json:"asked,omitempty"`
	// QuestionDigest is the digest of the call that was asked.
	QuestionDigest string `json:"asked_for,omitempty"`
}

// decodeMetadata reads the metadata of a stored call. It returns the zero value if they
// cannot be read.
func decodeMetadata(b []byte) (m Metadata) {
	if json.Unmarshal(b, &m) != nil {
		return Metadata{}
	}
	return m
}

// encode returns the metadata as the store keeps it. The questions of a tool are kept as
// they were read, and are read again once they are answered.
func (m Metadata) encode() []byte { return encode(m) }

// encodeUnique is encode with a member that is different each time: the store takes a writer of the same bytes
// for the one that has written them.
func (m Metadata) encodeUnique() []byte {
	return encode(struct {
		Metadata
		Writer string `json:"writer"`
	}{m, rand.Text()})
}

func encode(metadata any) []byte {
	b, err := wrapper.Marshal(metadata)
	if err != nil {
		return nil // metadata always encode: their one raw part was read
	}
	return b
}

// EncodeEnding is encode for a call that ends, where no metadata at all is nil.
func (m Metadata) EncodeEnding() []byte {
	if m.empty() {
		return nil
	}
	return m.encode()
}

// empty reports whether there are no metadata.
func (m *Metadata) empty() bool {
	return m.AuthURL == "" && m.Choice == nil && len(m.EarlierChoices) == 0 && len(m.Display) == 0 && m.AnswerDigest == "" &&
		!m.Subscribed && m.LastEventDigest == "" &&
		m.LastEvent == nil && !m.Wrapped && len(m.Challenges) == 0 && m.Questions == nil && m.QuestionDigest == ""
}
