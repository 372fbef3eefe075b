package configs

import (
	"bytes"
	"errors"
	"io"
	"sort"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
)

// readJSON reads one strict JSON value into the same tree as readYAML, with the
// line and column of every value.
func readJSON(r *report, file string, data []byte) (node, bool) {
	j := jsonReader{decoder: jsontext.NewDecoder(bytes.NewReader(data)), data: data}
	for i, c := range data {
		if c == '\n' {
			j.lines = append(j.lines, i+1)
		}
	}
	root, err := j.value()
	if err == nil {
		if _, end := j.decoder.ReadToken(); !errors.Is(end, io.EOF) {
			err = errors.New("found more after the JSON value; expected one value")
		}
	}
	if err != nil {
		line, column := j.position(j.decoder.InputOffset())
		var syntax *jsontext.SyntacticError
		message := err.Error()
		if errors.As(err, &syntax) {
			line, column = j.position(syntax.ByteOffset)
			message = "not strict JSON: " + syntax.Err.Error()
			if syntax.JSONPointer != "" {
				message += " at " + string(syntax.JSONPointer)
			}
		} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			message = "not strict JSON: the file ends too early"
		}
		r.add(&Fault{File: file, Line: line, Column: column, Message: message})
		return node{}, false
	}
	n := node{Node: root, report: r, file: file}
	return n, n.clean(0)
}

type jsonReader struct {
	decoder *jsontext.Decoder
	data    []byte
	lines   []int // offsets at which lines start, but for the first
}

// position returns the line and the column, in characters, of a byte offset.
func (j *jsonReader) position(offset int64) (line, column int) {
	at := min(int(offset), len(j.data))
	line = sort.SearchInts(j.lines, at+1)
	start := 0
	if line > 0 {
		start = j.lines[line-1]
	}
	return line + 1, utf8.RuneCount(j.data[start:at]) + 1
}

// next reads one token and makes a node of it.
func (j *jsonReader) next() (jsontext.Token, *yaml.Node, error) {
	before := j.decoder.InputOffset()
	token, err := j.decoder.ReadToken()
	if err != nil {
		return token, nil, err
	}
	// The token starts at the first byte that is neither blank nor punctuation.
	for int(before) < len(j.data) && bytes.IndexByte([]byte(" \t\r\n,:"), j.data[before]) >= 0 {
		before++
	}
	n := &yaml.Node{}
	n.Line, n.Column = j.position(before)
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
			if plainInt.MatchString(n.Value) {
				n.Tag = "!!int"
			}
		case 't', 'f':
			n.Tag = "!!bool"
		case 'n':
			n.Tag = "!!null"
		}
	}
	return token, n, nil
}

func (j *jsonReader) value() (*yaml.Node, error) {
	_, n, err := j.next()
	if err != nil || n.Kind == yaml.ScalarNode {
		return n, err
	}
	for {
		if k := j.decoder.PeekKind(); k == '}' || k == ']' {
			_, err := j.decoder.ReadToken()
			return n, err
		}
		if n.Kind == yaml.MappingNode {
			_, key, err := j.next()
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
