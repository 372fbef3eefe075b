package elicitation

import (
	"errors"

	"github.com/callgate/callgate/internal/weburl"
	"github.com/callgate/callgate/wrapper"
)

// maxURL bounds an address.
const maxURL = 2048

// readURL reads the parameters of a question that a person answers elsewhere. The
// id that older revisions give it says nothing to a caller of this one.
func readURL(m members) (object, error) {
	if err := m.checkNames("mode", "message", "url", "elicitationId"); err != nil {
		return nil, err
	}
	if _, _, err := m.text("elicitationId"); err != nil {
		return nil, err
	}
	if m["mode"] != "url" {
		return nil, errors.New("a question of an address is of another mode")
	}
	message, err := m.requiredNonEmpty("message")
	if err != nil {
		return nil, err
	}
	address, err := m.requiredNonEmpty("url")
	if err != nil {
		return nil, err
	}
	if len(address) > maxURL || !weburl.IsPublic(address) {
		return nil, errors.New("an address of a question is not one that people are sent to: https at a public name of the DNS, in plain ASCII, without user info")
	}
	return object{{"mode", "url"}, {"message", wrapper.EscapeText(message)}, {"url", address}}, nil
}
