package messages

import (
	"bytes"
	"cmp"
	"errors"

	"github.com/callgate/callgate/gateway/turns"
)

// errRestated is the error of what an event states again in other words. Some servers repeat a block where it stops, and all
// of them at the end of the message; a call that stands there alone would be lost, and one that differs is in doubt.
var errRestated = errors.New("content that is stated again, and differs")

// isRestated reports whether a block says what this one says, or less. Thoughts are not compared, nor is what the provider
// has executed but for its calls.
func (b *block) isRestated(again *block) bool {
	switch {
	case again.Type != b.Type:
		return false
	case b.Kind == turns.Text:
		return turns.IsBlank(again.Text) || bytes.Equal(bytes.TrimSpace(again.Text), bytes.TrimSpace(b.Text))
	case !b.calls():
		return true
	}
	return cmp.Or(again.Call.Name, b.Call.Name) == b.Call.Name && cmp.Or(again.Call.ID, b.Call.ID) == b.Call.ID &&
		cmp.Or(again.Call.Group, b.Call.Group) == b.Call.Group &&
		(again.caller == "" || again.caller == cmp.Or(b.caller, callerDirect)) &&
		(turns.SaysNothing(again.Call.Arguments) || turns.SameArguments(again.Call.Arguments, b.Call.Arguments))
}

// checkRestated returns why content that an event states again is not that of the message so far.
func (r *reader) checkRestated(content part) error {
	if turns.IsNothing(content.checked) {
		return nil
	}
	left, stated := r.blocks, false
	err := content.elements(func(raw part) error {
		again, err := parseBlock(raw, &r.options, "")
		switch stated = true; {
		case err != nil || !again.decides():
			return err
		case again.elsewhere.Check(again.Call.Arguments) != nil:
			return errRestated
		}
		for len(left) > 0 && !left[0].decides() {
			left = left[1:]
		}
		if len(left) == 0 || !left[0].isRestated(again) {
			return errRestated
		}
		left = left[1:]
		return nil
	})
	for _, b := range left {
		if err == nil && stated && b.decides() {
			err = errRestated
		}
	}
	return err
}

// decides reports whether a block is more than a thought or a blank text, which servers leave out.
func (b *block) decides() bool {
	return b.Kind != turns.Thought && (b.Kind != turns.Text || !turns.IsBlank(b.Text))
}
