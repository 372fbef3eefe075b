package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/callgate/callgate/internal/safe"
)

// redacted stands where a secret value stood.
const redacted = `"[redacted]"`

// Redact returns raw with every value that secret names replaced by
// "[redacted]", and every other byte as it was. secret is given the place of a
// value: the decoded names of the members, and the decimal indexes of the
// elements, that lead to it from the root; empty for the root itself. It is
// asked once a value, outer before inner, never below a value that it named,
// and must not keep the slice.
//
// In doubt more is hidden. A member whose name holds U+FFFD, which may replace bytes
// that no schema can name, is secret. If raw is not one JSON value in UTF-8, or secret
// is nil or panics, all of it is "[redacted]", with an error.
func Redact(raw json.RawMessage, secret func(path []string) bool) (out json.RawMessage, err error) {
	defer safe.Catch(func(error) {
		out, err = json.RawMessage(redacted), errors.New("redaction: no working test for secrets; all was hidden")
	})
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return json.RawMessage(redacted), errors.New("redaction: not one JSON value in UTF-8; all was hidden")
	}
	r := redactor{raw: raw, secret: secret, tokens: json.NewDecoder(bytes.NewReader(raw))}
	r.tokens.UseNumber()
	if err := r.value(); err != nil {
		return json.RawMessage(redacted), fmt.Errorf("redaction: all was hidden: %w", err)
	}
	return append(r.out, raw[r.copied:]...), nil
}

// redactor walks over one JSON value, without recursion: raw may nest deep.
type redactor struct {
	raw    []byte
	secret func([]string) bool
	tokens *json.Decoder
	out    []byte
	copied int // raw up to here stands in out, or was left out of it
	path   []string
	open   []container
}

// container is an object or array that is being read.
type container struct {
	array bool
	next  int // index of the next element
}

func (r *redactor) value() error {
	for hide := r.secret(nil); ; {
		start, token, err := r.token()
		if err != nil {
			return err
		}
		delim, _ := token.(json.Delim)
		switch {
		case delim == '}' || delim == ']':
			r.open = r.open[:len(r.open)-1]
		case hide:
			if err := r.skip(delim); err != nil {
				return err
			}
			r.out = append(append(r.out, r.raw[r.copied:start]...), redacted...)
			r.copied = int(r.tokens.InputOffset())
		case delim == '{' || delim == '[':
			r.open = append(r.open, container{array: delim == '['})
			r.path = append(r.path, "")
		}
		if hide, err = r.enter(); err != nil || len(r.open) == 0 {
			return err
		}
	}
}

// token reads the next token and tells where it starts.
func (r *redactor) token() (start int, token json.Token, err error) {
	start = int(r.tokens.InputOffset())
	token, err = r.tokens.Token()
	for start < len(r.raw) && strings.IndexByte(" \t\r\n,:", r.raw[start]) >= 0 {
		start++
	}
	return start, token, err
}

// skip reads on to the end of the value that began with delim, if any.
func (r *redactor) skip(delim json.Delim) error {
	depth := 0
	if delim != 0 {
		depth = 1
	}
	for depth > 0 {
		token, err := r.tokens.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}

// enter goes to the next value of the innermost container, past the name of a member,
// and reports whether the value is secret. At the end of a container it does nothing:
// the next token closes it.
func (r *redactor) enter() (hide bool, err error) {
	r.path = r.path[:len(r.open)]
	if len(r.open) == 0 || !r.tokens.More() {
		return false, nil
	}
	in := &r.open[len(r.open)-1]
	name := strconv.Itoa(in.next)
	in.next++
	if !in.array {
		token, err := r.tokens.Token()
		if err != nil {
			return false, err
		}
		var ok bool
		if name, ok = token.(string); !ok {
			return false, errors.New("a member without a name")
		}
	}
	r.path[len(r.path)-1] = name
	return r.secret(r.path) || !in.array && strings.ContainsRune(name, utf8.RuneError), nil
}
