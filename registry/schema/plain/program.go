// Package plain evaluates JSON by plain schemas, without decoding it.
//
// # Contract
//
// A schema is plain if it consists of these keywords and no others: type, enum and const of
// scalars, the bounds of numbers, lengths and counts, multipleOf, pattern, format, items,
// properties, required, additionalProperties, unevaluatedProperties and unevaluatedItems
// where nothing but $ref stands beside them, $ref without recursion, and extensions (x-),
// which assert nothing. Compile reads the closed document that the library of package
// schema reads too, and returns nil for every other schema.
//
// Judge accepts a value, refuses it, or leaves it open where it is too large or too deep. It says no
// reason: the caller asks kaptinlin/jsonschema, which confirms each refusal and whose result names the
// places. The text must have been read strictly before: members that the schema does not declare
// are not compared with each other, so that Judge alone would not notice that such a name stands
// twice. Every other fault of the text, in syntax or encoding, is noticed.
//
// Time is linear in the value, but for patterns, which take their size times the length of
// the text that they match. Judge allocates only for numbers that have an exponent or more
// than 18 digits, for escapes in texts that have a pattern, format or long value, and for
// texts that have a format. A Program never changes and is safe for concurrent use.
package plain

import (
	"regexp"

	"github.com/callgate/callgate/registry/format"
)

// kinds is a set of types of JSON values.
type kinds uint8

const (
	kindNull kinds = 1 << iota
	kindBoolean
	kindInteger
	kindNumber
	kindString
	kindArray
	kindObject

	anyKind = kindNull | kindBoolean | kindInteger | kindNumber | kindString | kindArray | kindObject
)

// Program is a compiled plain schema.
type Program struct {
	nodes    []node
	root     int
	maxSteps int
}

// Two nodes that every program begins with.
const (
	anything = iota // accepts every value
	nothing         // accepts none
)

// node is one schema. References are resolved: a node is the schema that has $ref together
// with its target.
type node struct {
	kinds   kinds
	steps   int // for a value, besides those that depend on it
	enums   []*scalars
	numbers *numberRules
	texts   *textRules
	arrays  *arrayRules
	objects *objectRules
	// boundary is what a text must stay within, or "".
	boundary string
}

// scalars is a set of values that are neither arrays nor objects.
type scalars struct {
	null, yes, no bool
	numbers       []number
	texts         table
}

type numberRules struct {
	minimum, maximum, above, below, multiple *number
	fixed                                    bool // all of them are
}

type textRules struct {
	minLength, maxLength int
	pattern              *regexp.Regexp
	patternSize          int // instructions
	format               *format.Format
}

type arrayRules struct {
	minItems, maxItems int
	items              int // a node
}

type objectRules struct {
	minProperties, maxProperties int
	names                        table // declared or required
	children                     []int // their nodes
	required                     [maxNames / 64]uint64
	additional                   int // the node of other members
}

const (
	maxNames = 256 // of one object schema
	maxDepth = 128 // of a value
	// One step is counted for so many bytes.
	bytesPerStep = 8
)

// table finds texts.
type table struct {
	list  []string
	index map[string]int // nil: the list is short enough to be walked
}

const shortList = 8

func newTable(list []string) table {
	t := table{list: list}
	if len(list) > shortList {
		t.index = make(map[string]int, len(list))
		for i, s := range list {
			t.index[s] = i
		}
	}
	return t
}

// find returns the index of a text, or -1.
func (t *table) find(text []byte) int {
	if t.index != nil {
		if i, ok := t.index[string(text)]; ok {
			return i
		}
		return -1
	}
	for i, s := range t.list {
		if s == string(text) {
			return i
		}
	}
	return -1
}
