package grammar

import (
	"slices"
	"strconv"
)

// expr is a part of a grammar. A nil expr matches nothing at all.
type expr interface{ isExpr() }

type (
	literal  string
	class    []span // sorted, without overlaps
	sequence []expr
	choice   []expr
	repeat   struct {
		of       expr
		min, max int // max -1: no bound
	}
	reference string
)

func (literal) isExpr()   {}
func (class) isExpr()     {}
func (sequence) isExpr()  {}
func (choice) isExpr()    {}
func (repeat) isExpr()    {}
func (reference) isExpr() {}

// span is a range of code points, both ends included.
type span struct{ from, to rune }

// rule is a named expression.
type rule struct {
	name string
	body expr
}

// seq matches its parts one after another, and nothing where a part matches nothing.
func seq(parts ...expr) expr {
	var out sequence
	for _, p := range parts {
		switch p := p.(type) {
		case nil:
			return nil
		case sequence:
			out = append(out, p...)
		case literal:
			if p == "" {
				continue
			}
			if n := len(out) - 1; n >= 0 {
				if before, ok := out[n].(literal); ok {
					out[n] = before + p
					continue
				}
			}
			out = append(out, p)
		default:
			out = append(out, p)
		}
	}
	switch len(out) {
	case 0:
		return literal("")
	case 1:
		return out[0]
	}
	return out
}

// oneOf matches what any of its parts matches.
func oneOf(parts ...expr) expr {
	var out choice
	for _, p := range parts {
		switch p := p.(type) {
		case nil:
		case choice:
			out = append(out, p...)
		default:
			out = append(out, p)
		}
	}
	switch len(out) {
	case 0:
		return nil
	case 1:
		return out[0]
	}
	return out
}

// optional matches a part or the empty text.
func optional(part expr) expr {
	if part == nil || part == literal("") {
		return literal("")
	}
	return repeat{part, 0, 1}
}

// times matches a part from least to most times; most -1 is any number.
func times(part expr, least, most int) expr {
	switch {
	case most >= 0 && least > most, part == nil && least > 0:
		return nil
	case part == nil || most == 0:
		return literal("")
	case least == 1 && most == 1:
		return part
	}
	return repeat{part, least, most}
}

// rules collects the rules of a grammar. Equal bodies share one rule.
type rules struct {
	list  []rule
	taken map[string]bool
}

// name returns a name that no rule has: the hint, made fit for every notation.
func (r *rules) name(hint string) string {
	clean := []byte{}
	for i := range len(hint) {
		switch c := hint[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9' && len(clean) > 0:
			clean = append(clean, c)
		case c >= 'A' && c <= 'Z':
			clean = append(clean, c|0x20)
		case len(clean) > 0 && clean[len(clean)-1] != '-':
			clean = append(clean, '-')
		}
	}
	for len(clean) > 0 && clean[len(clean)-1] == '-' {
		clean = clean[:len(clean)-1]
	}
	name := string(clean)
	if name == "" {
		name = "part"
	}
	if r.taken == nil {
		r.taken = map[string]bool{}
	}
	unique := name
	for n := 2; r.taken[unique]; n++ {
		unique = name + "-" + strconv.Itoa(n)
	}
	r.taken[unique] = true
	return unique
}

// define adds a rule and returns a reference to it. An expression that
// matches nothing, or is short already, stands for itself.
func (r *rules) define(hint string, body expr) expr {
	switch body.(type) {
	case nil, literal, reference:
		return body
	}
	name := r.name(hint)
	r.list = append(r.list, rule{name, body})
	return reference(name)
}

// used returns the rules that can be reached from a start, in their order, the start first.
func (r *rules) used(start string) []rule {
	bodies := map[string]expr{}
	for _, one := range r.list {
		bodies[one.name] = one.body
	}
	seen := map[string]bool{start: true}
	queue := []string{start}
	var out []rule
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		out = append(out, rule{name, bodies[name]})
		for _, next := range references(bodies[name], nil) {
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return out
}

func references(e expr, to []string) []string {
	switch e := e.(type) {
	case reference:
		if !slices.Contains(to, string(e)) {
			to = append(to, string(e))
		}
	case sequence:
		for _, p := range e {
			to = references(p, to)
		}
	case choice:
		for _, p := range e {
			to = references(p, to)
		}
	case repeat:
		to = references(e.of, to)
	}
	return to
}
