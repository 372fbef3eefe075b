package chat

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/callgate/callgate/internal/strictjson"
)

// maxDepth bounds the nesting of unknown members.
const maxDepth = 128

// maxExtraMembers bounds the unknown members of one document: each takes more memory than its
// bytes.
const maxExtraMembers = 1 << 14

// Reader parses strict JSON documents token by token. Its errors give the position of a
// fault, never the text there. The zero value is ready.
//
// It calls functions for members instead of returning maps, as strictjson does: the maps of
// one chunk take 70 allocations and twice the time, the reader 9, and a long answer has
// thousands of chunks.
type Reader struct {
	// Choices is how many answers were asked for; 0: one. It decides whether a choice of a chunk may
	// lack its index.
	Choices int

	src          bytes.Buffer
	decoder      *jsontext.Decoder
	stringLength int    // of the last string literal
	slots        []slot // for the chunk template
	template     chunkTemplate
	extraCount   int  // unknown members of this document
	trusted      bool // the input was validated before: its members are not counted
	failed       bool // a choice of this document finished for the reason error
	usage        *Reader
}

// readers are used again: one that is ready costs 40 allocations less for a completion.
var readers = sync.Pool{New: func() any { return new(Reader) }}

// NewReader returns a reader. Release it.
func NewReader() *Reader { return readers.Get().(*Reader) }

// maxKeptTemplate bounds the memory of a reader that is kept.
const maxKeptTemplate = 64 << 10

// Release gives the reader back. Everything that it has read stays valid, but for the last chunk.
func (r *Reader) Release() {
	if r.decoder != nil {
		r.src = bytes.Buffer{}
		r.decoder.Reset(&r.src) // so that it keeps no document
	}
	r.Choices = 0
	document := r.template.document[:0]
	if cap(document) > maxKeptTemplate {
		document = nil
	}
	r.template = chunkTemplate{document: document, slots: r.template.slots[:0]}
	readers.Put(r)
}

// document parses bytes that are one object and nothing else.
func (r *Reader) document(b []byte, member func(name []byte) error) error {
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

// kind returns the kind of the next value: one of n t f " 0 { [, or 0 if there is
// none.
func (r *Reader) kind() jsontext.Kind {
	k := r.decoder.PeekKind()
	switch k {
	case 'n', 't', 'f', '"', '0', '{', '[':
		return k
	}
	return 0
}

// value returns the next value, undecoded. It is valid until the next read.
func (r *Reader) value() (jsontext.Value, error) {
	v, err := r.decoder.ReadValue()
	if err != nil {
		return nil, r.syntaxError(err)
	}
	return v, nil
}

func (r *Reader) skip() error {
	_, err := r.value()
	return err
}

// syntaxError describes where the JSON is invalid.
func (r *Reader) syntaxError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("JSON that ends too early")
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return fmt.Errorf("a name that stands twice in one object, after byte %d", r.decoder.InputOffset())
	}
	return fmt.Errorf("no strict JSON, after byte %d", r.decoder.InputOffset())
}

// skipOther skips the next value, and returns the error that it is not of the expected type.
func (r *Reader) skipOther(expected string) error {
	if err := r.skip(); err != nil {
		return err
	}
	return r.typeError(expected)
}

// typeError is the error that the value just read is not of the expected type.
func (r *Reader) typeError(expected string) error {
	return fmt.Errorf("a value that is not %s, before byte %d", expected, r.decoder.InputOffset())
}

// object parses an object. member is called with each decoded name, which is valid until the
// value is read, and must read the value.
func (r *Reader) object(member func(name []byte) error) error {
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

// array parses an array. element must read each element.
func (r *Reader) array(element func() error) error {
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

// unquoted decodes a string literal; without escapes, the result is part of the literal.
func unquoted(raw []byte) ([]byte, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	return jsontext.AppendUnquote(nil, raw)
}

// null reads null if it is the next value.
func (r *Reader) null() (bool, error) {
	if r.kind() != 'n' {
		return false, nil
	}
	return true, r.skip()
}

// bytes reads a string or null. The result is valid until the next read.
func (r *Reader) bytes() (content []byte, stated bool, err error) {
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

// text reads a string; null gives an empty one.
func (r *Reader) text() (string, error) {
	b, _, err := r.bytes()
	return string(b), err
}

// optional reads a string or null.
func (r *Reader) optional() (*string, error) {
	b, stated, err := r.bytes()
	if err != nil || !stated {
		return nil, err
	}
	s := string(b)
	return &s, nil
}

// whole reads a non-negative integer; null gives 0.
func (r *Reader) whole() (int64, error) {
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

// textOfCall is text for a member of a call, which the fault names.
func (r *Reader) textOfCall(member string) (string, error) {
	if k := r.kind(); k == '"' || k == 'n' {
		return r.text()
	}
	if err := r.skip(); err != nil {
		return "", err
	}
	return "", fmt.Errorf("a call whose %s is not a string, before byte %d", member, r.decoder.InputOffset())
}

// label reads a string that decides nothing; any other value gives an empty one.
func (r *Reader) label() (string, error) {
	if r.kind() != '"' {
		return "", r.skip()
	}
	return r.text()
}

// seconds reads a Unix time and drops its fraction; any other value gives 0.
func (r *Reader) seconds() (int64, error) {
	raw, err := r.value()
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < 0 || f > 1<<53 {
		return 0, nil //nolint:nilerr // the time decides nothing
	}
	return int64(f), nil
}

// count reads a number of tokens, which some servers write as 12.0; null gives 0.
func (r *Reader) count() (int64, error) {
	if null, err := r.null(); null {
		return 0, err
	}
	raw, err := r.value()
	if err != nil {
		return 0, err
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil && n >= 0 {
		return n, nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < 0 || f > 1<<53 || f != math.Trunc(f) {
		return 0, r.typeError("a number of tokens")
	}
	return int64(f), nil
}

// keepExtra reads a value and appends it under its name.
func (r *Reader) keepExtra(into *Extra, name []byte) error {
	member := Member{Name: string(name)}
	raw, err := r.value()
	if err != nil {
		return err
	}
	if r.extraCount++; r.extraCount > maxExtraMembers && !r.trusted {
		return fmt.Errorf("more than %d members that are not known", maxExtraMembers)
	}
	if strictjson.Deeper(raw, maxDepth) {
		return fmt.Errorf("a member nested deeper than %d levels, before byte %d", maxDepth, r.decoder.InputOffset())
	}
	member.Value = oneLine(bytes.Clone(raw))
	*into = append(*into, member)
	return nil
}

// addSlot records the string literal just read, of this length, as a slot of the template.
func (r *Reader) addSlot(length, extra int) {
	end := int(r.decoder.InputOffset())
	r.slots = append(r.slots, slot{start: end - length, end: end, extra: extra})
}

// oneLine replaces line ends by spaces: valid JSON has them only between tokens, and an
// event of a stream cannot hold them.
func oneLine(raw []byte) []byte {
	for i, c := range raw {
		if c == '\n' || c == '\r' {
			raw[i] = ' '
		}
	}
	return raw
}
