package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// endLine is the last line of every complete configuration file.
const endLine = "# end"

// maxNesting bounds the depth of a configuration file.
const maxNesting = 200

// readYAML reads one strict YAML document: complete, UTF-8, a single document
// without anchors, aliases, merge keys, tags, or keys that stand twice or are
// not strings. It returns the node under the document.
func readYAML(r *report, file string, data []byte) (node, bool) {
	if f := checkText(file, data); f != nil {
		r.add(f)
		return node{}, false
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			r.add(&Fault{File: file, Line: 1, Message: "the file holds nothing but comments; expected a mapping"})
		} else {
			r.add(syntaxFault(file, err))
		}
		return node{}, false
	}
	var second yaml.Node
	if err := decoder.Decode(&second); err == nil {
		r.add(&Fault{File: file, Line: second.Line, Column: second.Column, Message: "found a second document; expected one document in a file"})
		return node{}, false
	} else if !errors.Is(err, io.EOF) {
		r.add(syntaxFault(file, err))
		return node{}, false
	}
	root := node{report: r, file: file, Node: document.Content[0]}
	return root, root.clean(0)
}

// checkText holds what every configuration file must be before it is read.
func checkText(file string, data []byte) *Fault {
	if bytes.HasPrefix(data, []byte("\ufeff")) {
		return &Fault{File: file, Line: 1, Column: 1, Message: "found a byte order mark; expected plain UTF-8"}
	}
	if !utf8.Valid(data) {
		line := 1
		for rest := data; ; line++ {
			row, after, _ := bytes.Cut(rest, []byte("\n"))
			if !utf8.Valid(row) {
				break
			}
			rest = after
		}
		return &Fault{File: file, Line: line, Message: "found bytes that are not UTF-8; expected plain UTF-8"}
	}
	return checkEnd(file, data)
}

// checkEnd refuses a file whose last line is not the end line: it may have been
// saved halfway.
func checkEnd(file string, data []byte) *Fault {
	text := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	last := text[strings.LastIndexByte(text, '\n')+1:]
	if last == endLine {
		return nil
	}
	line := strings.Count(text, "\n") + 1
	return &Fault{File: file, Line: line, Message: fmt.Sprintf("the file does not end with the line %q, so it may be incomplete; expected it as the last line", endLine)}
}

// syntaxFault translates an error of the YAML reader.
func syntaxFault(file string, err error) *Fault {
	var load *yaml.LoadError
	if errors.As(err, &load) {
		message := load.Message
		if load.ContextMsg != "" {
			message = load.ContextMsg + ": " + message
		}
		return &Fault{File: file, Line: load.Mark.Line, Column: load.Mark.Column, Message: "not YAML: " + message}
	}
	return &Fault{File: file, Message: "not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
}

// clean reports what strict YAML does not allow anywhere, and tells whether
// there was nothing of it.
func (n node) clean(depth int) bool {
	if depth > maxNesting {
		return n.fail("nested deeper than %d levels", maxNesting)
	}
	if n.Anchor != "" || n.Kind == yaml.AliasNode {
		return n.fail("found an anchor or alias; expected the value itself")
	}
	if n.Style&yaml.TaggedStyle != 0 {
		return n.fail("found the tag %s; expected a plain value", n.Tag)
	}
	ok := true
	if n.Kind == yaml.MappingNode {
		seen := map[string]node{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.with(n.Content[i])
			if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
				ok = key.fail("found the key %s, which is %s; expected a string (put it in quotes)", key.excerpt(), key.what())
				continue
			}
			if first, twice := seen[key.Value]; twice {
				ok = key.fail("the key %q stands twice; it stands at line %d already", key.Value, first.Line)
			}
			seen[key.Value] = key
		}
	}
	for _, c := range n.Content {
		ok = n.with(c).clean(depth+1) && ok
	}
	return ok
}
