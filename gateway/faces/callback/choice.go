package callback

import (
	"encoding/json"
	"strconv"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/internal/ascii"
)

// maxResponseURL bounds the URL that a choice is sent to.
const maxResponseURL = 2 << 10

// choice reads a user_choice. Its id is the digest of the message, so that a message that
// comes twice asks once.
func (r *reader) choice(digest string) calls.ChoiceRequest {
	prompt, at := r.text("prompt", true), r.text("response_url", true)
	if len(at) > maxResponseURL || !ascii.IsVisible(at) {
		r.fail("response_url is not of at most %d visible characters of ASCII", maxResponseURL)
	}
	list, isList := r.object["choices"].([]any)
	choices := make([]string, 0, min(len(list), events.MaxChoices))
	for _, item := range list[:min(len(list), events.MaxChoices)] {
		text, isText := item.(string)
		isList = isList && isText
		choices = append(choices, text)
	}
	number, _ := r.object["default"].(json.Number)
	byDefault, err := strconv.Atoi(number.String())
	switch {
	case !isList || len(list) == 0 || len(list) > events.MaxChoices:
		r.fail("choices is no list of 1 to %d texts", events.MaxChoices)
	case err != nil || byDefault < 0 || byDefault >= len(list):
		r.fail("default is not the index of one of the choices")
	}
	choice, ok := events.NewChoice(digest[:min(len(digest), choiceID)], prompt, choices, byDefault)
	if !ok {
		r.fail("prompt is longer than %d bytes, or one of the choices is empty, longer than %d bytes, or reads as another",
			events.MaxPromptBytes, events.MaxChoiceBytes)
	}
	return calls.ChoiceRequest{Choice: choice, ResponseURL: at}
}

// choiceID is how many digits of the digest of its message a choice has as its id.
const choiceID = 32
