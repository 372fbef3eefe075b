package grammar

import "slices"

const (
	lastRune       = '\U0010FFFF'
	firstSurrogate = 0xD800
	lastSurrogate  = 0xDFFF
)

// anyRune is every character that a JSON text may hold.
var anyRune = class{{0, firstSurrogate - 1}, {lastSurrogate + 1, lastRune}}

func intersect(a, b class) class {
	var out class
	for _, x := range a {
		for _, y := range b {
			if from, to := max(x.from, y.from), min(x.to, y.to); from <= to {
				out = append(out, span{from, to})
			}
		}
	}
	return out
}

// without returns the characters of a set that are not in another.
func without(a, b class) class {
	next := rune(0)
	var rest class
	for _, s := range b {
		if s.from > next {
			rest = append(rest, span{next, s.from - 1})
		}
		next = s.to + 1
	}
	if next <= lastRune {
		rest = append(rest, span{next, lastRune})
	}
	return intersect(a, rest)
}

func contains(set class, r rune) bool {
	return slices.ContainsFunc(set, func(s span) bool { return s.from <= r && r <= s.to })
}

// normal sorts the ranges of a set and joins those that touch.
func normal(set class) class {
	slices.SortFunc(set, func(a, b span) int { return int(a.from - b.from) })
	var out class
	for _, s := range set {
		if n := len(out) - 1; n >= 0 && s.from <= out[n].to+1 {
			out[n].to = max(out[n].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}
