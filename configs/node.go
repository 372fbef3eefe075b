package configs

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// node is one value of a file that clean has passed, with its place. Its
// methods read it as one type, and report what else it is.
type node struct {
	*yaml.Node
	report *report
	file   string
}

func (n node) with(other *yaml.Node) node { return node{Node: other, report: n.report, file: n.file} }

// fail reports a fault at the node. It returns false, so that a reader can end
// with it.
func (n node) fail(format string, args ...any) bool {
	n.report.add(&Fault{File: n.file, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)})
	return false
}

func (n node) warn(format string, args ...any) {
	n.report.warnings = append(n.report.warnings, &Fault{File: n.file, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)})
}

// what names the type of a value, for messages.
func (n node) what() string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!int":
		return "a whole number"
	case "!!float":
		return "a number"
	case "!!bool":
		return "a boolean"
	case "!!null":
		return "nothing"
	case "!!merge":
		return "a merge key"
	}
	return "a string"
}

// excerpt shows a scalar, cut when long.
func (n node) excerpt() string {
	if n.Kind != yaml.ScalarNode {
		return "that"
	}
	v := n.Value
	if len(v) > 40 {
		v = strings.ToValidUTF8(v[:40], "") + "…"
	}
	return strconv.Quote(v)
}

// found names a value with what it is, for messages; nothing may be read so that
// can hold a secret.
func (n node) found() string {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return n.what()
	}
	kind := strings.TrimPrefix(n.what(), "a ")
	if n.isString() {
		return "the string " + n.excerpt()
	}
	return "the " + kind + " " + strings.Trim(n.excerpt(), `"`)
}

// field is one key that a mapping may have.
type field struct {
	key  string
	read func(node)
}

// object reads a mapping of known keys. It reports every other key.
func (n node) object(fields ...field) {
	if n.Kind != yaml.MappingNode {
		n.fail("found %s; expected a mapping with %s", n.what(), names(fields))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.with(n.Content[i]), n.with(n.Content[i+1])
		at := slices.IndexFunc(fields, func(f field) bool { return f.key == key.Value })
		if at >= 0 {
			fields[at].read(value)
			continue
		}
		hint := ""
		if near := nearest(key.Value, keys(fields)); near != "" {
			hint = fmt.Sprintf(" (did you mean %q?)", near)
		}
		key.fail("found the unknown key %s%s; expected %s", key.excerpt(), hint, strings.Replace(names(fields), "the keys", "one of the keys", 1))
	}
}

func keys(fields []field) []string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.key
	}
	return all
}

// names lists the keys that may stand, for messages.
func names(fields []field) string {
	if len(fields) == 1 {
		return "the key " + fields[0].key
	}
	return "the keys " + strings.Join(keys(fields), ", ")
}

// members reads a mapping whose keys are the operator's own.
func (n node) members(of string, read func(key, value node)) {
	if n.Kind != yaml.MappingNode {
		n.fail("found %s; expected a mapping of %s", n.what(), of)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		read(n.with(n.Content[i]), n.with(n.Content[i+1]))
	}
}

// list reads a sequence.
func (n node) list(of string, read func(i int, item node)) {
	if n.Kind != yaml.SequenceNode {
		n.fail("found %s; expected a list of %s", n.what(), of)
		return
	}
	for i, c := range n.Content {
		read(i, n.with(c))
	}
}

func (n node) isString() bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	tag := n.ShortTag()
	return tag == "!!str" || tag == "!!timestamp" // a date is a string here
}

// text reads a string that is not empty.
func (n node) text(of string, into *string) {
	if !n.isString() {
		n.fail("found %s; expected a string: %s", n.what(), of)
		return
	}
	if n.Value == "" {
		n.fail("found an empty string; expected one with text: %s", of)
		return
	}
	*into = n.Value
}

// texts reads a list of strings that are not empty.
func (n node) texts(of string, into *[]string) {
	n.list(of, func(_ int, item node) {
		var s string
		item.text("one of the "+of, &s)
		*into = append(*into, s)
	})
}

// choice reads one of a few words.
func (n node) choice(of string, words []string, into *string) {
	if !n.isString() || !slices.Contains(words, n.Value) {
		n.fail("found %s; expected %s: %s", n.found(), either(words), of)
		return
	}
	*into = n.Value
}

// either lists words of which one is expected.
func either(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	last := len(quoted) - 1
	if last == 0 {
		return quoted[0]
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// plainInt is a whole number as JSON writes it: no octal, no underscores.
var plainInt = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// whole reads a whole number within bounds.
func (n node) whole(of string, low, high int64, into *int64) {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || !plainInt.MatchString(n.Value) || err != nil || v < low || v > high {
		n.fail("found %s; expected a whole number from %d to %d: %s", n.found(), low, high, of)
		return
	}
	*into = v
}

// flag reads a boolean.
func (n node) flag(of string, into *bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Value != "true" && n.Value != "false" {
		n.fail("found %s; expected true or false: %s", n.found(), of)
		return
	}
	*into = n.Value == "true"
}

// duration reads a Go duration such as 250ms or 10s.
func (n node) duration(of string, into *time.Duration) {
	d, err := time.ParseDuration(n.Value)
	if !n.isString() || err != nil || d <= 0 {
		n.fail("found %s; expected a duration such as 250ms or 10s: %s", n.found(), of)
		return
	}
	*into = d
}

// plainNumber is a number as JSON writes it.
var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// json translates the node to JSON, with keys in their order and numbers digit
// by digit. It reports what JSON cannot say.
func (n node) json() (json.RawMessage, bool) {
	var b strings.Builder
	ok := n.writeJSON(&b)
	return json.RawMessage(b.String()), ok
}

func (n node) writeJSON(b *strings.Builder) bool {
	ok := true
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(b, n.Content[i].Value)
			b.WriteByte(':')
			ok = n.with(n.Content[i+1]).writeJSON(b) && ok
		}
		b.WriteByte('}')
		return ok
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			ok = n.with(c).writeJSON(b) && ok
		}
		b.WriteByte(']')
		return ok
	}
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		writeString(b, n.Value)
		return true
	case "!!int", "!!float":
		if !plainNumber.MatchString(n.Value) {
			return n.fail("found %s; expected a number as JSON writes it, or a string in quotes", n.found())
		}
		b.WriteString(n.Value)
		return true
	case "!!bool":
		if n.Value != "true" && n.Value != "false" {
			return n.fail("found %s; expected true or false, or a string in quotes", n.found())
		}
		b.WriteString(n.Value)
		return true
	case "!!null":
		if n.Value != "null" && n.Value != "~" {
			return n.fail("found nothing after the key; expected a value, or null")
		}
		b.WriteString("null")
		return true
	}
	return n.fail("found %s; expected a plain value", n.excerpt())
}

func writeString(b *strings.Builder, s string) {
	quoted, _ := json.Marshal(s) // a string cannot fail
	b.Write(quoted)
}

// at follows a JSON Pointer as far as it leads, and returns the key of the last
// member reached, or the element.
func (n node) at(pointer string) node {
	found := n
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		next, value, ok := n.child(strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"))
		if !ok {
			break
		}
		found, n = next, value
	}
	return found
}

// child returns the key and the value of a member, or an element twice.
func (n node) child(token string) (key, value node, ok bool) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == token {
				return n.with(n.Content[i]), n.with(n.Content[i+1]), true
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(n.Content) {
			return n.with(n.Content[i]), n.with(n.Content[i]), true
		}
	}
	return node{}, node{}, false
}

// states tells whether a mapping has a member.
func (n node) states(key string) bool {
	_, _, stated := n.child(key)
	return stated
}
