package grammar

import (
	"fmt"
	"io"
	"strings"
)

// notation says how the parts of a grammar are written.
type notation struct {
	comment, defines, empty string
	literal                 func(string) string
	class                   func(class) string
	name                    func(string) string
	times                   func(what string, least, most int) string
}

func (g *Grammar) write(w io.Writer, n notation) error {
	var b strings.Builder
	for _, line := range g.header() {
		b.WriteString(n.comment + line + "\n")
	}
	for _, r := range g.rules {
		b.WriteString(n.name(r.name) + n.defines + n.expression(r.body, false) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// expression writes an expression, within parentheses where it stands within another.
func (n notation) expression(e expr, inner bool) string {
	joined := func(parts []expr, between string) string {
		var out []string
		for _, p := range parts {
			out = append(out, n.expression(p, true))
		}
		text := strings.Join(out, between)
		if inner && len(parts) > 1 {
			return "(" + text + ")"
		}
		return text
	}
	switch e := e.(type) {
	case literal:
		if e == "" {
			return n.empty
		}
		return n.literal(string(e))
	case class:
		return n.class(e)
	case reference:
		return n.name(string(e))
	case sequence:
		return joined(e, " ")
	case choice:
		return joined(e, " | ")
	case repeat:
		of := n.expression(e.of, true)
		switch e.of.(type) {
		case repeat:
			of = "(" + of + ")"
		}
		return n.times(of, e.min, e.max)
	}
	return n.empty
}

// marked writes the repetitions that have a mark, which is the same in every notation; it is ""
// for the others.
func marked(what string, least, most int) string {
	switch {
	case least == 0 && most == 1:
		return what + "?"
	case least == 0 && most < 0:
		return what + "*"
	case least == 1 && most < 0:
		return what + "+"
	}
	return ""
}

// braces writes repetitions as GBNF and EBNF do.
func braces(what string, least, most int) string {
	short := marked(what, least, most)
	switch {
	case short != "":
		return short
	case most < 0:
		return fmt.Sprintf("%s{%d,}", what, least)
	case least == most:
		return fmt.Sprintf("%s{%d}", what, least)
	}
	return fmt.Sprintf("%s{%d,%d}", what, least, most)
}

// quoted writes a text as a literal.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ' || r >= 0x7F:
			b.WriteString(escaped(r))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// bracketed writes a set of characters: by those that it lacks where these are ASCII, which
// each engine reads alike.
func bracketed(set class) string {
	var b strings.Builder
	b.WriteByte('[')
	if rest := without(anyRune, set); len(rest) > 0 && rest[len(rest)-1].to < 0x80 {
		b.WriteByte('^')
		set = rest
	}
	for _, s := range set {
		b.WriteString(inClass(s.from))
		if s.to > s.from {
			b.WriteString("-" + inClass(s.to))
		}
	}
	b.WriteByte(']')
	return b.String()
}

// inClass writes a character of a set. One that has a meaning there is written by its number.
func inClass(r rune) string {
	if r <= ' ' || r >= 0x7F || strings.ContainsRune(`[]^-\"/`, r) {
		return escaped(r)
	}
	return string(r)
}

// escaped writes a character by its number. XGrammar reads more than two digits after \x.
func escaped(r rune) string {
	if r <= 0xFFFF {
		return fmt.Sprintf(`\u%04X`, r)
	}
	return fmt.Sprintf(`\U%08X`, r)
}
