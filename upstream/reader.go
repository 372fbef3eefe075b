package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting of members that are kept as they stand.
const maxDepth = 128

// maxExtraMembers bounds how many members one document may have that are kept: each
// takes more than its bytes.
const maxExtraMembers = 1 << 14

// reader reads one strict JSON document token by token. Its errors say where
// the fault is, never what stood there. The zero value is ready.
type reader struct {
	src          bytes.Buffer
	decoder      *jsontext.Decoder
	stringLength int    // of the last string, as it stood
	slots        []slot // for the stencil of a chunk
	template     chunkTemplate
	extraCount   int  // members of this document
	trusted      bool // what is read was read before: its members are not counted
}

// document reads bytes that are one object and nothing else.
func (r *reader) document(b []byte, member func(name []byte) error) error {
	r.src, r.extraCount = *bytes.NewBuffer(b), 0
	if r.decoder == nil {
		r.decoder = jsontext.NewDecoder(&r.src)
	} else {
		r.decoder.Reset(&r.src)
	}
	if err := r.object(member); err != nil {
		return err
	}
	if _, err := r.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("bytes after the JSON object")
	}
	return nil
}

// kind is that of the next value: one of n t f " 0 { [, or 0 where there is
// none.
func (r *reader) kind() jsontext.Kind {
	k := r.decoder.PeekKind()
	switch k {
	case 'n', 't', 'f', '"', '0', '{', '[':
		return k
	}
	return 0
}

// value reads the next value as it stands. It holds until the next is read.
func (r *reader) value() (jsontext.Value, error) {
	v, err := r.decoder.ReadValue()
	if err != nil {
		return nil, r.syntaxError(err)
	}
	return v, nil
}

func (r *reader) skip() error {
	_, err := r.value()
	return err
}

// syntaxError says where the JSON is wrong.
func (r *reader) syntaxError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("JSON that ends too early")
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return fmt.Errorf("a name that stands twice in one object, after byte %d", r.decoder.InputOffset())
	}
	return fmt.Errorf("no strict JSON, after byte %d", r.decoder.InputOffset())
}

// skipOther is a value, not read yet, of another type than is expected.
func (r *reader) skipOther(expected string) error {
	if err := r.skip(); err != nil {
		return err
	}
	return r.typeError(expected)
}

// typeError is a value, just read, that is not what is expected.
func (r *reader) typeError(expected string) error {
	return fmt.Errorf("a value that is not %s, before byte %d", expected, r.decoder.InputOffset())
}

// object reads an object. member is called with each name, decoded, which holds
// until the value is read, and reads the value.
func (r *reader) object(member func(name []byte) error) error {
	if r.kind() != '{' {
		return r.skipOther("an object")
	}
	if _, err := r.decoder.ReadToken(); err != nil {
		return r.syntaxError(err)
	}
	for r.decoder.PeekKind() == '"' {
		raw, err := r.decoder.ReadValue()
		if err != nil {
			return r.syntaxError(err)
		}
		name, err := unquoted(raw)
		if err != nil {
			return r.syntaxError(err)
		}
		if err := member(name); err != nil {
			return err
		}
	}
	if _, err := r.decoder.ReadToken(); err != nil { // the closing brace
		return r.syntaxError(err)
	}
	return nil
}

// array reads an array. element reads each.
func (r *reader) array(element func() error) error {
	if r.kind() != '[' {
		return r.skipOther("an array")
	}
	if _, err := r.decoder.ReadToken(); err != nil {
		return r.syntaxError(err)
	}
	for r.kind() != 0 {
		if err := element(); err != nil {
			return err
		}
	}
	if _, err := r.decoder.ReadToken(); err != nil { // the closing bracket
		return r.syntaxError(err)
	}
	return nil
}

// unquoted is the content of a string that was read. Without escapes, it is
// part of it.
func unquoted(raw []byte) ([]byte, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	return jsontext.AppendUnquote(nil, raw)
}

// null reads null, where it stands.
func (r *reader) null() (bool, error) {
	if r.kind() != 'n' {
		return false, nil
	}
	return true, r.skip()
}

// bytes reads a string or null. It holds until the next is read.
func (r *reader) bytes() (content []byte, stated bool, err error) {
	if null, err := r.null(); null {
		return nil, false, err
	}
	if r.kind() != '"' {
		return nil, false, r.skipOther("a string or null")
	}
	raw, err := r.value()
	if err != nil {
		return nil, false, err
	}
	r.stringLength = len(raw)
	content, err = unquoted(raw)
	if err != nil {
		return nil, false, r.syntaxError(err)
	}
	return content, true, nil
}

// text reads a string; null is empty.
func (r *reader) text() (string, error) {
	b, _, err := r.bytes()
	return string(b), err
}

// optional reads a string or null.
func (r *reader) optional() (*string, error) {
	b, stated, err := r.bytes()
	if err != nil || !stated {
		return nil, err
	}
	s := string(b)
	return &s, nil
}

// whole reads a whole number from 0; null is 0.
func (r *reader) whole() (int64, error) {
	if null, err := r.null(); null {
		return 0, err
	}
	if r.kind() != '0' {
		return 0, r.skipOther("a whole number")
	}
	raw, err := r.value()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < 0 {
		return 0, r.typeError("a whole number from 0")
	}
	return n, nil
}

// seconds reads a time that may have a fraction, which is dropped; null is 0.
func (r *reader) seconds() (int64, error) {
	if null, err := r.null(); null {
		return 0, err
	}
	if r.kind() != '0' {
		return 0, r.skipOther("a number")
	}
	raw, err := r.value()
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < 0 || f > 1<<53 {
		return 0, r.typeError("a time")
	}
	return int64(f), nil
}

// keepExtra reads a value and keeps it under its name.
func (r *reader) keepExtra(into *Extra, name []byte) error {
	member := Member{Name: string(name)}
	raw, err := r.value()
	if err != nil {
		return err
	}
	if r.extraCount++; r.extraCount > maxExtraMembers && !r.trusted {
		return fmt.Errorf("more than %d members that are not known", maxExtraMembers)
	}
	if isTooDeep(raw) {
		return fmt.Errorf("a member nested deeper than %d levels, before byte %d", maxDepth, r.decoder.InputOffset())
	}
	member.Value = oneLine(bytes.Clone(raw))
	*into = append(*into, member)
	return nil
}

// addSlot notes that the string of this length, just read, may be another one.
func (r *reader) addSlot(length, extra int) {
	end := int(r.decoder.InputOffset())
	r.slots = append(r.slots, slot{start: end - length, end: end, extra: extra})
}

// oneLine makes the ends of lines spaces: strict JSON has them between its tokens
// alone, and an event of a stream cannot hold them.
func oneLine(raw []byte) []byte {
	for i, c := range raw {
		if c == '\n' || c == '\r' {
			raw[i] = ' '
		}
	}
	return raw
}

// isTooDeep tells whether a value that was read nests beyond maxDepth.
func isTooDeep(raw []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
