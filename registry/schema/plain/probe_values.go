package plain

import (
	"bytes"
	"encoding/json"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/internal/decimal"
)

// Probes are values, as JSON, on which evaluators may differ about a schema. The first, as far
// as one was found, is valid and has every declared member. In each of the others one part is
// at a bound of a keyword, beyond it, or of another type. Their number is bounded. A part
// for which seen returns true is left as it is in the first; seen gets a text that is the same
// for all schemas that say the same of such a part.
func (p *Program) Probes(seen func(rules string) bool) [][]byte {
	b := prober{p: p, seen: seen}
	valid, variants := b.node(p.root, 1)
	probes := [][]byte{[]byte(valid)}
	for _, text := range variants {
		probes = append(probes, []byte(text))
	}
	return probes
}

const (
	maxProbes      = 48 // of what is begun when there are as many, the rest is made
	maxProbedDepth = 12
	maxProbedSize  = 300 // characters of a text, items of a list
	// A part that is referred to is probed at each place, and a list repeats its items: both
	// can multiply at each level. These bound the work for one schema.
	maxProbedNodes = 2_000
	maxProbedBytes = 4 << 20
)

type prober struct {
	p    *Program
	seen func(string) bool
	made int

	nodes, bytes int // visited, and written
}

// node returns a value that a node accepts, if one is easily found, and variants of it.
func (b *prober) node(at, depth int) (valid string, variants []string) {
	n := &b.p.nodes[at]
	if b.nodes++; depth > maxProbedDepth || b.nodes > maxProbedNodes {
		return "null", nil
	}
	own := b.candidates(n)
	rules := strconv.Itoa(int(n.kinds)) + strings.Join(own, " ")
	if n.texts != nil && n.texts.pattern != nil {
		rules += n.texts.pattern.String()
	}
	if n.texts != nil && n.texts.format != nil {
		rules += n.texts.format.Name
	}
	var members, parts []string
	if n.kinds&kindArray != 0 && n.arrays != nil {
		own = append(own, b.list(n.arrays, depth, &parts)...)
		rules += strings.Join(own, " ")
	}
	if n.kinds&kindObject != 0 && n.objects != nil {
		members = b.object(n.objects, depth, &parts)
	}
	valid = "null"
	for _, text := range slices.Concat(members, own) {
		if b.p.accepts(at, text) {
			valid = text
			break
		}
	}
	if b.made >= maxProbes {
		return valid, parts
	}
	if at == anything || b.seen(rules) {
		own = nil
	}
	// The names of members are a schema's own.
	for _, text := range slices.Concat(members, own) {
		if text != valid {
			b.made++
			variants = append(variants, text)
		}
	}
	return valid, append(variants, parts...)
}

// accepts reports whether a node accepts a value.
func (p *Program) accepts(at int, value string) bool {
	part := *p
	part.root = at
	return part.Accepts([]byte(value))
}

// candidates lists values for a node; those that it is likely to accept are the first.
func (b *prober) candidates(n *node) []string {
	var list []string
	for _, e := range n.enums {
		for i := range e.texts.list {
			if i == 0 || i == len(e.texts.list)-1 {
				list = append(list, quote(e.texts.list[i]))
			}
		}
		for i := range e.numbers {
			if i == 0 || i == len(e.numbers)-1 {
				list = append(list, numeralsAround(e.numbers[i].exact)...)
			}
		}
	}
	if n.kinds&kindString != 0 {
		list = append(list, candidateTexts(n.texts)...)
	}
	if n.kinds&(kindInteger|kindNumber) != 0 {
		list = append(list, "1", "0", "-1.5", "1e2", "3.0")
		if w := n.numbers; w != nil {
			for _, bound := range []*number{w.minimum, w.maximum, w.above, w.below, w.multiple} {
				if bound != nil {
					list = append(list, numeralsAround(bound.exact)...)
				}
			}
		}
	}
	list = append(list, "true", "null", "[]", "{}")
	if n.kinds&kindString == 0 {
		list = append(list, `"1"`)
	}
	if n.kinds&(kindInteger|kindNumber) == 0 {
		list = append(list, "1")
	}
	return list
}

func quote(s string) string {
	raw, _ := json.Marshal(s) // a string has no errors
	return string(raw)
}

// numeralsAround returns a number, and one a little above and below, as far as these are short.
func numeralsAround(d decimal.Decimal) []string {
	list := []string{string(d.AppendCanonical(nil))}
	if n := newNumber(d); n.fits && n.fixed.places < maxDigits && n.fixed.size < powers[maxDigits-1] {
		for _, step := range []int64{-1, 1, -10, 10} {
			size := int64(n.fixed.size) * 10
			if d.Negative {
				size = -size
			}
			list = append(list, strconv.FormatInt(size+step, 10)+"e-"+strconv.Itoa(n.fixed.places+1))
		}
	}
	return list
}

func candidateTexts(t *textRules) []string {
	if t == nil {
		return []string{`"a"`, `""`}
	}
	var list []string
	if t.format != nil {
		list = append(list, quote(formatSamples[t.format.Name]))
	}
	if t.pattern != nil {
		if tree, err := syntax.Parse(t.pattern.String(), syntax.Perl); err == nil {
			var b strings.Builder
			writeMatch(&b, tree.Simplify())
			list = append(list, quote(b.String()))
		}
	}
	for _, length := range []int{t.minLength, t.minLength - 1, t.maxLength, t.maxLength + 1} {
		if length >= 0 && length <= maxProbedSize {
			list = append(list, quote(strings.Repeat("é", length)))
		}
	}
	return append(list, `"a"`, `"1"`, `"?\n"`, `""`)
}

// formatSamples has a valid text for each format; read only.
var formatSamples = map[string]string{
	"date": "2026-01-31", "date-time": "2026-01-31T12:00:00Z", "duration": "P3DT4H", "email": "a@example.com", "hostname": "example.com", "idn-email": "é@example.com",
	"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "iri": "https://example.com/é", "iri-reference": "/é", "json-pointer": "/a/0", "regex": "^a+$", "relative-json-pointer": "1/a",
	"time": "12:00:00Z", "uri": "https://example.com/a", "uri-reference": "/a", "uri-template": "/a/{b}", "uuid": "123e4567-e89b-12d3-a456-426614174000",
}

// writeMatch writes a text that a pattern is likely to match.
func writeMatch(b *strings.Builder, re *syntax.Regexp) {
	if b.Len() > maxProbedSize {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		if len(re.Rune) > 0 {
			b.WriteRune(re.Rune[0])
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('a')
	case syntax.OpAlternate, syntax.OpCapture, syntax.OpPlus:
		writeMatch(b, re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			writeMatch(b, sub)
		}
	}
}

// list returns lists of a valid item, and adds lists with other items to parts.
func (b *prober) list(a *arrayRules, depth int, parts *[]string) []string {
	valid, variants := b.node(a.items, depth+1)
	for _, text := range variants {
		*parts = append(*parts, b.listOf(max(0, a.minItems-1), valid, text))
	}
	var list []string
	for _, size := range []int{max(1, a.minItems), a.minItems - 1, a.maxItems, a.maxItems + 1} {
		if size >= 0 && size <= maxProbedSize {
			list = append(list, b.listOf(size, valid))
		}
	}
	return list
}

// listOf writes a list of size valid items and one more of each other.
func (b *prober) listOf(size int, valid string, variants ...string) string {
	if size > maxProbedSize || !b.mayWrite(size*len(valid)) {
		size = 0
	}
	items := make([]string, size, size+1)
	for i := range items {
		items[i] = valid
	}
	return "[" + strings.Join(append(items, variants...), ",") + "]"
}

// mayWrite takes bytes off those that may be written, if as many are left.
func (b *prober) mayWrite(n int) bool {
	if b.bytes+n > maxProbedBytes {
		return false
	}
	b.bytes += n
	return true
}

// object returns objects of valid members, and adds objects with another member to parts.
func (b *prober) object(o *objectRules, depth int, parts *[]string) []string {
	members, size := make([]string, len(o.children)), 0
	var changed []string
	var at []int
	for i, child := range o.children {
		valid, variants := b.node(child, depth+1)
		members[i] = valid
		size += len(valid)
		for _, text := range variants {
			changed, at = append(changed, text), append(at, i)
		}
	}
	names := make([]string, len(o.children))
	for i, name := range o.names.list {
		names[i] = quote(name)
	}
	write := func(omit, replace int, with, extra string) string {
		if !b.mayWrite(size + len(with) + len(extra)) {
			return "{}"
		}
		var out bytes.Buffer
		for i := range members {
			value := members[i]
			if i == replace {
				value = with
			}
			if i == omit || o.children[i] == nothing && i != replace {
				continue
			}
			out.WriteString("," + names[i] + ":" + value)
		}
		out.WriteString(extra)
		return "{" + string(bytes.TrimPrefix(out.Bytes(), []byte(","))) + "}"
	}
	for i, text := range changed {
		*parts = append(*parts, write(-1, at[i], text, ""))
	}
	additional, variants := b.node(o.additional, depth+1)
	for _, text := range variants {
		*parts = append(*parts, write(-1, -1, "", `,"another member":`+text))
	}
	list := []string{write(-1, -1, "", ""), write(-1, -1, "", `,"another member":`+additional)}
	for i := range members {
		if len(list) < 4 && (o.required[i/64]&(1<<(i%64)) != 0 || i == 0) {
			list = append(list, write(i, -1, "", ""))
		}
	}
	return list
}
