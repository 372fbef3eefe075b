package document

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/similar"
	"github.com/callgate/callgate/refusal"
)

// Node is one value of a file that checkStrict has passed, with its place. Its
// methods read it as one type, and report what else it is.
type Node struct {
	*yaml.Node
	Report *Report
	File   string
	root   *yaml.Node // of the file
}

// With returns another node of the same file, which reports to the same place.
func (n Node) With(other *yaml.Node) Node {
	return Node{Node: other, Report: n.Report, File: n.File, root: n.root}
}

// Fail reports a fault at the node. It returns false, so that a reader can end
// with it.
func (n Node) Fail(format string, args ...any) bool {
	n.Report.Add(n.Fault(format, args...))
	return false
}

// Warn reports a warning at the node; the file loads.
func (n Node) Warn(format string, args ...any) {
	n.Report.Warnings = append(n.Report.Warnings, n.Fault(format, args...))
}

// Fault is a fault at the node, which is not reported yet.
func (n Node) Fault(format string, args ...any) *Fault {
	return &Fault{File: n.File, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...), node: n.Node, root: n.root}
}

// TypeName names the type of a value, for messages.
func (n Node) TypeName() string {
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

// Excerpt shows a scalar, cut when long.
func (n Node) Excerpt() string {
	if n.Kind != yaml.ScalarNode {
		return "that"
	}
	v := n.Value
	if len(v) > 40 {
		v = strings.ToValidUTF8(v[:40], "") + "…"
	}
	return strconv.Quote(v)
}

// Describe returns a value with its type, for messages. Do not use it for a value that can
// hold a secret.
func (n Node) Describe() string {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return n.TypeName()
	}
	kind := strings.TrimPrefix(n.TypeName(), "a ")
	if n.IsString() {
		return "the string " + n.Excerpt()
	}
	return "the " + kind + " " + strings.Trim(n.Excerpt(), `"`)
}

// Object reads a mapping of known keys, and reports every other key. It returns
// whether nothing was reported meanwhile.
func (n Node) Object(fields ...FieldReader) bool {
	if n.tellObject(fields) {
		return n.IsMapping()
	}
	before := n.Report.Count()
	if !n.IsMapping() {
		return n.Fail("found %s; expected a mapping with %s", n.TypeName(), keyNames(fields))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.With(n.Content[i]), n.With(n.Content[i+1])
		at := slices.IndexFunc(fields, func(f FieldReader) bool { return f.key == key.Value })
		if at < 0 {
			key.failUnknown(fields)
			continue
		}
		fields[at].read(value)
	}
	return n.Report.Count() == before
}

// failUnknown reports a key that none of fields has.
func (n Node) failUnknown(fields []FieldReader) {
	n.Fail("found the unknown key %s%s; expected %s", n.Excerpt(), similar.DidYouMean(n.Value, keysOf(fields)),
		strings.Replace(keyNames(fields), "the keys", "one of the keys", 1))
}

func keysOf(fields []FieldReader) []string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.key
	}
	return all
}

// keyNames lists the keys that a mapping may have, for messages.
func keyNames(fields []FieldReader) string {
	keys := keysOf(fields)
	if len(keys) == 1 {
		return "the key " + keys[0]
	}
	return "the keys " + strings.Join(keys, ", ")
}

// Members reads a mapping whose keys are the operator's own.
func (n Node) Members(of string, read func(key, value Node)) {
	if n.tellMembers(of, read) {
		return
	}
	if !n.IsMapping() {
		n.Fail("found %s; expected a mapping of %s", n.TypeName(), of)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		read(n.With(n.Content[i]), n.With(n.Content[i+1]))
	}
}

// List reads a sequence.
func (n Node) List(of string, read func(i int, item Node)) {
	if n.tellList(of, read) {
		return
	}
	if !n.IsList() {
		n.Fail("found %s; expected a list of %s", n.TypeName(), of)
		return
	}
	for i, c := range n.Content {
		read(i, n.With(c))
	}
}

// IsMapping reports whether the node is a mapping.
func (n Node) IsMapping() bool { return n.Kind == yaml.MappingNode }

// IsList reports whether the node is a list.
func (n Node) IsList() bool { return n.Kind == yaml.SequenceNode }

// IsString reports whether the node is a string. A date is one here.
func (n Node) IsString() bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	tag := n.ShortTag()
	return tag == "!!str" || tag == "!!timestamp" // a date is a string here
}

// Text reads a string that is not empty, and returns whether it is one.
func (n Node) Text(of string, into *string) bool {
	if n.tell("string", of, func(s *Schema) { s.MinLength, s.Default = 1, textDefault(*into) }) {
		return false
	}
	if !n.IsString() {
		return n.Fail("found %s; expected a string: %s", n.TypeName(), of)
	}
	if n.Value == "" {
		return n.Fail("found an empty string; expected one with text: %s", of)
	}
	*into = n.Value
	return true
}

// label is a short name.
var label = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// Label reads a short name of letters, digits, _ and -.
func (n Node) Label(of string, into *string) {
	n.Matching(of, label.String())
	if !n.IsString() || !label.MatchString(n.Value) {
		n.Fail("found %s; expected letters, digits, _ and -, at most 32: %s", n.Describe(), of)
		return
	}
	*into = n.Value
}

// Texts reads a list of strings that are not empty.
func (n Node) Texts(of string, into *[]string) {
	n.List(of, func(_ int, item Node) {
		var s string
		item.Text("one of the "+of, &s)
		*into = append(*into, s)
	})
}

// ReadChoice reads one of a few words.
func ReadChoice[W ~string](n Node, of string, into *W, words ...W) {
	if n.tell("string", of, func(s *Schema) {
		for _, w := range words {
			s.Enum = append(s.Enum, string(w))
		}
		s.Default = textDefault(string(*into))
	}) {
		return
	}
	if !n.IsString() || !slices.Contains(words, W(n.Value)) {
		n.Fail("found %s; expected %s: %s", n.Describe(), either(words), of)
		return
	}
	*into = W(n.Value)
}

// either lists words of which one is expected.
func either[W ~string](words []W) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(string(w))
	}
	last := len(quoted) - 1
	if last == 0 {
		return quoted[0]
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// jsonInteger is a whole number as JSON writes it: no octal, no underscores.
var jsonInteger = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// ReadInt reads a whole number within bounds.
func ReadInt[T int | int64](n Node, of string, low, high int64, into *T) {
	if n.tell("integer", of, func(s *Schema) {
		s.Minimum, s.Maximum = &low, &high
		if current := int64(*into); current >= low && current <= high && current != 0 {
			s.Default = current
		}
	}) {
		return
	}
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || !jsonInteger.MatchString(n.Value) || err != nil || v < low || v > high {
		found := n.Describe()
		if n.ShortTag() == "!!int" && !jsonInteger.MatchString(n.Value) {
			found += ", which is not in plain decimal digits" // 010 is 8 to one reader and 10 to another
		}
		n.Fail("found %s; expected a whole number from %d to %d: %s", found, low, high, of)
		return
	}
	*into = T(v)
}

// Bool reads a boolean.
func (n Node) Bool(of string, into *bool) {
	if n.tell("boolean", of, func(s *Schema) { s.Default = *into }) {
		return
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Value != "true" && n.Value != "false" {
		n.Fail("found %s; expected true or false: %s", n.Describe(), of)
		return
	}
	*into = n.Value == "true"
}

// Duration reads a duration above zero.
func (n Node) Duration(of string, into *time.Duration) {
	if n.tell("string", of, func(s *Schema) { s.Pattern, s.Default = duration.Positive, durationDefault(*into) }) {
		return
	}
	d, ok := duration.Read(n.Value)
	if !n.IsString() || !ok || d <= 0 {
		expected := duration.Expected
		if ok && d <= 0 {
			expected = "a duration above zero"
		}
		n.Fail("found %s; expected %s: %s", n.Describe(), expected, of)
		return
	}
	*into = d
}

// At follows a JSON Pointer as far as it leads, and returns the key of the last
// member reached, or the element.
func (n Node) At(pointer string) Node {
	at, _, _ := n.follow(pointer)
	return at
}

// Resolve returns the value that a JSON Pointer leads to.
func (n Node) Resolve(pointer string) (value Node, ok bool) {
	_, value, ok = n.follow(pointer)
	return value, ok
}

// follow follows a JSON Pointer as far as it leads. at is the key of value.
func (n Node) follow(pointer string) (at, value Node, ok bool) {
	at, value = n, n
	if pointer == "" {
		return at, value, true
	}
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		next, child, ok := value.Child(refusal.UnescapePointer(token))
		if !ok {
			return at, value, false
		}
		at, value = next, child
	}
	return at, value, true
}

// Child returns the key and the value of a member, or an element twice.
func (n Node) Child(token string) (key, value Node, ok bool) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == token {
				return n.With(n.Content[i]), n.With(n.Content[i+1]), true
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(n.Content) {
			return n.With(n.Content[i]), n.With(n.Content[i]), true
		}
	}
	return Node{}, Node{}, false
}

// StringAt returns the member that is a string, or "".
func (n Node) StringAt(key string) string {
	if s, _ := n.described(yaml.MappingNode); s != nil {
		n.Report.describing.discriminators[n.Node] = key
	}
	if _, value, ok := n.Child(key); ok && value.IsString() {
		return value.Value
	}
	return ""
}

// SetText makes a member of a mapping this string, or adds it.
func (n Node) SetText(key, value string) {
	text := func(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i+1] = text(value)
			return
		}
	}
	n.Content = append(n.Content, text(key), text(value))
}

// Has reports whether a mapping has a member.
func (n Node) Has(key string) bool {
	_, _, stated := n.Child(key)
	return stated
}

// durationOrZero reads a duration that may be zero.
func (n Node) durationOrZero(of string, into *time.Duration) {
	if n.tell("string", of, func(s *Schema) { s.Pattern, s.Default = duration.NotNegative, durationDefault(*into) }) {
		return
	}
	if d, ok := duration.Read(n.Value); n.IsString() && ok && d == 0 {
		*into = 0
		return
	}
	n.Duration(of, into)
}

// ratio reads a number from 0 to 1.
func (n Node) ratio(of string, into *float64) {
	if n.tell("number", "the share "+of, func(s *Schema) {
		low, high := int64(0), int64(1)
		s.Minimum, s.Maximum, s.Default = &low, &high, *into
	}) {
		return
	}
	f, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || !jsonNumber.MatchString(n.Value) || n.IsString() || err != nil || f < 0 || f > 1 {
		n.Fail("found %s; expected a number from 0 to 1: the share %s", n.Describe(), of)
		return
	}
	*into = f
}

// ResolvePath is a path as it stands in the node's file: a relative one starts there.
func (n Node) ResolvePath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(n.File), path)
}
