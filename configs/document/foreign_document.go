package document

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxExternalValues bounds the values of a foreign document. Each alias counts as the
// values it refers to.
const maxExternalValues = 4_000_000

// ReadExternal reads a foreign document, JSON if it starts with a brace and YAML otherwise,
// as strictly as their standards: anchors, aliases and keys that look like numbers are
// allowed, and no end line is required. Keys that stand twice, merge keys, tags, and a
// second document are refused.
func ReadExternal(r *Report, file string, data []byte) (Node, bool) {
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return ReadJSON(r, file, data)
	}
	for _, check := range []func(string, []byte) *Fault{checkUTF8, checkControls} {
		if f := check(file, data); f != nil {
			return r.refuse(f)
		}
	}
	root, ok := parseYAML(r, file, data)
	left := maxExternalValues
	return root, ok && root.normalize(0, &left)
}

// normalize replaces aliases by their values, writes keys, booleans and nulls in one way,
// and reports whether every value left has exactly one meaning.
func (n Node) normalize(depth int, left *int) bool {
	*left--
	switch {
	case depth > MaxNesting:
		return n.Fail("found nesting deeper than %d levels, or an alias inside of what it stands for; expected less", MaxNesting)
	case *left < 0:
		return n.Fail("found more than %d values, with each alias counted as what it stands for; expected less", maxExternalValues)
	case n.Style&yaml.TaggedStyle != 0 || n.Tag == "!":
		return n.Fail("found a tag; expected the value without one, in quotes if it starts with !")
	}
	if n.Kind == yaml.ScalarNode {
		switch n.ShortTag() {
		case "!!bool":
			n.Value = strings.ToLower(n.Value)
		case "!!null":
			n.Value = "null"
		case "!!timestamp":
			n.Tag, n.Style = "!!str", yaml.DoubleQuotedStyle
		}
		return true
	}
	seen := map[string]Node{}
	for i, c := range n.Content {
		if c.Kind == yaml.AliasNode && c.Alias != nil {
			n.Content[i] = c.Alias
		}
		if n.IsMapping() && i%2 == 0 {
			if !n.With(c).normalizeKey(seen) {
				return false
			}
			continue
		}
		if !n.With(n.Content[i]).normalize(depth+1, left) {
			return false
		}
	}
	return true
}

// normalizeKey makes a key a string.
func (n Node) normalizeKey(seen map[string]Node) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		return n.Fail("found an alias as a key; expected the key itself")
	case n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null":
		return n.Fail("found %s as a key; expected a string", n.TypeName())
	case n.ShortTag() == "!!merge":
		return n.Fail("found the merge key %s; expected the members themselves", n.Excerpt())
	case n.Style&yaml.TaggedStyle != 0:
		return n.Fail("found a tag; expected the key without one")
	}
	n.Tag = "!!str"
	if first, twice := seen[n.Value]; twice {
		return n.Fail("found the key %s again; expected it once (it stands at line %d already)", n.Excerpt(), first.Line)
	}
	seen[n.Value] = n
	return true
}
