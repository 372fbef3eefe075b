package rawjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Kind is the first byte of a value: one of n t f " 0 { [, where 0 stands for every number.
// None is that there is no further value: the object, the array or the input ends, or continues
// with bytes that are not JSON.
type Kind byte

// None is no value.
const None Kind = 0

// Reader reads one strict JSON value part by part, without building it. The zero value is
// ready for Reset. The first error is final; it is an *Error, or that of a callback. A Reader
// must not be copied, nor used concurrently.
//
// Value returns numbers and strings as they were written. Nothing bounds the depth but AnyDepth:
// see Deeper.
type Reader struct {
	src     bytes.Buffer
	decoder *jsontext.Decoder
	start   int
	lenient bool // half of a surrogate pair reads as U+FFFD
}

// NewReader returns a reader of data, which must not change meanwhile.
func NewReader(data []byte) *Reader {
	r := new(Reader)
	r.Reset(data)
	return r
}

// Reset makes the reader read other bytes, and keeps its memory.
func (r *Reader) Reset(data []byte) { r.reset(data) }

// ResetChecked is Reset for a value that was checked before: duplicate names and UTF-8 are not
// looked for again.
func (r *Reader) ResetChecked(data []byte) {
	r.reset(data, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func (r *Reader) reset(data []byte, options ...jsontext.Options) {
	r.src, r.start = *bytes.NewBuffer(data), 0 // which jsontext reads in place
	r.lenient = len(options) > 0
	if r.decoder == nil {
		r.decoder = jsontext.NewDecoder(&r.src, options...)
		return
	}
	r.decoder.Reset(&r.src, options...)
}

// Offset returns the number of bytes read.
func (r *Reader) Offset() int { return int(r.decoder.InputOffset()) }

// Start returns the offset of the literal, name or bracket that was read last.
func (r *Reader) Start() int { return r.start }

// Kind returns the kind of the next value, and reads nothing.
func (r *Reader) Kind() Kind {
	switch k := r.decoder.PeekKind(); k {
	case 'n', 't', 'f', '"', '0', '{', '[':
		return Kind(k)
	}
	return None
}

// Value reads the next value and returns it as it was written. It is valid until the next
// read.
func (r *Reader) Value() ([]byte, error) {
	raw, err := r.decoder.ReadValue()
	if err != nil {
		return nil, r.fault(err)
	}
	r.start = r.Offset() - len(raw)
	return raw, nil
}

// Text reads a string and returns it decoded, valid until the next read.
func (r *Reader) Text() ([]byte, error) {
	raw, err := r.Value()
	if err != nil {
		return nil, err
	}
	text, err := Unquote(raw)
	if err != nil && (!r.lenient || raw[0] != '"') {
		return nil, r.fault(err)
	}
	return text, nil
}

// Object reads an object, whose Kind is {. It calls member with each name, which is valid until
// the next read; member must read the value.
func (r *Reader) Object(member func(name []byte) error) error {
	return r.within(func() error {
		name, err := r.Text()
		if err != nil {
			return err
		}
		return member(name)
	})
}

// Array reads an array, whose Kind is [. element must read each element.
func (r *Reader) Array(element func() error) error { return r.within(element) }

// within reads a bracket, the parts within it by part, and the closing bracket.
func (r *Reader) within(part func() error) error {
	if err := r.bracket(); err != nil {
		return err
	}
	for {
		switch r.decoder.PeekKind() {
		case '}', ']', 0: // 0: bracket returns the error
			return r.bracket()
		}
		if err := part(); err != nil {
			return err
		}
	}
}

func (r *Reader) bracket() error {
	if _, err := r.decoder.ReadToken(); err != nil {
		return r.fault(err)
	}
	r.start = r.Offset() - 1
	return nil
}

// End returns nil if nothing but whitespace follows.
func (r *Reader) End() error {
	switch _, err := r.decoder.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return r.fault(err)
	}
	return &Error{Offset: r.Offset()}
}

// Reason is why bytes are not strict JSON.
type Reason int

// The reasons. Other is all others.
const (
	Other     Reason = iota
	Ended            // the input ends too early
	Duplicate        // a name stands twice in one object
	Surrogate        // one half of a surrogate pair
)

// Error is a fault of syntax: it is ErrDuplicate or ErrSyntax.
type Error struct {
	Reason  Reason
	Offset  int    // of the fault in the input
	Pointer string // JSON Pointer of the value or the member
}

// Error says where the fault is, and quotes nothing of the input.
func (e *Error) Error() string {
	if e.Reason == Ended {
		return "JSON that ends too early"
	}
	return fmt.Sprintf("%v, after byte %d", e.Unwrap(), e.Offset)
}

// Unwrap returns ErrDuplicate or ErrSyntax.
func (e *Error) Unwrap() error {
	if e.Reason == Duplicate {
		return ErrDuplicate
	}
	return ErrSyntax
}

func (r *Reader) fault(err error) error { return newError(err, r.Offset()) }

// newError translates an error of jsontext, which was met after offset bytes.
func newError(err error, offset int) *Error {
	e := &Error{Offset: offset}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		e.Reason = Ended
	}
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return e
	}
	e.Offset, e.Pointer = int(syntax.ByteOffset), string(syntax.JSONPointer)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		e.Reason = Duplicate
	case strings.HasPrefix(syntax.Err.Error(), "invalid surrogate"):
		e.Reason = Surrogate
	}
	return e
}
