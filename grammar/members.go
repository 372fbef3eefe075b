package grammar

import (
	"math/bits"
	"slices"
	"unicode/utf8"
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

// Objects with more members that a schema names have them in the order of their names.
const (
	maxAnyOrder        = 7
	maxAnyOrderCompact = 0
)

// A grammar cannot say that names differ. So the members that no schema names begin with
// different characters here, in ascending or in descending order, and with none that a
// named member begins with.

// initials are the first characters of such names: each alone, the others together.
func initials(except []string) []class {
	var used class
	for _, name := range except {
		if r, size := utf8.DecodeRuneInString(name); size > 0 {
			used = append(used, span{r, r})
		}
	}
	used = normal(used)
	var out []class
	single := class{}
	for _, s := range []span{{'-', '-'}, {'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}} {
		for r := s.from; r <= s.to; r++ {
			single = append(single, span{r, r})
			if !contains(used, r) {
				out = append(out, class{{r, r}})
			}
		}
	}
	if rest := without(without(anyRune, normal(single)), used); len(rest) > 0 {
		out = append(out, rest)
	}
	return out
}

// openMembers matches from least to most members that no schema names. Most -1 is any
// number; after says that other members stand before them.
func (w *memberWays) openMembers(after bool, least, most int) expr {
	w.note("the members of an open object begin with different characters, in the order of these")
	value := w.compiler.rules.define(w.hint+"-value", w.open)
	starts := initials(append(slices.Clone(w.names), w.forbidden...))
	if most < 0 || most > len(starts) {
		most = len(starts)
	}
	if least > most || most == 0 {
		return nil
	}
	ascending := w.chain(starts, value, after, least, most)
	if most == 1 || w.compact {
		return ascending
	}
	slices.Reverse(starts)
	return oneOf(ascending, w.chain(starts, value, after, max(least, 2), most))
}

// chain matches members whose names begin with these characters in this order.
func (w *memberWays) chain(starts []class, value expr, after bool, least, most int) expr {
	limit := max(least, 1) // members are counted up to it
	if most < len(starts) {
		limit = most
	}
	type state struct {
		at, count int
		first     bool
	}
	made := map[state]expr{}
	var from func(s state) expr
	from = func(s state) expr {
		if e, known := made[s]; known {
			return e
		}
		if s.at == len(starts) || s.count == limit && limit == most {
			if s.count < least {
				return nil
			}
			return literal("")
		}
		member := seq(literal(`"`), w.characters(starts[s.at]), times(w.characters(anyRune), 0, -1), literal(`"`), w.colon(), value)
		if !s.first {
			member = seq(w.comma(), member)
		}
		take := seq(member, from(state{s.at + 1, min(s.count+1, limit), false}))
		skip := from(state{s.at + 1, s.count, s.first})
		e := oneOf(take, skip)
		if skip == literal("") {
			e = optional(take)
		}
		made[s] = w.compiler.rules.define(w.hint+"-names", e)
		return made[s]
	}
	return from(state{0, 0, !after})
}
