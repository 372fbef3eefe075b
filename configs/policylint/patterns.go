package policylint

import (
	"regexp/syntax"
	"slices"
)

// describesAll reports whether a pattern describes all of the command that it matches: from its begin to its end,
// and without a class of characters that takes one by which a shell begins something else.
func describesAll(pattern string) bool {
	p, err := syntax.Parse(pattern, syntax.Perl)
	return err == nil && anchored(p, syntax.OpBeginText, false) && anchored(p, syntax.OpEndText, true) && !admitsAny(p)
}

// anchored reports whether whatever a pattern matches begins, or ends, where the text does.
func anchored(p *syntax.Regexp, at syntax.Op, last bool) bool {
	switch p.Op {
	case at:
		return true
	case syntax.OpCapture:
		return anchored(p.Sub[0], at, last)
	case syntax.OpConcat:
		i := 0
		if last {
			i = len(p.Sub) - 1
		}
		return anchored(p.Sub[i], at, last)
	case syntax.OpAlternate:
		return !slices.ContainsFunc(p.Sub, func(sub *syntax.Regexp) bool { return !anchored(sub, at, last) })
	}
	return false
}

// ofShell are the characters by which a shell begins something else.
const ofShell = ";|&<>$`\n"

func admitsAny(p *syntax.Regexp) bool {
	switch p.Op {
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return true
	case syntax.OpCharClass:
		for _, c := range ofShell {
			for i := 0; i < len(p.Rune); i += 2 {
				if p.Rune[i] <= c && c <= p.Rune[i+1] {
					return true
				}
			}
		}
	}
	return slices.ContainsFunc(p.Sub, admitsAny)
}
