package grammar

import (
	"fmt"
	"io"
	"strings"
)

// Formats lists the notations of Write, sorted.
func Formats() []string { return []string{"ebnf", "gbnf", "json-schema", "lark"} }

// Write writes a grammar in a notation: gbnf is that of llama.cpp, ebnf that of XGrammar,
// lark that of Lark and llguidance, json-schema is a JSON Schema 2020-12 of a call. A grammar
// without a call, and an unknown notation, are errors.
func (g *Grammar) Write(w io.Writer, format string) error {
	if format != "json-schema" && len(g.rules) == 0 {
		return fmt.Errorf("no call can be written as a grammar")
	}
	switch format {
	case "json-schema":
		return g.writeSchema(w)
	case "gbnf", "ebnf":
		return g.write(w, notation{comment: "# ", defines: " ::= ", empty: `""`, literal: quoted, class: bracketed, name: func(s string) string { return s }, times: braces})
	case "lark":
		return g.write(w, lark)
	}
	return fmt.Errorf("found the format %q; expected one of %s", format, strings.Join(Formats(), ", "))
}
