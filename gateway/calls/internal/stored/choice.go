package stored

import (
	"fmt"
	"slices"
	"time"

	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/refusal"
)

// ChoiceRequest is a choice, and where its tool awaits what was chosen.
type ChoiceRequest struct {
	Choice      events.Choice `json:"choice"`
	ResponseURL string        `json:"response_url"` // is shown to nobody
}

// EarlierChoice is a choice that is not open any more.
type EarlierChoice struct {
	ID       string `json:"id"`
	Selected int    `json:"selected"`           // Replaced, if another took its place before it was answered
	Accepted bool   `json:"accepted,omitempty"` // by the tool
	// Until is when the sending of what was selected is over at the latest; zero: it is.
	Until time.Time `json:"until,omitzero"`
}

// Replaced is EarlierChoice.Selected of a choice that nobody has answered.
const Replaced = -1

// HasChoice reports whether a choice is open, or was.
func (m *Metadata) HasChoice(id string) bool {
	return m.Choice != nil && m.Choice.Choice.ID == id ||
		slices.ContainsFunc(m.EarlierChoices, func(choice EarlierChoice) bool { return choice.ID == id })
}

// ChoiceAnswer is what a person has chosen.
type ChoiceAnswer struct {
	ID string // of the choice
	// Selected is the index of the choice; with Dismissed it is that of the default.
	Selected  int
	Dismissed bool
	Until     time.Time // of EarlierChoice
}

// Answer returns the metadata in which the open choice is answered, and sets what is selected
// for one that is dismissed. Without an error, nil says that the same answer was given before.
func (m Metadata) Answer(a *ChoiceAnswer, now time.Time) (*Metadata, error) {
	for _, earlier := range m.EarlierChoices {
		switch {
		case earlier.ID != a.ID:
		case earlier.Selected == Replaced:
			return nil, RefuseChoice()
		case !a.Dismissed && earlier.Selected != a.Selected:
			return nil, refusal.New(refusal.IdempotencyConflict, "This choice was answered otherwise before, and that stands.")
		case earlier.Accepted:
			return nil, nil
		case now.Before(earlier.Until):
			return nil, refusal.New(refusal.CallInProgress, "This was chosen before, and is being sent to the tool. Send it again later to learn whether the tool has accepted it.")
		default:
			return nil, refusal.New(refusal.OutcomeUnknown, "This was chosen before, and it is not known whether the tool has accepted it. It is not sent again; the tool may ask once more.")
		}
	}
	if m.Choice == nil || m.Choice.Choice.ID != a.ID {
		return nil, RefuseChoice()
	}
	choice := m.Choice.Choice
	if a.Dismissed {
		a.Selected = choice.Default
	}
	if a.Selected < 0 || a.Selected >= len(choice.Choices) {
		return nil, refusal.New(refusal.BadRequest, fmt.Sprintf("selected is not the index of one of the %d choices.", len(choice.Choices)))
	}
	m.Choice, m.EarlierChoices = nil, append(slices.Clone(m.EarlierChoices), EarlierChoice{ID: a.ID, Selected: a.Selected, Until: a.Until})
	return &m, nil
}

// RefuseChoice refuses the answer to a choice that is not open.
func RefuseChoice() *refusal.Error {
	return refusal.New(refusal.NotFound, "No such choice is open: it was replaced by another, or its call has ended.")
}
