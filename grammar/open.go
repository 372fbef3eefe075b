package grammar

import (
	"slices"
	"unicode/utf8"
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
