// Package window finds what an expression matches in a text that comes in pieces, exactly as
// regexp.Regexp does in the whole: leftmost, and by the order of the alternatives. The output of
// a Scanner never has the beginning of a match: text is held back from where one may have begun,
// until it is known whether it is one. So what is held is no longer than the longest match that may
// still come about, and the caller bounds the text.
//
// The simulation is that of Pike, over the programs of regexp/syntax: each byte is read once for each
// thread, and there are at most as many threads as the program has instructions. The package has no
// I/O.
package window

import (
	"regexp/syntax"
	"unicode/utf8"
)

// Expr is an expression of RE2. It is immutable.
type Expr struct {
	prog *syntax.Prog
	// first are the bytes that a match can begin with.
	first [256]bool
}

// Compile reads an expression.
func Compile(expr string) (*Expr, error) {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	e := &Expr{prog: prog}
	e.findFirst(uint32(prog.Start), make([]bool, len(prog.Inst)))
	return e, nil
}

// findFirst notes the bytes that can come first from an instruction on.
func (e *Expr) findFirst(pc uint32, seen []bool) {
	if seen[pc] {
		return
	}
	seen[pc] = true
	switch in := &e.prog.Inst[pc]; in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		e.findFirst(in.Out, seen)
		e.findFirst(in.Arg, seen)
	case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
		e.findFirst(in.Out, seen)
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		for b := range utf8.RuneSelf {
			e.first[b] = e.first[b] || in.MatchRune(rune(b))
		}
		for b := utf8.RuneSelf; b < len(e.first); b++ {
			e.first[b] = true // not worth telling them apart
		}
	}
}

// CanBeEmpty reports whether the expression can match a text of no bytes somewhere.
func (e *Expr) CanBeEmpty() bool {
	return e.reachesMatch(uint32(e.prog.Start), make([]bool, len(e.prog.Inst)))
}

func (e *Expr) reachesMatch(pc uint32, seen []bool) bool {
	if seen[pc] {
		return false
	}
	seen[pc] = true
	switch in := &e.prog.Inst[pc]; in.Op {
	case syntax.InstMatch:
		return true
	case syntax.InstAlt, syntax.InstAltMatch:
		return e.reachesMatch(in.Out, seen) || e.reachesMatch(in.Arg, seen)
	case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
		return e.reachesMatch(in.Out, seen)
	}
	return false
}

// Piece is a piece of a text that was let out.
type Piece struct {
	Text []byte
	// Of is how many bytes of the text that came in it stands for: those of Text where it was let
	// out as it came.
	Of int
}

// Join returns the texts of pieces, one after the other.
func Join(pieces []Piece) []byte {
	if len(pieces) == 1 {
		return pieces[0].Text
	}
	var all []byte
	for _, p := range pieces {
		all = append(all, p.Text...)
	}
	return all
}

// Divide returns the parts that a text was put together of, by their lengths, as the pieces leave
// them. A replacement for bytes of several parts is in the first of them.
func Divide(pieces []Piece, lengths []int) [][]byte {
	parts := make([][]byte, len(lengths))
	at, left := -1, 0
	for _, p := range pieces {
		text, asItCame := p.Text, p.Of == len(p.Text)
		for of := p.Of; of > 0; {
			for left == 0 {
				if at++; at == len(parts) {
					return parts
				}
				left = lengths[at]
			}
			n := min(of, left)
			of, left = of-n, left-n
			if asItCame {
				parts[at], text = append(parts[at], text[:n]...), text[n:]
			} else {
				parts[at], text = append(parts[at], text...), nil
			}
		}
	}
	return parts
}
