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
	r := reader{b: b, i: skipSpace(b, 0), maxDepth: maxDepth}
	from := r.i
	if r.value(0) {
		if r.space(); r.i == len(b) {
			return Decode(b[from:]), nil
		}
		r.unexpected(r.i, "the end")
	}
	f := r.fault
	switch f.code {
	case refusal.InvalidUTF8:
		return nil, fmt.Errorf("invalid UTF-8 at byte %d", f.offset)
	case refusal.DuplicateKey:
		return nil, fmt.Errorf("the member %s stands twice, the second time at byte %d", Quote(f.detail), f.offset)
	case refusal.TooDeep:
		return nil, fmt.Errorf("nested deeper than %d levels at byte %d", maxDepth, f.offset)
	}
	if f.detail == "" {
		return nil, errors.New("not strict JSON")
	}
	return nil, fmt.Errorf("not strict JSON: at byte %d expected %s, found %s", f.offset, f.detail, found(b, f.offset))
}
