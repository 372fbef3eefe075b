package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/internal/decimal"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/registry/format"
)

// node is one compiled schema. A tree of nodes is immutable once built; only
// ref may lead back up.
type node struct {
	never bool // accepts nothing: the schema false
	empty bool // asserts nothing at all

	types          typeSet // 0: any
	enum, constant *valueSet

	minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf *decimal.Decimal

	minLength, maxLength int // maxLength -1: none
	pattern              *pattern
	format               *format.Format

	minItems, maxItems       int // maxItems -1: none
	uniqueItems              bool
	prefixItems              []*node
	items                    *node
	contains                 *node
	minContains, maxContains int // maxContains -1: none

	minProperties, maxProperties int // maxProperties -1: none
	required                     []string
	properties                   map[string]*node
	sortedProperties             []string // of properties, sorted
	patternProperties            []patternProperty
	additionalProperties         *node // additionalProperties
	propertyNames                *node // sortedProperties
	dependentRequired            []dependentRequired
	dependentSchemas             []dependentSchema

	ref                                     *node
	allOf, anyOf, oneOf                     []*node
	not                                     *node
	ifSchema, thenSchema, elseSchema        *node
	unevaluatedProperties, unevaluatedItems *node

	boundary string
	secret   bool

	id    int // in the title of its schema, by which the library names it
	notes int // see countNotes
}

type patternProperty struct {
	*pattern
	node *node
}

type dependentRequired struct {
	name     string
	required []string
}

type dependentSchema struct {
	name string
	node *node
}

// builder turns a bundle into nodes, and prepares the bundle for the library. It reports by
// panicking with a fault that buildNodes recovers: a bundle of a linted definition has none.
//
// The title of each schema becomes its index among the nodes: the library hands it out with its
// results. It is shown no count beyond 64 bits, which it would take for a negative one, and
// unevaluatedItems negated twice: it takes what a schema there has evaluated of an item for
// evaluated items of the list itself.
type builder struct {
	defs  map[string]any
	built map[string]*node
	nodes []*node
}

// buildNodes builds the nodes of a bundle, of which the first is the root's.
func buildNodes(bundle any) (nodes []*node, f *Fault) {
	defer func() {
		if r := recover(); r != nil {
			stopped, ok := r.(Fault)
			if !ok {
				stopped = Fault{"", "found a schema that cannot be compiled; expected a schema that its metaschema allows"}
			}
			nodes, f = nil, &stopped
		}
	}()
	c := &builder{built: map[string]*node{}}
	if object, ok := bundle.(map[string]any); ok {
		c.defs, _ = object["$defs"].(map[string]any)
	}
	c.build(bundle, new(node))
	return c.nodes, nil
}

func (c *builder) schema(v any) *node { return c.build(v, new(node)) }

func (c *builder) build(v any, n *node) *node {
	n.id = len(c.nodes)
	c.nodes = append(c.nodes, n)
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
	n.sortedProperties = slices.Sorted(maps.Keys(n.properties))
	slices.SortFunc(n.patternProperties, func(a, b patternProperty) int { return strings.Compare(a.source, b.source) })
	slices.SortFunc(n.dependentRequired, func(a, b dependentRequired) int { return strings.Compare(a.name, b.name) })
	slices.SortFunc(n.dependentSchemas, func(a, b dependentSchema) int { return strings.Compare(a.name, b.name) })
	if n.ifSchema == nil {
		n.thenSchema, n.elseSchema = nil, nil
	}
	if !n.hasBranches() {
		// Nothing beside this schema can have evaluated a member or an item, so
		// that the rest is known without asking.
		if n.additionalProperties == nil {
			n.additionalProperties, n.unevaluatedProperties = n.unevaluatedProperties, nil
		}
		if n.items == nil && n.contains == nil {
			n.items, n.unevaluatedItems = n.unevaluatedItems, nil
		}
	}
	n.empty = len(object) == 0
	c.prepare(n, object)
	return n
}

// prepare makes a schema one that the library reads rightly.
func (c *builder) prepare(n *node, object map[string]any) {
	object["title"] = strconv.Itoa(n.id)
	if items, is := object["unevaluatedItems"].(map[string]any); is {
		object["unevaluatedItems"] = map[string]any{"not": map[string]any{"not": items}}
	}
	for name := range object {
		if at := n.countField(name); at != nil && *at == unbounded {
			object[name] = json.Number(strconv.Itoa(unbounded))
		}
	}
}

// hasBranches reports whether in-place applicators may mark parts of the value as
// evaluated.
func (n *node) hasBranches() bool {
	return n.ref != nil || len(n.allOf)+len(n.anyOf)+len(n.oneOf)+len(n.dependentSchemas) > 0 || n.ifSchema != nil
}

func (c *builder) keyword(n *node, name string, value any) {
	if at := n.schemaField(name); at != nil {
		*at = c.schema(value)
		return
	}
	if at := n.listField(name); at != nil {
		*at = c.list(value)
		return
	}
	if at := n.numberField(name); at != nil {
		*at = number(value)
		return
	}
	if at := n.countField(name); at != nil {
		*at = count(value)
		return
	}
	switch name {
	case "$ref":
		n.ref = c.def(strings.TrimPrefix(value.(string), "#/$defs/"))
	case boundaryKey:
		n.boundary = value.(string)
	case secretKey:
		n.secret = value.(bool)
	case "enum":
		n.enum = newValueSet(value.([]any))
	case "const":
		n.constant = newValueSet([]any{value})
	case "type":
		n.types = parseTypes(value)
	case "pattern":
		n.pattern = newPattern(value.(string))
	case "format":
		if n.format = format.Find(value.(string)); n.format == nil {
			panic(Fault{"", "found an unknown format"})
		}
	case "uniqueItems":
		n.uniqueItems = value.(bool)
	case "required":
		n.required = texts(value)
	case "$defs":
	default:
		c.memberKeyword(n, name, value)
	}
}

// memberKeyword reads a keyword whose value is an object with a part for each member.
func (c *builder) memberKeyword(n *node, name string, value any) {
	switch name {
	case "properties":
		members := value.(map[string]any)
		n.properties = make(map[string]*node, len(members))
		for k, v := range members {
			n.properties[k] = c.schema(v)
		}
	case "patternProperties":
		for k, v := range value.(map[string]any) {
			n.patternProperties = append(n.patternProperties, patternProperty{newPattern(k), c.schema(v)})
		}
	case "dependentRequired":
		for k, v := range value.(map[string]any) {
			n.dependentRequired = append(n.dependentRequired, dependentRequired{k, texts(v)})
		}
	case "dependentSchemas":
		for k, v := range value.(map[string]any) {
			n.dependentSchemas = append(n.dependentSchemas, dependentSchema{k, c.schema(v)})
		}
	default:
		panic(Fault{"", "found " + parser.Quote(name) + ", which no evaluator knows"})
	}
}

// field is where the value of a keyword is kept.
type field[T any] struct {
	keyword string
	at      *T
}

func find[T any](name string, fields ...field[T]) *T {
	for _, f := range fields {
		if f.keyword == name {
			return f.at
		}
	}
	return nil
}

// schemaField returns the field of a keyword whose value is a schema; nil for other keywords.
func (n *node) schemaField(name string) **node {
	return find(name, []field[*node]{
		{"not", &n.not}, {"if", &n.ifSchema}, {"then", &n.thenSchema}, {"else", &n.elseSchema},
		{"items", &n.items}, {"contains", &n.contains}, {"unevaluatedItems", &n.unevaluatedItems},
		{"additionalProperties", &n.additionalProperties}, {"propertyNames", &n.propertyNames},
		{"unevaluatedProperties", &n.unevaluatedProperties},
	}...)
}

// listField is schemaField for lists of schemas.
func (n *node) listField(name string) *[]*node {
	return find(name, []field[[]*node]{{"allOf", &n.allOf}, {"anyOf", &n.anyOf}, {"oneOf", &n.oneOf}, {"prefixItems", &n.prefixItems}}...)
}

// numberField is schemaField for numbers.
func (n *node) numberField(name string) **decimal.Decimal {
	return find(name, []field[*decimal.Decimal]{
		{"minimum", &n.minimum}, {"maximum", &n.maximum}, {"exclusiveMinimum", &n.exclusiveMinimum},
		{"exclusiveMaximum", &n.exclusiveMaximum},
		{"multipleOf", &n.multipleOf},
	}...)
}

// countField is schemaField for whole numbers from 0.
func (n *node) countField(name string) *int {
	return find(name, []field[int]{
		{"minLength", &n.minLength}, {"maxLength", &n.maxLength}, {"minItems", &n.minItems}, {"maxItems", &n.maxItems},
		{"minContains", &n.minContains}, {"maxContains", &n.maxContains}, {"minProperties", &n.minProperties},
		{"maxProperties", &n.maxProperties},
	}...)
}

// def returns the node of a copy. It is entered before it is built, so that
// what it holds may refer to it.
func (c *builder) def(name string) *node {
	n, ok := c.built[name]
	if !ok {
		v, known := c.defs[name]
		if !known {
			panic(Fault{"", "found a reference that leads nowhere"})
		}
		n = new(node)
		c.built[name] = n
		c.build(v, n)
	}
	return n
}

func (c *builder) list(value any) []*node {
	var nodes []*node
	for _, v := range value.([]any) {
		nodes = append(nodes, c.schema(v))
	}
	return nodes
}

func number(value any) *decimal.Decimal {
	d, ok := numberOf(value)
	if !ok {
		panic(Fault{"", "found a number out of range"})
	}
	return &d
}

// unbounded stands for counts beyond what any value can have.
const unbounded = 1 << 40

func count(value any) int {
	d := *number(value)
	if !d.IsInteger() || d.Negative {
		panic(Fault{"", fmt.Sprintf("found %s; expected a count", value.(json.Number))})
	}
	if len(d.Digits)+d.Exponent > 12 {
		return unbounded
	}
	n := 0
	for i := range len(d.Digits) {
		n = n*10 + int(d.Digits[i]-'0')
	}
	for range d.Exponent {
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
