package registry

import "encoding/json"

// burden is what the second judge does for a schema whatever the value is: it
// walks all members that a schema names, notes each as judged, and copies the
// notes of every schema beside it. A thorough judgement counts it, so that a
// call which would keep the second judge busy is refused before it begins.
type burden struct {
	known   bool
	notes   int // members that are noted as judged
	copied  int // of them, those that schemas beside this one hand over
	parts   bool
	copying int // schemas beside this one that hand over notes of the value's parts
}

// The rates at which the second judge works, measured; see BenchmarkWorst.
const (
	deepPerStep     = 512 // schemas among which it looks for one applied twice
	notedPerStep    = 6   // notes made or copied
	requiredPerStep = 256 // comparisons of a member's name with those required
	comparedPerStep = 3   // plain values of an enum
	missedPerStep   = 4   // absent members that it lists
)

// burden works out the burden of all schemas that can be reached.
func (n *node) burden() {
	n.each(func(n *node) { n.weigh() })
}

func (n *node) weigh() *burden {
	m := &n.marks
	if m.known {
		return m
	}
	m.known = true
	m.parts = len(n.patterns)+len(n.prefix) > 0
	for _, part := range []*node{n.others, n.restProps, n.items, n.contains, n.restList} {
		m.parts = m.parts || part != nil
	}
	for _, b := range n.beside() {
		of := b.weigh()
		m.copied += of.notes
		if of.parts {
			m.copying++
			m.parts = true
		}
	}
	m.notes = len(n.properties) + m.copied
	return m
}

// extra is what the second judge spends on a value besides one step: it prints
// texts and names, computes with numbers of any size, and compiles the patterns
// of names each time.
func (n *node) extra(v any) int {
	cost := 0
	for _, p := range n.patterns {
		cost += 16 + p.size/8
	}
	switch v := v.(type) {
	case string:
		cost += len(v) / bytesPerStep
	case json.Number:
		cost += 1 + size(v)
	case []any:
		cost += n.marks.copying * len(v) / notedPerStep
	case map[string]any:
		cost += n.extraOfMembers(v)
	}
	return cost
}

func (n *node) extraOfMembers(v map[string]any) int {
	noted := n.marks.copied + len(n.properties) + n.marks.copying*len(v)
	if n.others != nil {
		noted += len(n.properties)
	}
	cost := noted/notedPerStep + len(n.properties)*len(n.required)/requiredPerStep
	if n.properties != nil || n.others != nil || n.restProps != nil || n.names != nil || len(n.patterns) > 0 {
		for name := range v {
			cost += len(name) / bytesPerStep
		}
	}
	return cost
}

// size is what a number adds to computing with it exactly.
func size(v json.Number) int {
	d, ok := parseDecimal(string(v))
	if !ok {
		return 0
	}
	return (len(d.digits) + max(d.exp, -d.exp)) / bytesPerStep
}

// bulk is what comparing with a value costs, in plain values.
func bulk(v any) int {
	switch v := v.(type) {
	case string:
		return 1 + len(v)/bytesPerStep
	case json.Number:
		return 3 + 4*size(v)
	case []any:
		sum := 1
		for _, item := range v {
			sum += bulk(item)
		}
		return sum
	case map[string]any:
		sum := 1
		for name, item := range v {
			sum += 1 + len(name)/bytesPerStep + bulk(item)
		}
		return sum
	}
	return 1
}

// comparing is what the second judge spends to find a value among these, or to
// find that it is not.
func (v *values) comparing(item any) int {
	last := len(v.list) - 1
	if last < 0 {
		return 0
	}
	if at, has := v.set[string(appendCanonical(nil, item))]; has {
		last = at
	}
	cost := v.bulk[last]
	if n, is := item.(json.Number); is {
		cost += (last + 1) * (3 + 4*size(n))
	}
	return cost / comparedPerStep
}
