package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/callgate/callgate/internal/decimal"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

const (
	maxSchemaBytes  = 1 << 20
	maxSchemaDepth  = 128
	maxPointerBytes = 64 << 20 // of the pointers of all values
)

// decodeSchema reads one JSON document into map[string]any, []any, string,
// bool, nil and json.Number. It is as strict as the reading of arguments: no
// duplicate names, no invalid UTF-8, no lone surrogates, nothing after the end.
func decodeSchema(raw []byte) (any, *Fault) {
	if len(raw) > maxSchemaBytes {
		return nil, &Fault{"", fmt.Sprintf("found %d bytes; expected at most %d", len(raw), maxSchemaBytes)}
	}
	if !utf8.Valid(raw) {
		return nil, &Fault{"", "found invalid UTF-8; expected a JSON Schema document in UTF-8"}
	}
	d := schemaDecoder{Reader: rawjson.NewReader(raw)}
	v, err := d.value(0)
	if err == nil {
		err = d.End()
	}
	if err != nil {
		return nil, decodeFault(err)
	}
	return v, nil
}

// decodeFault words an error of a schemaDecoder.
func decodeFault(err error) *Fault {
	var limit *limitError
	if errors.As(err, &limit) {
		return &limit.fault
	}
	var syntax *rawjson.Error
	if errors.As(err, &syntax) {
		switch syntax.Reason {
		case rawjson.Duplicate:
			name := syntax.Pointer[strings.LastIndexByte(syntax.Pointer, '/')+1:]
			return &Fault{syntax.Pointer, fmt.Sprintf("found the key %s a second time; expected each key once",
				parser.Quote(refusal.UnescapePointer(name)))}
		case rawjson.Surrogate:
			return &Fault{"", "found a lone surrogate escape; expected whole characters"}
		}
	}
	return &Fault{"", "found invalid JSON; expected a JSON Schema document"}
}

// limitError is the fault of a document that is strict JSON, but beyond a limit.
type limitError struct{ fault Fault }

func (e *limitError) Error() string { return e.fault.Message }

// schemaDecoder reads the values of a document. Its errors are a *limitError, and those of the
// reader.
type schemaDecoder struct {
	*rawjson.Reader
	pointer      []byte // of the value that is read
	pointerBytes int    // so far: a long key stands in the pointer of each value below it
}

// child reads a value below the one that is read.
func (d *schemaDecoder) child(token string, depth int) (any, error) {
	above := len(d.pointer)
	d.pointer = append(append(d.pointer, '/'), refusal.EscapePointer(token)...)
	v, err := d.value(depth + 1)
	d.pointer = d.pointer[:above]
	return v, err
}

func (d *schemaDecoder) value(depth int) (any, error) {
	if d.pointerBytes += len(d.pointer); d.pointerBytes > maxPointerBytes {
		return nil, &limitError{Fault{"", "found too many values below long keys; expected shorter keys, or fewer values"}}
	}
	if depth > maxSchemaDepth {
		return nil, &limitError{Fault{string(d.pointer), fmt.Sprintf("found nesting over %d; expected a flatter schema", maxSchemaDepth)}}
	}
	switch d.Kind() {
	case '{':
		object := map[string]any{}
		err := d.Object(func(name []byte) (err error) {
			key := string(name)
			object[key], err = d.child(key, depth)
			return err
		})
		return object, err
	case '[':
		list := []any{}
		err := d.Array(func() error {
			v, err := d.child(strconv.Itoa(len(list)), depth)
			list = append(list, v)
			return err
		})
		return list, err
	case '"':
		text, err := d.Text()
		return string(text), err
	}
	literal, err := d.Value()
	if err != nil {
		return nil, err
	}
	switch literal[0] {
	case 'n':
		return nil, nil
	case 't', 'f':
		return literal[0] == 't', nil
	}
	n := json.Number(literal)
	if _, ok := decimal.Parse(string(n)); !ok {
		return nil, &limitError{Fault{string(d.pointer),
			fmt.Sprintf("found a number out of range; expected at most %d bytes and an exponent from -%d to %d",
				decimal.MaxBytes, decimal.MaxExponent, decimal.MaxExponent)}}
	}
	return n, nil
}
