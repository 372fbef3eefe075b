package schema

import (
	"regexp"
	"regexp/syntax"
)

// pattern is a regular expression with the cost of matching one byte.
type pattern struct {
	source string
	expr   *regexp.Regexp
	size   int
}

func newPattern(source string) *pattern {
	return &pattern{source: source, expr: regexp.MustCompile(source), size: patternSize(source)}
}

// cost bounds the work of a match: each byte may meet each instruction.
func (p *pattern) cost(s string) int { return len(s) * p.size / bytesPerStep }

// patternSize is the number of instructions that a pattern compiles to, which bounds
// the cost of matching one byte. An invalid pattern has none.
func patternSize(pattern string) int {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}
