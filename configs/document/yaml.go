package document

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// EndLine is the last line of every complete configuration file.
const EndLine = "# end"

// MaxNesting bounds the depth of a configuration file.
const MaxNesting = 200

// ReadYAML reads one strict YAML document: complete, UTF-8, a single document
// without directives, anchors, aliases, merge keys, tags, or keys that stand
// twice or are not strings. It returns the node under the document.
func ReadYAML(r *Report, file string, data []byte) (Node, bool) {
	if f := CheckText(file, data); f != nil {
		return r.refuse(f)
	}
	root, ok := parseYAML(r, file, data)
	return root, ok && root.checkStrict(0)
}

// parseYAML reads one document, and returns the node under it. Its content was not checked.
func parseYAML(r *Report, file string, data []byte) (Node, bool) {
	if f := checkDirectives(file, data); f != nil {
		return r.refuse(f)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return noKeys(r, file), true
		}
		return r.refuse(syntaxFault(file, data, err))
	}
	var second yaml.Node
	if err := decoder.Decode(&second); err == nil {
		return r.refuse(&Fault{File: file, Line: second.Line, Column: second.Column,
			Message: "found a second document; expected one document in a file"})
	} else if !errors.Is(err, io.EOF) {
		return r.refuse(syntaxFault(file, data, err))
	}
	root := Node{Report: r, File: file, Node: document.Content[0], root: document.Content[0]}
	if root.Kind == yaml.ScalarNode && root.Value == "" && root.Style == 0 && root.Anchor == "" {
		return noKeys(r, file), true
	}
	return root, true
}

// noKeys is the node of a file that has nothing but comments: a mapping without keys, of which some may be required.
func noKeys(r *Report, file string) Node {
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}
	return Node{Report: r, File: file, Node: root, root: root}
}

// CheckText checks the rules that every configuration file must meet before it is read.
func CheckText(file string, data []byte) *Fault {
	return cmp.Or(checkUTF8(file, data), checkControls(file, data), checkEnd(file, data))
}

// checkUTF8 refuses what is not UTF-8 without a byte order mark.
func checkUTF8(file string, data []byte) *Fault {
	if bytes.HasPrefix(data, []byte("\ufeff")) {
		return &Fault{File: file, Line: 1, Column: 1, Message: "found a byte order mark; expected plain UTF-8"}
	}
	if utf8.Valid(data) {
		return nil
	}
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return faultAt(file, data, at, "found bytes that are not UTF-8; expected plain UTF-8")
}

// checkControls refuses control characters, and with them the line ends that
// YAML knows and editors do not show: behind one of them, what looks like a
// comment is not.
func checkControls(file string, data []byte) *Fault {
	for at, r := range string(data) {
		switch {
		case r == '\t' || r == '\n':
		case r == '\r' && at+1 < len(data) && data[at+1] == '\n':
		case r == '\r':
			return faultAt(file, data, at, "found a carriage return alone; expected a line feed")
		case IsControl(r):
			return faultAt(file, data, at, fmt.Sprintf("found the character %U; expected text without control characters", r))
		}
	}
	return nil
}

// IsControl reports whether a character is a control character, a line end that editors do
// not treat as one, or no character at all.
func IsControl(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r&0xFFFE == 0xFFFE
}

// checkDirectives refuses lines by which a file would say how it is read.
func checkDirectives(file string, data []byte) *Fault {
	if !bytes.HasPrefix(data, []byte("%")) && !bytes.Contains(data, []byte("\n%")) {
		return nil
	}
	at := bytes.Index(append([]byte("\n"), data...), []byte("\n%"))
	return faultAt(file, data, at, "found a line that starts with %, a YAML directive; expected none")
}

// faultAt is a fault at a byte of a file.
func faultAt(file string, data []byte, at int, message string) *Fault {
	before := data[:at]
	start := bytes.LastIndexByte(before, '\n') + 1
	return &Fault{File: file, Line: bytes.Count(before, []byte("\n")) + 1, Column: utf8.RuneCount(before[start:]) + 1, Message: message}
}

// checkEnd refuses a file whose last line is not the end line: it may have been
// saved halfway. It never shows the line that it found: there may be a secret.
func checkEnd(file string, data []byte) *Fault {
	if len(data) == 0 {
		return &Fault{File: file, Message: fmt.Sprintf(
			"found an empty file; expected at least the line %q, the last of every complete file", EndLine)}
	}
	lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n"), "\n")
	last := lines[len(lines)-1]
	if last == EndLine {
		return nil
	}
	f := &Fault{File: file, Line: len(lines)}
	switch earlier := slices.Index(lines, EndLine); {
	case earlier >= 0:
		f.Line = earlier + 2
		what := "more"
		if strings.TrimSpace(strings.Join(lines[earlier+1:], "")) == "" {
			what = "an empty line"
		}
		f.Message = fmt.Sprintf("found %s after the line %q; expected it as the last line", what, EndLine)
	case strings.EqualFold(strings.Join(strings.Fields(last), ""), "#end"):
		f.Message = fmt.Sprintf("found %q; expected %q as the last line, spelled so", last, EndLine)
	default:
		f.Message = fmt.Sprintf("found the end of the file without the line %q, so it may be incomplete; expected that line as the last",
			EndLine)
	}
	return f
}

// syntaxFault translates an error of the YAML reader. It says where what is open
// begins, not where the file ends, and shows at most one character.
func syntaxFault(file string, data []byte, err error) *Fault {
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		return &Fault{File: file, Message: "found what is not YAML; expected YAML"}
	}
	at, start := load.Mark, load.ContextMark
	var message string
	switch reason := load.Message; {
	case reason == "found character that cannot start any token":
		message = "found " + characterAt(data, at.Line, at.Column) + ", which starts no value; expected a value, in quotes if it starts so"
		if strings.HasPrefix(message, "found a tab") {
			message = "found a tab; expected spaces"
		}
	case strings.HasPrefix(reason, "did not find expected ',' or"):
		message = "found a list or mapping that is not closed; expected a comma or its closing bracket"
		if lines := bytes.Count(data, []byte("\n")); at.Line > lines {
			at = start
		} else if start.Line > 0 {
			message += fmt.Sprintf(" (it opens at line %d, column %d)", start.Line, start.Column)
		}
	case reason == "found unexpected end of stream":
		message, at = "found a quote that is not closed; expected its closing quote", start
	case reason == "could not find expected ':'":
		message, at = "found a line that is no key and value; expected KEY: VALUE, with a space after the colon", start
	case reason == "mapping values are not allowed in this context":
		message = "found a second colon; expected one KEY: VALUE, with the value in quotes if it holds a colon"
	case strings.HasPrefix(reason, "did not find expected"):
		message = fmt.Sprintf("found %s, which does not belong here; expected the next key or element, indented like those before",
			characterAt(data, at.Line, at.Column))
	case strings.HasPrefix(reason, "unknown anchor"):
		message = "found a value that starts with *, which is an alias in YAML; expected the value itself, in quotes if it starts so"
	case strings.HasPrefix(load.ContextMsg, "while scanning a quoted"):
		message = "found an escape that YAML does not know; expected a known one, or the text in single quotes"
	default:
		message = "found what is not YAML (" + reason + "); expected YAML"
	}
	return &Fault{File: file, Line: at.Line, Column: at.Column, Message: message}
}

// characterAt names the character at a place; what follows it is not shown.
func characterAt(data []byte, line, column int) string {
	lines := bytes.Split(data, []byte("\n"))
	if line < 1 || line > len(lines) {
		return "the end of the file"
	}
	row := []rune(string(lines[line-1]))
	switch {
	case column < 1 || column > len(row):
		return "the end of the line"
	case row[column-1] == '\t':
		return "a tab"
	}
	return fmt.Sprintf("%q", string(row[column-1]))
}

// checkStrict reports what strict YAML does not allow anywhere, and reports whether
// there was nothing of it.
func (n Node) checkStrict(depth int) bool {
	if depth > MaxNesting {
		return n.Fail("found nesting deeper than %d levels; expected less", MaxNesting)
	}
	if n.Anchor != "" || n.Kind == yaml.AliasNode {
		return n.Fail("found an anchor or alias; expected the value itself")
	}
	if n.Style&yaml.TaggedStyle != 0 || n.Tag == "!" {
		return n.Fail("found a tag; expected the value without one, in quotes if it starts with !")
	}
	ok := true
	if n.IsMapping() {
		seen := map[string]Node{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.With(n.Content[i])
			switch {
			case key.Kind == yaml.AliasNode:
				continue
			case key.Kind != yaml.ScalarNode:
				ok = key.Fail("found %s as a key; expected a string", key.TypeName())
				continue
			case key.ShortTag() == "!!merge":
				ok = key.Fail("found the merge key %s; expected the members themselves", key.Excerpt())
				continue
			case key.ShortTag() != "!!str":
				ok = key.Fail("found %s as a key; expected a string: put it in quotes", key.Describe())
				continue
			}
			if first, twice := seen[key.Value]; twice {
				ok = key.Fail("found the key %s again; expected it once (it stands at line %d already)", key.Excerpt(), first.Line)
			}
			seen[key.Value] = key
		}
	}
	for _, c := range n.Content {
		ok = n.With(c).checkStrict(depth+1) && ok
	}
	return ok
}
