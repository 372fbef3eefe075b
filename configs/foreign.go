package configs

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxForeign bounds a foreign document, with each alias counted as what it stands
// for.
const maxForeign = 4_000_000

// readForeign reads a document of somebody else's, JSON if it starts with a brace
// and YAML otherwise, as strictly as their standards: there may be anchors and
// aliases and keys that look like numbers, and there is no end line. Keys that
// stand twice, merge keys, tags, and a second document are refused.
func readForeign(r *report, file string, data []byte) (node, bool) {
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return readJSON(r, file, data)
	}
	for _, check := range []func(string, []byte) *Fault{checkUTF8, checkControls} {
		if f := check(file, data); f != nil {
			r.add(f)
			return node{}, false
		}
	}
	root, ok := parseYAML(r, file, data)
	left := maxForeign
	return root, ok && root.settle(0, &left)
}

// settle puts what aliases stand for in their place, writes keys, booleans and
// nulls in one way, and tells whether nothing is left that has no one meaning.
func (n node) settle(depth int, left *int) bool {
	*left--
	switch {
	case depth > maxNesting:
		return n.fail("found nesting deeper than %d levels, or an alias inside of what it stands for; expected less", maxNesting)
	case *left < 0:
		return n.fail("found more than %d values, with each alias counted as what it stands for; expected less", maxForeign)
	case n.Style&yaml.TaggedStyle != 0 || n.Tag == "!":
		return n.fail("found a tag; expected the value without one, in quotes if it starts with !")
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
	seen := map[string]node{}
	for i, c := range n.Content {
		if c.Kind == yaml.AliasNode && c.Alias != nil {
			n.Content[i] = c.Alias
		}
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if !n.with(c).settleKey(seen) {
				return false
			}
			continue
		}
		if !n.with(n.Content[i]).settle(depth+1, left) {
			return false
		}
	}
	return true
}

// settleKey makes a key a string.
func (n node) settleKey(seen map[string]node) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		return n.fail("found an alias as a key; expected the key itself")
	case n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null":
		return n.fail("found %s as a key; expected a string", n.what())
	case n.ShortTag() == "!!merge":
		return n.fail("found the merge key %s; expected the members themselves", n.excerpt())
	case n.Style&yaml.TaggedStyle != 0:
		return n.fail("found a tag; expected the key without one")
	}
	n.Tag = "!!str"
	if first, twice := seen[n.Value]; twice {
		return n.fail("found the key %s again; expected it once (it stands at line %d already)", n.excerpt(), first.Line)
	}
	seen[n.Value] = n
	return true
}
