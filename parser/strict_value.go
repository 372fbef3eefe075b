package parser

import (
	"errors"
	"fmt"

	"github.com/callgate/callgate/refusal"
)

// ReadValue reads bytes that are one strict JSON value, outer whitespace aside,
// by the rules that hold for completions, and returns it as Decode does. It is
// for input other than completions: request bodies, and lines of input.
// Its error states the position and the expected token.
func ReadValue(b []byte, maxDepth int) (any, error) {
	if err := CheckValue(b, maxDepth); err != nil {
		return nil, err
	}
	return Decode(b), nil
}

// CheckValue is ReadValue without building the value, which may take many times the
// memory of its bytes.
func CheckValue(b []byte, maxDepth int) error {
	r := reader{b: b, i: SkipSpace(b, 0), maxDepth: maxDepth}
	if r.value(0) && r.ends() {
		return nil
	}
	return r.readError()
}

// ErrNoObject is the error for strict JSON other than an object.
var ErrNoObject = errors.New("found no object")

// ReadObject reads bytes that are one strict JSON object, as ReadValue does, and passes on
// its members one by one, in their order, without building their values. expect is called
// with the name of a member and the first byte of its value, before the value is read; take
// is called with the bytes of the value. An error of either ends the reading and is
// returned.
func ReadObject(b []byte, maxDepth int, expect func(name string, first byte) error, take func(name string, value []byte) error) error {
	r := reader{b: b, i: SkipSpace(b, 0), maxDepth: maxDepth}
	if r.i < len(b) && b[r.i] != '{' {
		if err := CheckValue(b, maxDepth); err != nil {
			return err
		}
		return ErrNoObject
	}
	var refused error
	if r.i < len(b) && r.object(1, func(raw []byte, _ int) bool {
		name, from := unquote(raw), r.i
		if from == len(b) {
			return r.value(1) // which is a fault
		}
		if refused = expect(name, b[from]); refused != nil || !r.value(1) {
			return false
		}
		refused = take(name, b[from:r.i:r.i])
		return refused == nil
	}) && r.ends() {
		return nil
	}
	if refused != nil {
		return refused
	}
	if r.fault == nil {
		r.unexpected(r.i, "a value")
	}
	return r.readError()
}

// ends reports whether nothing but whitespace follows.
func (r *reader) ends() bool {
	if r.space(); r.i == len(r.b) {
		return true
	}
	return r.unexpected(r.i, "the end")
}

// readError returns the fault as an error of ReadValue.
func (r *reader) readError() error {
	f, b := r.fault, r.b
	switch f.code {
	case refusal.InvalidUTF8:
		return fmt.Errorf("invalid UTF-8 at byte %d", f.offset)
	case refusal.DuplicateKey:
		return fmt.Errorf("the member %s stands twice, the second time at byte %d", Quote(f.detail), f.offset)
	case refusal.TooDeep:
		return fmt.Errorf("nested deeper than %d levels at byte %d", r.maxDepth, f.offset)
	}
	if f.detail == "" {
		return errors.New("not strict JSON")
	}
	return fmt.Errorf("not strict JSON: at byte %d expected %s, found %s", f.offset, f.detail, found(b, f.offset))
}
