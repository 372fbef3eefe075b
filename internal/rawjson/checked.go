package rawjson

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/callgate/callgate/internal/strictjson"
)

// Check checks that a document is one strict JSON value of at most so many levels. Its error says where it is not, and
// quotes nothing. The functions below read parts of a document that was checked.
func Check(document []byte, maxDepth int) error {
	err := strictjson.Check(document, maxDepth)
	if err == nil {
		return nil
	}
	var fault *strictjson.Error
	switch {
	case errors.Is(err, strictjson.ErrDepth):
		return fmt.Errorf("JSON nested deeper than %d levels", maxDepth)
	case !errors.As(err, &fault):
		return err
	case fault.Reason == strictjson.Ended:
		return errors.New("JSON that ends too early")
	case fault.Reason == strictjson.Duplicate:
		return fmt.Errorf("a name that stands twice in one object, after byte %d", fault.Offset)
	}
	return fmt.Errorf("no strict JSON, after byte %d", fault.Offset)
}

// Each calls take for each member of an object, with its name and the bytes of its value. The error is that of take, or
// says that there is no object.
func Each(object []byte, take func(name, value []byte) error) error {
	object = bytes.TrimLeft(object, " \t\r\n")
	if len(object) == 0 || object[0] != '{' {
		return errors.New("a value that is not an object")
	}
	return strictjson.EachMember(object, func(name []byte, start, end int) error { return take(name, object[start:end:end]) })
}

// EachOf calls take for each element of an array. The error is that of take, or says that there is no array.
func EachOf(array []byte, take func(value []byte) error) error {
	if len(array) == 0 || array[0] != '[' {
		return errors.New("a value that is not an array")
	}
	return strictjson.EachElement(array, take)
}

// MemberOf is a member of an object; nil if there is none.
func MemberOf(object []byte, wanted string) []byte {
	var found []byte
	_ = Each(object, func(name, value []byte) error { // anything else has none
		if string(name) == wanted {
			found = value
		}
		return nil
	})
	return found
}

// IsNull reports whether a value is null, or absent.
func IsNull(value []byte) bool { return len(value) == 0 || value[0] == 'n' }

// Text decodes a string; ok is false for any other value. It may be a part of value.
func Text(value []byte) (_ []byte, ok bool) {
	if len(value) == 0 || value[0] != '"' {
		return nil, false
	}
	text, err := strictjson.Unquote(value)
	return text, err == nil
}

// OneLine is JSON with spaces in place of line ends, which stand between tokens alone: an event of a stream cannot hold
// them.
func OneLine(raw []byte) []byte {
	if bytes.ContainsAny(raw, "\r\n") {
		raw = bytes.ReplaceAll(bytes.ReplaceAll(raw, []byte("\n"), []byte(" ")), []byte("\r"), []byte(" "))
	}
	return raw
}
