package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/internal/rawjson"
)

// ReadJSON reads one strict JSON value into the same tree as ReadYAML, with the
// line and column of every value.
func ReadJSON(r *Report, file string, data []byte) (Node, bool) {
	if f := checkUTF8(file, data); f != nil {
		return r.refuse(f)
	}
	j := jsonReader{decoder: jsontext.NewDecoder(bytes.NewReader(data)), data: data, line: 1, column: 1}
	root, err := j.value()
	if err != nil {
		return r.refuse(j.fault(file, err))
	}
	end := len(data) - len(bytes.TrimLeft(data[j.decoder.InputOffset():], " \t\r\n"))
	if end < len(data) {
		return r.refuse(faultAt(file, data, end, "found more after the JSON value; expected one value"))
	}
	n := Node{Node: root, Report: r, File: file, root: root}
	return n, n.checkStrict(0)
}

// fault translates an error of the JSON reader, without the text that it quotes.
func (j *jsonReader) fault(file string, err error) *Fault {
	const expected = "; expected no comments, no trailing commas, each key once"
	offset, message := j.decoder.InputOffset(), "found the end of the file"
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		offset = syntax.ByteOffset
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			message = "found a duplicate key"
		case errors.Is(err, io.ErrUnexpectedEOF):
		case strings.HasPrefix(syntax.Err.Error(), "invalid character"):
			message = "found an " + syntax.Err.Error()
		case strings.HasPrefix(syntax.Err.Error(), "invalid surrogate"):
			message = "found half of a surrogate pair"
		case strings.HasPrefix(syntax.Err.Error(), "invalid escape"):
			message = "found an escape that JSON does not know"
		default:
			message = "found what is not JSON"
		}
		if syntax.JSONPointer != "" {
			message += " at " + string(syntax.JSONPointer)
		}
	}
	end := len(bytes.TrimRight(j.data, " \t\r\n"))
	return faultAt(file, j.data, min(int(offset), end), "not strict JSON: "+message+expected)
}

type jsonReader struct {
	decoder *jsontext.Decoder
	data    []byte

	counted      int // the offset that is at line and column, in characters
	line, column int
}

// advance counts the lines and columns up to a byte offset.
func (j *jsonReader) advance(offset int64) {
	at := min(int(offset), len(j.data))
	passed := j.data[j.counted:at]
	if i := bytes.LastIndexByte(passed, '\n'); i >= 0 {
		j.line, j.column = j.line+bytes.Count(passed, []byte("\n")), 1
		passed = passed[i+1:]
	}
	j.column, j.counted = j.column+utf8.RuneCount(passed), at
}

// next reads one token and makes a node of it.
func (j *jsonReader) next() (*yaml.Node, error) {
	before := j.decoder.InputOffset()
	token, err := j.decoder.ReadToken()
	if err != nil {
		return nil, err
	}
	// The token starts at the first byte that is neither blank nor punctuation.
	for int(before) < len(j.data) && bytes.IndexByte([]byte(" \t\r\n,:"), j.data[before]) >= 0 {
		before++
	}
	j.advance(before)
	n := &yaml.Node{Line: j.line, Column: j.column}
	switch token.Kind() {
	case '{':
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	case '[':
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	default:
		n.Kind, n.Value = yaml.ScalarNode, token.String()
		switch token.Kind() {
		case '"':
			n.Tag, n.Style = "!!str", yaml.DoubleQuotedStyle
		case '0':
			n.Tag = "!!float"
			if jsonInteger.MatchString(n.Value) {
				n.Tag = "!!int"
			}
		case 't', 'f':
			n.Tag = "!!bool"
		case 'n':
			n.Tag = "!!null"
		}
	}
	return n, nil
}

func (j *jsonReader) value() (*yaml.Node, error) {
	n, err := j.next()
	if err != nil || n.Kind == yaml.ScalarNode {
		return n, err
	}
	for {
		if k := j.decoder.PeekKind(); k == '}' || k == ']' {
			_, err := j.decoder.ReadToken()
			return n, err
		}
		if n.Kind == yaml.MappingNode {
			key, err := j.next()
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, key)
		}
		c, err := j.value()
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, c)
	}
}

// jsonNumber is a number as JSON writes it.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// JSON translates the node to JSON, with keys in their order and numbers digit
// by digit. It reports what JSON cannot say.
func (n Node) JSON() (json.RawMessage, bool) {
	const usual = 1 << 10
	return n.appendJSON(make([]byte, 0, usual))
}

func (n Node) appendJSON(b []byte) (_ []byte, ok bool) {
	ok = true
	part := func(c *yaml.Node) {
		var whole bool
		b, whole = n.With(c).appendJSON(b)
		ok = ok && whole
	}
	switch n.Kind {
	case yaml.MappingNode:
		b = append(b, '{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(rawjson.AppendEscaped(b, n.Content[i].Value), ':')
			part(n.Content[i+1])
		}
		return append(b, '}'), ok
	case yaml.SequenceNode:
		b = append(b, '[')
		for i, c := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			part(c)
		}
		return append(b, ']'), ok
	}
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return rawjson.AppendEscaped(b, n.Value), true
	case "!!int", "!!float":
		if !jsonNumber.MatchString(n.Value) {
			return b, n.Fail("found %s; expected a number as JSON writes it, or a string in quotes", n.Describe())
		}
		return append(b, n.Value...), true
	case "!!bool":
		if n.Value != "true" && n.Value != "false" {
			return b, n.Fail("found %s; expected true or false, or a string in quotes", n.Describe())
		}
		return append(b, n.Value...), true
	case "!!null":
		if n.Value != "null" && n.Value != "~" {
			return b, n.Fail("found nothing after the key; expected a value, or null")
		}
		return append(b, "null"...), true
	}
	return b, n.Fail("found %s; expected a plain value", n.Excerpt())
}
