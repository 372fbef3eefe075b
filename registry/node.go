package registry

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// node is one compiled schema. A tree of nodes is immutable once built; only
// ref may lead back up.
type node struct {
	never bool // accepts nothing: the schema false
	empty bool // asserts nothing at all

	types    typeSet // 0: any
	allowed  *values // enum
	alone    bool    // enum is not shown to the second judge
	constant *values // const

	minimum, maximum, above, below, multiple *decimal

	minLength, maxLength int // maxLength -1: none
	pattern              *pattern
	format               *format

	minItems, maxItems       int // maxItems -1: none
	unique                   bool
	prefix                   []*node
	items                    *node
	contains                 *node
	minContains, maxContains int // maxContains -1: none

	minProperties, maxProperties int // maxProperties -1: none
	required                     []string
	properties                   map[string]*node
	propertyNames                []string // of properties, sorted
	patterns                     []patternNode
	others                       *node // additionalProperties
	names                        *node // propertyNames
	needs                        []dependency
	dependents                   []dependent

	ref                 *node
	all, any, one       []*node
	not                 *node
	cond, then, other   *node
	restProps, restList *node // unevaluatedProperties, unevaluatedItems

	boundary string
	secret   bool

	marks burden
}

type patternNode struct {
	*pattern
	node *node
}

// pattern is a regular expression with what one byte can cost it.
type pattern struct {
	source string
	expr   *regexp.Regexp
	size   int
}

type dependency struct {
	name  string
	needs []string
}

type dependent struct {
	name string
	node *node
}

const (
	boundaryKey = "x-boundary"
	secretKey   = "x-secret"
	// ownEnumKey stands for enum in what the judges see where the first judge
	// alone compares: the second would compare with one value after another.
	ownEnumKey = "x-enum"
)

// maxSharedEnum is the number of values up to which both judges compare.
const maxSharedEnum = 32

// longList tells whether an enum is too long for both judges. Arrays and objects
// are always compared by both.
func longList(value any) bool {
	list, _ := value.([]any)
	return len(list) > maxSharedEnum && !slices.ContainsFunc(list, func(v any) bool {
		switch v.(type) {
		case []any, map[string]any:
			return true
		}
		return false
	})
}

// compiler turns a bundle into nodes. It reports by panicking with a fault
// that compile recovers: a bundle of a linted definition has none.
type compiler struct {
	defs  map[string]any
	built map[string]*node
}

// compile builds the nodes of a bundle.
func compile(bundle any) (root *node, f *fault) {
	defer func() {
		if r := recover(); r != nil {
			stopped, ok := r.(fault)
			if !ok {
				stopped = fault{"", "found what cannot be compiled; expected a schema that its metaschema allows"}
			}
			root, f = nil, &stopped
		}
	}()
	c := &compiler{built: map[string]*node{}}
	if object, ok := bundle.(map[string]any); ok {
		c.defs, _ = object["$defs"].(map[string]any)
	}
	return c.build(bundle, new(node)), nil
}

func (c *compiler) schema(v any) *node { return c.build(v, new(node)) }

func (c *compiler) build(v any, n *node) *node {
	object, ok := v.(map[string]any)
	if !ok {
		n.never = v != true
		n.empty = v == true
		return n
	}
	n.maxLength, n.maxItems, n.maxContains, n.maxProperties, n.minContains = -1, -1, -1, -1, 1
	for name, value := range object {
		c.keyword(n, name, value)
	}
	n.propertyNames = sortedKeys(n.properties)
	slices.SortFunc(n.patterns, func(a, b patternNode) int { return strings.Compare(a.source, b.source) })
	slices.SortFunc(n.needs, func(a, b dependency) int { return strings.Compare(a.name, b.name) })
	slices.SortFunc(n.dependents, func(a, b dependent) int { return strings.Compare(a.name, b.name) })
	if n.cond == nil {
		n.then, n.other = nil, nil
	}
	if !n.branching() {
		// Nothing beside this schema can have judged a member or an item, so
		// that the rest is known without asking.
		if n.others == nil {
			n.others, n.restProps = n.restProps, nil
		}
		if n.items == nil && n.contains == nil {
			n.items, n.restList = n.restList, nil
		}
	}
	n.empty = len(object) == 0
	return n
}

// branching tells that other schemas judge the same value and may mark parts
// of it as judged.
func (n *node) branching() bool {
	return n.ref != nil || len(n.all)+len(n.any)+len(n.one)+len(n.dependents) > 0 || n.cond != nil
}

func (c *compiler) keyword(n *node, name string, value any) {
	switch name {
	case "$ref":
		n.ref = c.def(strings.TrimPrefix(value.(string), "#/$defs/"))
	case "allOf":
		n.all = c.list(value)
	case "anyOf":
		n.any = c.list(value)
	case "oneOf":
		n.one = c.list(value)
	case "not":
		n.not = c.schema(value)
	case "if":
		n.cond = c.schema(value)
	case "then":
		n.then = c.schema(value)
	case "else":
		n.other = c.schema(value)
	case boundaryKey:
		n.boundary = value.(string)
	case secretKey:
		n.secret = value.(bool)
	case "enum", ownEnumKey:
		n.allowed = newValues(value.([]any))
		n.alone = name == ownEnumKey
	case "const":
		n.constant = newValues([]any{value})
	case "type":
		n.types = parseTypes(value)
	default:
		c.byType(n, name, value)
	}
}

func (c *compiler) byType(n *node, name string, value any) {
	switch name {
	case "minimum":
		n.minimum = number(value)
	case "maximum":
		n.maximum = number(value)
	case "exclusiveMinimum":
		n.above = number(value)
	case "exclusiveMaximum":
		n.below = number(value)
	case "multipleOf":
		n.multiple = number(value)
	case "minLength":
		n.minLength = count(value)
	case "maxLength":
		n.maxLength = count(value)
	case "pattern":
		n.pattern = newPattern(value.(string))
	case "format":
		n.format = formatNamed(value.(string))
	case "minItems":
		n.minItems = count(value)
	case "maxItems":
		n.maxItems = count(value)
	case "uniqueItems":
		n.unique = value.(bool)
	case "prefixItems":
		n.prefix = c.list(value)
	case "items":
		n.items = c.schema(value)
	case "contains":
		n.contains = c.schema(value)
	case "minContains":
		n.minContains = count(value)
	case "maxContains":
		n.maxContains = count(value)
	case "unevaluatedItems":
		n.restList = c.schema(value)
	default:
		c.byMember(n, name, value)
	}
}

func (c *compiler) byMember(n *node, name string, value any) {
	switch name {
	case "minProperties":
		n.minProperties = count(value)
	case "maxProperties":
		n.maxProperties = count(value)
	case "required":
		n.required = texts(value)
	case "properties":
		members := value.(map[string]any)
		n.properties = make(map[string]*node, len(members))
		for k, v := range members {
			n.properties[k] = c.schema(v)
		}
	case "patternProperties":
		for k, v := range value.(map[string]any) {
			n.patterns = append(n.patterns, patternNode{newPattern(k), c.schema(v)})
		}
	case "additionalProperties":
		n.others = c.schema(value)
	case "propertyNames":
		n.names = c.schema(value)
	case "unevaluatedProperties":
		n.restProps = c.schema(value)
	case "dependentRequired":
		for k, v := range value.(map[string]any) {
			n.needs = append(n.needs, dependency{k, texts(v)})
		}
	case "dependentSchemas":
		for k, v := range value.(map[string]any) {
			n.dependents = append(n.dependents, dependent{k, c.schema(v)})
		}
	case "$defs":
	default:
		panic(fault{"", "found " + quote(name) + ", which no judge knows"})
	}
}

// def returns the node of a copy. It is entered before it is built, so that
// what it holds may refer to it.
func (c *compiler) def(name string) *node {
	n, ok := c.built[name]
	if !ok {
		v, known := c.defs[name]
		if !known {
			panic(fault{"", "found a reference that leads nowhere"})
		}
		n = new(node)
		c.built[name] = n
		c.build(v, n)
	}
	return n
}

func (c *compiler) list(value any) []*node {
	var nodes []*node
	for _, v := range value.([]any) {
		nodes = append(nodes, c.schema(v))
	}
	return nodes
}

func number(value any) *decimal {
	d, ok := numberOf(value)
	if !ok {
		panic(fault{"", "found a number out of range"})
	}
	return &d
}

// unbounded stands for counts beyond what any value can have.
const unbounded = 1 << 40

func count(value any) int {
	d := *number(value)
	if !d.integer() || d.neg {
		panic(fault{"", fmt.Sprintf("found %s; expected a count", value.(json.Number))})
	}
	if len(d.digits)+d.exp > 12 {
		return unbounded
	}
	n := 0
	for i := range len(d.digits) {
		n = n*10 + int(d.digits[i]-'0')
	}
	for range d.exp {
		n *= 10
	}
	return n
}

func texts(value any) []string {
	var list []string
	for _, v := range value.([]any) {
		list = append(list, v.(string))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func newPattern(source string) *pattern {
	return &pattern{source: source, expr: regexp.MustCompile(source), size: patternSize(source)}
}
