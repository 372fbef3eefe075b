package grammar

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
)

func (c *compiler) space() expr {
	return c.shared("ws", func() expr {
		if c.compact {
			return optional(literal(" "))
		}
		return times(class{{'\t', '\n'}, {'\r', '\r'}, {' ', ' '}}, 0, -1)
	})
}

func (c *compiler) comma() expr {
	return c.shared("comma", func() expr { return seq(c.space(), literal(","), c.space()) })
}

func (c *compiler) colon() expr {
	return c.shared("colon", func() expr { return seq(c.space(), literal(":"), c.space()) })
}

// member matches a member of an object by its name.
func (c *compiler) member(name string, value expr) expr {
	if value == nil {
		return nil
	}
	return seq(c.text(name), c.colon(), value)
}

// array matches the arrays that keep all parts.
func (c *compiler) array(hint string, parts []part) (expr, error) {
	least, most, unique, prefix := 0, -1, false, 0
	for _, p := range parts {
		least = max(least, count(p.keywords["minItems"], 0))
		most = lower(most, count(p.keywords["maxItems"], -1))
		unique = unique || p.keywords["uniqueItems"] == true
		prefix = max(prefix, len(list(p.keywords["prefixItems"])))
	}
	var first []expr // of the places that prefixItems names
	for at := range prefix {
		e, err := c.item(hint, parts, at)
		if err != nil {
			return nil, err
		}
		if e == nil {
			most = lower(most, at)
			break
		}
		first = append(first, e)
	}
	rest := expr(nil)
	if most < 0 || most > prefix {
		e, err := c.item(hint, parts, prefix)
		if err != nil {
			return nil, err
		}
		if rest = e; e == nil {
			most = lower(most, prefix)
		}
	}
	if unique && most != 0 && most != 1 {
		if prefix > 0 || least > 1 {
			return nil, fmt.Errorf("uniqueItems cannot be written as a grammar")
		}
		c.note("arrays whose items must differ have one item at most")
		most = 1
	}
	if least > maxRepeats {
		return nil, fmt.Errorf("minItems %d is beyond %d repetitions", least, maxRepeats)
	}
	if most > maxRepeats {
		c.note("arrays of more than %d items are left out where the schema bounds them", maxRepeats)
		most = maxRepeats
	}
	if most >= 0 && least > most {
		return nil, nil
	}
	return seq(literal("["), c.space(), c.items(first, rest, least, most), c.space(), literal("]")), nil
}

// items matches from least to most items: the first ones, then the rest.
func (c *compiler) items(first []expr, rest expr, least, most int) expr {
	if most == 0 {
		return literal("")
	}
	var out expr
	if len(first) == 0 {
		further := most
		if most > 0 {
			further--
		}
		out = seq(rest, times(seq(c.comma(), rest), max(least-1, 0), further))
	} else {
		// From the last place to the first: each may be followed by the next.
		further := most
		if most >= 0 {
			further = max(most-len(first), 0)
		}
		out = times(seq(c.comma(), orEmpty(rest)), max(least-len(first), 0), further)
		if rest == nil {
			out = literal("")
		}
		for at := min(len(first), orAll(most, len(first))) - 1; at >= 0; at-- {
			if at > 0 {
				out = seq(c.comma(), first[at], out)
				if at >= least {
					out = optional(out)
				}
				continue
			}
			out = seq(first[0], out)
		}
	}
	if least == 0 {
		return optional(out)
	}
	return out
}

func orEmpty(e expr) expr {
	if e == nil {
		return literal("")
	}
	return e
}

func orAll(most, all int) int {
	if most < 0 {
		return all
	}
	return most
}

// item matches the items at a place.
func (c *compiler) item(hint string, parts []part, at int) (expr, error) {
	var schemas []any
	for _, p := range parts {
		prefix := list(p.keywords["prefixItems"])
		switch items, has := p.keywords["items"]; {
		case at < len(prefix):
			schemas = append(schemas, prefix[at])
		case has:
			schemas = append(schemas, items)
		default:
			unevaluated, has := p.keywords["unevaluatedItems"]
			if has && !slices.ContainsFunc(parts, func(o part) bool {
				_, all := o.keywords["items"]
				return slices.Contains(o.within, p.id) && (all || at < len(list(o.keywords["prefixItems"])))
			}) {
				schemas = append(schemas, unevaluated)
			}
		}
	}
	if len(schemas) == 0 {
		return c.anything(), nil
	}
	return c.value(hint+"-item", schemas)
}

// Objects with more members that a schema names have them in the order of their names.
const (
	maxAnyOrder        = 7
	maxAnyOrderCompact = 0
)

// object matches the objects that keep all parts.
func (c *compiler) object(hint string, parts []part) (expr, error) {
	declared, required := map[string]bool{}, map[string]bool{}
	least, most := 0, -1
	for _, p := range parts {
		members, _ := p.keywords["properties"].(map[string]any)
		for name := range members {
			declared[name] = true
		}
		for _, name := range list(p.keywords["required"]) {
			declared[name.(string)], required[name.(string)] = true, true
		}
		least = max(least, count(p.keywords["minProperties"], 0))
		most = lower(most, count(p.keywords["maxProperties"], -1))
	}
	o := objectRules{least: least, most: most}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		value, err := c.memberValue(hint, parts, name)
		if err != nil {
			return nil, err
		}
		if value == nil {
			if required[name] {
				return nil, nil
			}
			o.forbidden = append(o.forbidden, name)
			continue
		}
		o.names = append(o.names, name)
		o.entries = append(o.entries, c.rules.define(hint+"-"+name, c.member(name, value)))
		o.required = append(o.required, required[name])
	}
	other := "member" // stands for the members that no part declares
	for declared[other] {
		other += "-"
	}
	var err error
	if o.open, err = c.memberValue(hint, parts, other); err != nil {
		return nil, err
	}
	return c.members(hint, o), nil
}

// memberValue matches the values of a member.
func (c *compiler) memberValue(hint string, parts []part, name string) (expr, error) {
	var schemas []any
	for _, p := range parts {
		members, _ := p.keywords["properties"].(map[string]any)
		if s, has := members[name]; has {
			schemas = append(schemas, s)
			continue
		}
		if s, has := p.keywords["additionalProperties"]; has {
			schemas = append(schemas, s)
			continue
		}
		if s, has := p.keywords["unevaluatedProperties"]; has && !evaluated(parts, p.id, name) {
			schemas = append(schemas, s)
		}
	}
	if len(schemas) == 0 {
		return c.anything(), nil
	}
	return c.value(hint+"-"+name, schemas)
}

// evaluated reports whether a part within another has evaluated a member.
func evaluated(parts []part, within int, name string) bool {
	return slices.ContainsFunc(parts, func(p part) bool {
		if !slices.Contains(p.within, within) {
			return false
		}
		members, _ := p.keywords["properties"].(map[string]any)
		_, named := members[name]
		_, all := p.keywords["additionalProperties"]
		return named || all
	})
}

type objectRules struct {
	names       []string
	entries     []expr
	required    []bool
	forbidden   []string
	open        expr // the value of members that no schema names; nil where there are none
	least, most int
}

// members matches an object: the named members, then those that no schema names.
func (c *compiler) members(hint string, o objectRules) expr {
	bound := maxAnyOrder
	if c.compact {
		bound = maxAnyOrderCompact
	}
	w := memberWays{compiler: c, objectRules: o, hint: hint, made: map[[2]int]expr{}, ordered: len(o.names) > bound}
	if w.ordered && !c.compact {
		c.note("objects with more than %d named members have them in the order of their names", maxAnyOrder)
	}
	return seq(literal("{"), c.space(), w.from(0, 0), literal("}"))
}

// memberWays writes the rest of an object for each state: the members that were seen, as a
// set, or where the order is fixed the next one; and how many there were.
type memberWays struct {
	*compiler
	objectRules
	hint    string
	made    map[[2]int]expr
	ordered bool
}

// from matches the rest of an object. Seen is the set of the members that were seen, or the
// next member where the order is fixed.
func (w *memberWays) from(seen, count int) expr {
	key := [2]int{seen, count}
	if e, known := w.made[key]; known {
		return e
	}
	var ways []expr
	add := func(at, next int) {
		if w.most >= 0 && count >= w.most {
			return
		}
		member := w.entries[at]
		if count > 0 {
			member = seq(w.comma(), member)
		}
		ways = append(ways, seq(member, w.from(next, count+1)))
	}
	done := true
	if w.ordered {
		for at := seen; at < len(w.entries); at++ {
			add(at, at+1)
			if w.required[at] {
				done = false
				break
			}
		}
	} else {
		for at := range w.entries {
			if seen&(1<<at) == 0 {
				add(at, seen|1<<at)
				done = done && !w.required[at]
			}
		}
		count = bits.OnesCount(uint(seen))
	}
	if done {
		ways = append(ways, w.further(count))
	}
	e := w.compiler.rules.define(w.hint+"-rest", oneOf(ways...))
	w.made[key] = e
	return e
}

// further matches the members that no schema names, and the end.
func (w *memberWays) further(count int) expr {
	var ways []expr
	if count >= w.least && (w.most < 0 || count <= w.most) {
		ways = append(ways, w.space())
	}
	if w.open != nil {
		least, most := max(w.least-count, 1), w.most
		if most >= 0 {
			most -= count
		}
		ways = append(ways, seq(w.openMembers(count > 0, least, most), w.space()))
	}
	return oneOf(ways...)
}
