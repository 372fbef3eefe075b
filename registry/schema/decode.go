package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/callgate/callgate/internal/decimal"
	"github.com/callgate/callgate/registry/internal/lexical"
)

const (
	maxSchemaBytes = 1 << 20
	maxSchemaDepth = 128
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
	if !json.Valid(raw) {
		return nil, &Fault{"", "found invalid JSON; expected a JSON Schema document"}
	}
	if loneSurrogate(raw) {
		return nil, &Fault{"", "found a lone surrogate escape; expected whole characters"}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, f := decodeValue(d, "", 0)
	if f != nil {
		return nil, f
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, &Fault{"", "found more after the end of the document; expected one JSON Schema document"}
	}
	return v, nil
}

func decodeValue(d *json.Decoder, pointer string, depth int) (any, *Fault) {
	unreadable := &Fault{pointer, "found invalid JSON; expected a JSON Schema document"}
	if depth > maxSchemaDepth {
		return nil, &Fault{pointer, fmt.Sprintf("found nesting over %d; expected a flatter schema", maxSchemaDepth)}
	}
	token, err := d.Token()
	if err != nil {
		return nil, unreadable
	}
	switch token {
	case json.Delim('{'):
		object := map[string]any{}
		for d.More() {
			key, err := d.Token()
			name, ok := key.(string)
			if err != nil || !ok {
				return nil, unreadable
			}
			if _, twice := object[name]; twice {
				return nil, &Fault{child(pointer, name), fmt.Sprintf("found the key %s a second time; expected each key once", lexical.Quote(name))}
			}
			v, f := decodeValue(d, child(pointer, name), depth+1)
			if f != nil {
				return nil, f
			}
			object[name] = v
		}
		_, err = d.Token()
		if err != nil {
			return nil, unreadable
		}
		return object, nil
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, f := decodeValue(d, childIndex(pointer, len(list)), depth+1)
			if f != nil {
				return nil, f
			}
			list = append(list, v)
		}
		if _, err = d.Token(); err != nil {
			return nil, unreadable
		}
		return list, nil
	}
	if n, ok := token.(json.Number); ok {
		if _, ok := decimal.Parse(string(n)); !ok {
			return nil, &Fault{pointer, fmt.Sprintf("found a number out of range; expected at most %d bytes and an exponent from -%d to %d", decimal.MaxBytes, decimal.MaxExponent, decimal.MaxExponent)}
		}
	}
	return token, nil
}

// loneSurrogate finds a \u escape of one half of a surrogate pair without the
// other, which encoding/json would replace in silence. raw is valid JSON.
func loneSurrogate(raw []byte) bool {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		switch unit := decodeHex4(raw[i+1:]); {
		case unit >= 0xD800 && unit < 0xDC00:
			next := raw[i+5:]
			if len(next) < 6 || next[0] != '\\' || next[1] != 'u' {
				return true
			}
			if low := decodeHex4(next[2:]); low < 0xDC00 || low > 0xDFFF {
				return true
			}
			i += 10
		case unit >= 0xDC00 && unit <= 0xDFFF:
			return true
		}
	}
	return false
}

func decodeHex4(b []byte) (unit int) {
	for _, c := range b[:min(4, len(b))] {
		unit <<= 4
		switch {
		case c <= '9':
			unit |= int(c - '0')
		default:
			unit |= int(c|0x20-'a') + 10
		}
	}
	return unit
}
