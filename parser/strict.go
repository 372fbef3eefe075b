package parser

import (
	"errors"
	"fmt"

	"github.com/callgate/callgate/refusal"
)

// ReadValue reads bytes that are one strict JSON value, outer whitespace aside,
// by the rules that hold for completions, and returns it as Decode does. It is
// for what a peer sends beside completions: request bodies, and lines of input.
// Its error says where and what was expected.
func ReadValue(b []byte, maxDepth int) (any, error) {
	if err := CheckValue(b, maxDepth); err != nil {
		return nil, err
	}
	return Decode(b), nil
}

// CheckValue is ReadValue for who does not need the value, which may take many times
// the memory of its bytes.
func CheckValue(b []byte, maxDepth int) error {
	r := reader{b: b, i: skipSpace(b, 0), maxDepth: maxDepth}
	if r.value(0) {
		if r.space(); r.i == len(b) {
			return nil
		}
		r.unexpected(r.i, "the end")
	}
	f := r.fault
	switch f.code {
	case refusal.InvalidUTF8:
		return fmt.Errorf("invalid UTF-8 at byte %d", f.offset)
	case refusal.DuplicateKey:
		return fmt.Errorf("the member %s stands twice, the second time at byte %d", Quote(f.detail), f.offset)
	case refusal.TooDeep:
		return fmt.Errorf("nested deeper than %d levels at byte %d", maxDepth, f.offset)
	}
	if f.detail == "" {
		return errors.New("not strict JSON")
	}
	return fmt.Errorf("not strict JSON: at byte %d expected %s, found %s", f.offset, f.detail, found(b, f.offset))
}
