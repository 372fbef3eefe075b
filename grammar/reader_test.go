package grammar_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The tests read what Write wrote, by readers of their own, so that the notation is
// tested too.

type kind int

const (
	set kind = iota // one character
	text
	seq
	alt
	rep
	ref
)

type node struct {
	kind     kind
	spans    [][2]rune
	text     string
	parts    []*node
	min, max int
	name     string
}

type rules map[string]*node

// dialect says how a notation differs from the others.
type dialect struct {
	comment, defines, start string
	slashes, tilde          bool // sets between slashes, repetitions by ~
}

var dialects = map[string]dialect{
	"gbnf": {"#", "::=", "root", false, false},
	"ebnf": {"#", "::=", "root", false, false},
	"lark": {"//", ":", "start", true, true},
}

func readGrammar(format, source string) (g rules, start string, err error) {
	d := dialects[format]
	g = rules{}
	for n, line := range strings.Split(source, "\n") {
		if line == "" || strings.HasPrefix(line, d.comment) {
			continue
		}
		name, body, ok := strings.Cut(line, " "+d.defines+" ")
		if d.defines == ":" {
			name, body, ok = strings.Cut(line, ": ")
		}
		if !ok || g[name] != nil {
			return nil, "", fmt.Errorf("line %d is no rule, or one for the second time: %.60s", n+1, line)
		}
		r := reader{s: body, dialect: d}
		e := r.choice()
		if r.err == nil && r.s != "" {
			r.fail("the end")
		}
		if r.err != nil {
			return nil, "", fmt.Errorf("line %d: %w", n+1, r.err)
		}
		g[name] = e
	}
	for name, e := range g {
		if missing := e.missing(g); missing != "" {
			return nil, "", fmt.Errorf("rule %s refers to %s, which is not there", name, missing)
		}
	}
	if g[d.start] == nil {
		return nil, "", fmt.Errorf("there is no rule %s", d.start)
	}
	return g, d.start, nil
}

func (e *node) missing(g rules) string {
	if e.kind == ref && g[e.name] == nil {
		return e.name
	}
	for _, p := range e.parts {
		if m := p.missing(g); m != "" {
			return m
		}
	}
	return ""
}

type reader struct {
	s   string
	err error
	dialect
}

func (r *reader) fail(expected string) {
	if r.err == nil {
		r.err = fmt.Errorf("expected %s at %.40q", expected, r.s)
	}
	r.s = ""
}

func (r *reader) next(s string) bool {
	rest, ok := strings.CutPrefix(r.s, s)
	if ok {
		r.s = rest
	}
	return ok
}

func (r *reader) choice() *node {
	e := &node{kind: alt, parts: []*node{r.sequence()}}
	for r.next(" | ") {
		e.parts = append(e.parts, r.sequence())
	}
	return e
}

func (r *reader) sequence() *node {
	e := &node{kind: seq, parts: []*node{r.item()}}
	for r.s != "" && !strings.HasPrefix(r.s, " | ") && r.next(" ") {
		e.parts = append(e.parts, r.item())
	}
	return e
}

func (r *reader) item() *node {
	e := r.atom()
	for {
		switch {
		case r.next("?"):
			e = &node{kind: rep, parts: []*node{e}, max: 1}
		case r.next("*"):
			e = &node{kind: rep, parts: []*node{e}, max: -1}
		case r.next("+"):
			e = &node{kind: rep, parts: []*node{e}, min: 1, max: -1}
		case !r.tilde && r.next("{"):
			bounds, rest, _ := strings.Cut(r.s, "}")
			r.s = rest
			e = r.bounded(e, bounds, ",")
		case r.tilde && r.next("~"):
			n := strings.IndexFunc(r.s, func(c rune) bool { return c != '.' && (c < '0' || c > '9') })
			if n < 0 {
				n = len(r.s)
			}
			bounds := r.s[:n]
			r.s = r.s[n:]
			e = r.bounded(e, bounds, "..")
		default:
			return e
		}
	}
}

func (r *reader) bounded(e *node, bounds, between string) *node {
	low, high, two := strings.Cut(bounds, between)
	least, err := strconv.Atoi(low)
	most := least
	if two && high == "" {
		most = -1
	} else if two && err == nil {
		most, err = strconv.Atoi(high)
	}
	if err != nil {
		r.fail("a repetition, not " + bounds)
	}
	return &node{kind: rep, parts: []*node{e}, min: least, max: most}
}

func (r *reader) atom() *node {
	switch {
	case r.next("("):
		e := r.choice()
		if !r.next(")") {
			r.fail(")")
		}
		return e
	case r.next(`"`):
		var b strings.Builder
		for !r.next(`"`) {
			c, ok := r.char()
			if !ok {
				r.fail("the end of a text")
				break
			}
			b.WriteRune(c)
		}
		if r.tilde && b.Len() == 0 {
			r.fail("a text that is not empty")
		}
		return &node{kind: text, text: b.String()}
	case !r.slashes && r.next("["), r.slashes && r.next("/["):
		e := &node{kind: set}
		lacks := r.next("^")
		for !r.next("]") {
			from, ok := r.char()
			to := from
			if ok && r.next("-") {
				to, ok = r.char()
			}
			if !ok {
				r.fail("the end of a set")
				break
			}
			e.spans = append(e.spans, [2]rune{from, to})
		}
		if r.slashes && !r.next("/") {
			r.fail("/")
		}
		if lacks {
			e.spans = others(e.spans)
		}
		return e
	}
	n := strings.IndexFunc(r.s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' && !r.tilde || c == '_' && r.tilde)
	})
	if n < 0 {
		n = len(r.s)
	}
	if n == 0 {
		r.fail("a part of a rule")
		return &node{kind: text}
	}
	e := &node{kind: ref, name: r.s[:n]}
	r.s = r.s[n:]
	return e
}

// others gives the characters that are not in a set.
func others(spans [][2]rune) [][2]rune {
	var out [][2]rune
	next := rune(0)
	for _, s := range append(slices.Clone(spans), [2]rune{0xD800, 0xDFFF}, [2]rune{0x110000, 0x110000}) {
		if s[0] > next {
			out = append(out, [2]rune{next, s[0] - 1})
		}
		next = s[1] + 1
	}
	return out
}

// char reads one character of a text or set, by its number or as it is.
func (r *reader) char() (rune, bool) {
	for mark, digits := range map[string]int{`\u`: 4, `\U`: 8} {
		if strings.HasPrefix(r.s, mark) {
			if len(r.s) < 2+digits {
				return 0, false
			}
			n, err := strconv.ParseUint(r.s[2:2+digits], 16, 32)
			r.s = r.s[2+digits:]
			return rune(n), err == nil
		}
	}
	if r.next(`\`) && r.s != "" && r.s[0] != '"' && r.s[0] != '\\' {
		return 0, false
	}
	c, size := utf8.DecodeRuneInString(r.s)
	if size == 0 || c < ' ' {
		return 0, false
	}
	r.s = r.s[size:]
	return c, true
}

// matches reports whether a text is in the grammar: all ends of each part are found, from
// each place once.
func (g rules) matches(start, s string) bool {
	m := matcher{g: g, s: s, ends: map[at]map[int]bool{}}
	return m.all(g[start], 0)[len(s)]
}

type at struct {
	e    *node
	from int
}

type matcher struct {
	g    rules
	s    string
	ends map[at]map[int]bool
}

// all gives the ends of a part that begins at a place. No rule of ours begins with itself.
func (m *matcher) all(e *node, from int) map[int]bool {
	key := at{e, from}
	if known, has := m.ends[key]; has {
		return known
	}
	m.ends[key] = nil
	out := map[int]bool{}
	switch e.kind {
	case text:
		if strings.HasPrefix(m.s[from:], e.text) {
			out[from+len(e.text)] = true
		}
	case set:
		c, size := utf8.DecodeRuneInString(m.s[from:])
		for _, span := range e.spans {
			if size > 0 && span[0] <= c && c <= span[1] {
				out[from+size] = true
			}
		}
	case ref:
		out = m.all(m.g[e.name], from)
	case alt:
		for _, p := range e.parts {
			for to := range m.all(p, from) {
				out[to] = true
			}
		}
	case seq:
		out[from] = true
		for _, p := range e.parts {
			next := map[int]bool{}
			for at := range out {
				for to := range m.all(p, at) {
					next[to] = true
				}
			}
			out = next
		}
	case rep:
		level := map[int]bool{from: true}
		if e.min == 0 {
			out[from] = true
		}
		for n := 1; (e.max < 0 || n <= e.max) && len(level) > 0; n++ {
			next := map[int]bool{}
			for at := range level {
				for to := range m.all(e.parts[0], at) {
					if n >= e.min {
						if !out[to] {
							next[to] = true
						}
						out[to] = true
					} else {
						next[to] = true
					}
				}
			}
			level = next
		}
	}
	m.ends[key] = out
	return out
}
