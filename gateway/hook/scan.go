package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
)

// part is a piece of a JSON value: a text, the name of a member, or a number.
type part struct {
	start, end int    // in the value
	text       string // decoded
	fixed      bool   // a name or a number, which nothing can stand for
	isName     bool
	at         *places // that are asked for, as far as this place is on the way to one
	open       []container
}

// container is an object or an array that is being read.
type container struct {
	array bool
	next  int    // index of the next element
	name  string // of the member whose value comes next
	named bool
	at    *places
}

// places are some JSON Pointers, as a tree.
type places struct {
	ends  bool // one of them ends here
	below map[string]*places
}

// step is what is asked for at a token below; nil: nothing.
func (p *places) step(token string) *places {
	if p == nil {
		return nil
	}
	return p.below[token]
}

// scan calls a function for each part of a JSON value, in their order. The value must be one
// strict JSON value. It takes time in proportion to the value's length.
func scan(value []byte, at *places, each func(part) error) error {
	tokens := json.NewDecoder(bytes.NewReader(value))
	tokens.UseNumber()
	var open []container
	for {
		start := int(tokens.InputOffset())
		token, err := tokens.Token()
		if errors.Is(err, io.EOF) && len(open) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		end := int(tokens.InputOffset())
		for start < end && strings.IndexByte(" \t\r\n,:", value[start]) >= 0 {
			start++
		}
		var in *container
		if len(open) > 0 {
			in = &open[len(open)-1]
		}
		p := part{start: start, end: end}
		switch token := token.(type) {
		case json.Delim:
			if token == '{' || token == '[' {
				open = append(open, container{array: token == '[', at: in.enter(at)})
				continue
			}
			if open = open[:len(open)-1]; len(open) > 0 {
				open[len(open)-1].passed()
			}
			continue
		case string:
			p.text = token
			if in != nil && !in.array && !in.named {
				in.name, in.named, p.fixed, p.isName = token, true, true, true
			}
		case json.Number:
			p.text, p.fixed = token.String(), true
		default: // true, false and null say nothing
			in.passed()
			continue
		}
		if p.open = open; !p.isName {
			p.at = in.enter(at)
		}
		if err := each(p); err != nil {
			return err
		}
		if !p.isName {
			in.passed()
		}
	}
}

// passed notes that a value of the container has ended. It may be nil: of the root.
func (c *container) passed() {
	if c != nil {
		c.next++
		c.named = false
	}
}

// enter is what is asked for at the value that comes next; of a nil container, at the root.
func (c *container) enter(root *places) *places {
	switch {
	case c == nil:
		return root
	case c.array && c.at != nil:
		return c.at.step(strconv.Itoa(c.next))
	}
	return c.at.step(c.name)
}

// pointer is the JSON Pointer of the part; of a name, that of its object, since the name may be what
// must not be shown.
func (p *part) pointer() string {
	open := p.open
	if p.isName {
		open = open[:len(open)-1]
	}
	path := make([]string, len(open))
	for i := range open {
		if path[i] = open[i].name; open[i].array {
			path[i] = strconv.Itoa(open[i].next)
		}
	}
	return refusal.Pointer(path...)
}

// edit returns a JSON value with texts replaced by others. change is given each part in order; what
// it returns for a name or a number is not used. All bytes but those of the texts stay as they are.
func edit(value []byte, at *places, change func(part) (string, error)) ([]byte, error) {
	var out []byte
	copied := 0
	err := scan(value, at, func(p part) error {
		to, err := change(p)
		if err != nil || p.fixed || to == p.text {
			return err
		}
		out = rawjson.AppendQuote(append(out, value[copied:p.start]...), to)
		copied = p.end
		return nil
	})
	if err != nil || out == nil {
		return value, err
	}
	return append(out, value[copied:]...), nil
}

// maxNested bounds how deep texts that are themselves JSON are read: tools of MCP answer with such
// texts, and a secret in them may be written with escapes.
const maxNested = 3

// matchError is a match that denies.
type matchError struct{ pattern, pointer string }

func (e *matchError) Error() string {
	return "the pattern " + e.pattern + " matches at " + strconv.Quote(e.pointer)
}

// find looks for patterns in a value. With redact, texts are replaced; a match in a name or a number
// is an error, and without redact each is.
func find(value []byte, patterns []*Pattern, redact bool, nested int) ([]byte, error) {
	return edit(value, nil, func(p part) (string, error) {
		text := p.text
		if inner := []byte(text); nested < maxNested && !p.fixed && isJSON(inner) {
			edited, err := find(inner, patterns, redact, nested+1)
			var match *matchError
			if errors.As(err, &match) {
				return "", &matchError{match.pattern, p.pointer()}
			}
			if err == nil { // one that cannot be read is only a text
				text = string(edited)
			}
		}
		for _, pattern := range patterns {
			if !pattern.Matches(text) {
				continue
			}
			if p.fixed || !redact {
				return "", &matchError{pattern.Name, p.pointer()}
			}
			text = pattern.replace(text)
		}
		return text, nil
	})
}

// isJSON reports whether a text is a JSON object, array or string.
func isJSON(text []byte) bool {
	trimmed := bytes.TrimLeft(text, " \t\r\n")
	return len(trimmed) > 0 && strings.IndexByte(`{["`, trimmed[0]) >= 0 && json.Valid(text)
}

// errPointer is an answer that names a place which is no text of the value, or one twice.
var errPointer = errors.New("the answer names a place that is no text of the value")

// replaceAt replaces the texts at some JSON Pointers.
func replaceAt(value []byte, pointers []string, by string) ([]byte, error) {
	root, left := &places{}, len(pointers)
	for _, at := range pointers {
		to := root
		if at != "" {
			if at[0] != '/' {
				return nil, errPointer
			}
			for _, token := range strings.Split(at[1:], "/") {
				if strings.Count(token, "~") != strings.Count(token, "~0")+strings.Count(token, "~1") {
					return nil, errPointer
				}
				token = refusal.UnescapePointer(token)
				if to.below == nil {
					to.below = map[string]*places{}
				}
				if to.below[token] == nil {
					to.below[token] = &places{}
				}
				to = to.below[token]
			}
		}
		if to.ends {
			return nil, errPointer
		}
		to.ends = true
	}
	edited, err := edit(value, root, func(p part) (string, error) {
		if p.fixed || p.at == nil || !p.at.ends {
			return p.text, nil
		}
		left--
		return by, nil
	})
	if err == nil && left > 0 {
		err = errPointer
	}
	return edited, err
}
