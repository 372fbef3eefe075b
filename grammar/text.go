package grammar

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// maxRepeats is the largest number of repetitions that engines take. A longer text is not
// in the grammar where the schema states a maximum beyond it.
const maxRepeats = 2000

// maxPatternLength is how long a text with a pattern may be where the schema bounds it too.
const maxPatternLength = 200

// textRules are the constraints on a string. Lengths are in code points; most is -1 where
// there is no bound.
type textRules struct {
	least, most int
	patterns    []string // unanchored, as JSON Schema has them
	formats     []string
}

// string matches the JSON strings that keep the rules.
func (c *compiler) string(hint string, r textRules) (expr, error) {
	quote := literal(`"`)
	patterns := slices.Clone(r.patterns)
	for _, f := range r.formats {
		p, known := formats[f]
		if !known {
			return nil, fmt.Errorf("format %s cannot be written as a grammar", f)
		}
		patterns = append(patterns, `\A(?:`+p+`)\z`)
	}
	if len(patterns) == 0 {
		if r.most > maxRepeats {
			c.note("texts longer than %d characters are left out where the schema allows them up to %d", maxRepeats, r.most)
			r.most = maxRepeats
		}
		if r.least > maxRepeats {
			return nil, fmt.Errorf("minLength %d is beyond %d repetitions", r.least, maxRepeats)
		}
		if r.least <= 0 && r.most < 0 {
			return c.shared("string", func() expr { return seq(quote, times(c.characters(anyRune), 0, -1), quote) }), nil
		}
		return seq(quote, times(c.characters(anyRune), max(r.least, 0), r.most), quote), nil
	}
	if r.most > maxPatternLength {
		c.note("texts longer than %d characters are left out where the schema has a pattern or format and allows %d", maxPatternLength, r.most)
		r.most = maxPatternLength
	}
	m, err := newMatcher(patterns, max(r.least, 0), r.most)
	if err != nil {
		return nil, err
	}
	a, err := explore(m.start(), m.accepts, m.steps)
	if m.spent > maxMoves {
		err = errTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("a text with these patterns %w", err)
	}
	inside, err := c.expression(hint, a, c.characters, quote)
	if err != nil {
		return nil, err
	}
	return seq(quote, inside), nil
}

// matcher runs several patterns at once over one text, and counts its characters.
type matcher struct {
	programs    []*syntax.Prog
	classes     []class // the characters that no pattern tells apart
	least, most int
	limit       int        // characters are counted up to it
	takes       [][][]bool // by program, instruction and class: whether it takes the class
	spent       int        // threads that were moved, and instructions that were followed
	marks       [][]int    // by program and instruction: the last closure that met it
	closures    int
}

// maxMoves bounds the work on one text's patterns.
const maxMoves = 20_000_000

// textState is the state of a matcher. Sets has the threads of each program, as text:
// that makes it comparable.
type textState struct {
	sets  string
	begun bool
	count int
}

const matched = "!" // a program that has matched, whatever follows

func newMatcher(patterns []string, least, most int) (*matcher, error) {
	m := &matcher{least: least, most: most, limit: max(least, most+1)}
	cuts := []rune{0, firstSurrogate, lastSurrogate + 1}
	for _, p := range patterns {
		tree, err := syntax.Parse(p, syntax.Perl)
		if err != nil {
			return nil, errors.New("a pattern cannot be read")
		}
		prog, err := syntax.Compile(tree.Simplify())
		if err != nil {
			return nil, errors.New("a pattern cannot be compiled")
		}
		for i := range prog.Inst {
			in := &prog.Inst[i]
			if in.Op == syntax.InstEmptyWidth && syntax.EmptyOp(in.Arg)&^(syntax.EmptyBeginText|syntax.EmptyEndText) != 0 {
				return nil, errors.New(`a pattern that looks at lines or words (\b, (?m)) cannot be written as a grammar`)
			}
			for _, s := range runesOf(in) {
				cuts = append(cuts, s.from, s.to+1)
			}
		}
		m.programs = append(m.programs, prog)
		m.marks = append(m.marks, make([]int, len(prog.Inst)))
	}
	m.classify(cuts)
	return m, nil
}

// classify splits the characters at the cuts, and joins those that the same instructions
// take: a class of Unicode has hundreds of ranges, and is one set here.
func (m *matcher) classify(cuts []rune) {
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var sets []class // of the instructions, each once
	known := map[string]int{}
	numbers := make([][]int, len(m.programs)) // of the set of each instruction
	for i, prog := range m.programs {
		for at := range prog.Inst {
			set := runesOf(&prog.Inst[at])
			key := fmt.Sprint(set)
			if _, has := known[key]; !has {
				known[key] = len(sets)
				sets = append(sets, set)
			}
			numbers[i] = append(numbers[i], known[key])
		}
	}
	place := map[string]int{}
	var takes [][]bool // of each class: whether a set has it
	for i, from := range cuts {
		to := rune(lastRune)
		if i+1 < len(cuts) {
			to = cuts[i+1] - 1
		}
		part := intersect(class{{from, to}}, anyRune)
		if len(part) == 0 {
			continue
		}
		within := make([]bool, len(sets))
		for n, set := range sets {
			_, within[n] = slices.BinarySearchFunc(set, from, func(s span, r rune) int {
				switch {
				case s.to < r:
					return -1
				case s.from > r:
					return 1
				}
				return 0
			})
		}
		key := fmt.Sprint(within)
		at, has := place[key]
		if !has {
			at = len(m.classes)
			place[key] = at
			m.classes, takes = append(m.classes, nil), append(takes, within)
		}
		m.classes[at] = normal(append(m.classes[at], part...))
	}
	bySet := make([][]bool, len(sets))
	for number := range sets {
		for n := range m.classes {
			bySet[number] = append(bySet[number], takes[n][number])
		}
	}
	for _, own := range numbers {
		of := make([][]bool, len(own))
		for at, number := range own {
			of[at] = bySet[number]
		}
		m.takes = append(m.takes, of)
	}
}

// runesOf is the set of the characters that an instruction takes.
func runesOf(in *syntax.Inst) class {
	switch in.Op {
	case syntax.InstRune1, syntax.InstRune:
		if len(in.Rune) == 1 {
			set := class{{in.Rune[0], in.Rune[0]}}
			if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
				for r := unicode.SimpleFold(in.Rune[0]); r != in.Rune[0]; r = unicode.SimpleFold(r) {
					set = append(set, span{r, r})
				}
			}
			return normal(set)
		}
		var set class
		for i := 0; i+1 < len(in.Rune); i += 2 {
			set = append(set, span{in.Rune[i], in.Rune[i+1]})
		}
		return set
	case syntax.InstRuneAny:
		return class{{0, lastRune}}
	case syntax.InstRuneAnyNotNL:
		return class{{0, '\n' - 1}, {'\n' + 1, lastRune}}
	}
	return nil
}

func (m *matcher) start() textState {
	sets := make([]string, len(m.programs))
	return textState{sets: strings.Join(sets, ";")}
}

// threads decodes the set of one program.
func threads(set string) []uint32 {
	var out []uint32
	for _, r := range set {
		out = append(out, uint32(r)-threadBase)
	}
	return out
}

// threadBase moves the numbers of instructions beyond the marks of a state.
const threadBase = 0x100

// closure follows the instructions of a program that take no character. A pattern may begin anywhere.
func (m *matcher) closure(program int, from []uint32, flags syntax.EmptyOp) (out []uint32, match bool) {
	p, seen := m.programs[program], m.marks[program]
	m.closures++
	stack := append(slices.Clone(from), uint32(p.Start))
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] == m.closures {
			continue
		}
		seen[pc] = m.closures
		m.spent++
		switch in := &p.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^flags == 0 {
				stack = append(stack, in.Out)
			}
		case syntax.InstMatch:
			match = true
		case syntax.InstFail:
		default:
			out = append(out, pc)
		}
	}
	return out, match
}

func (m *matcher) steps(s textState) []stepTo[textState] {
	if m.most >= 0 && s.count >= m.most || m.spent > maxMoves {
		return nil
	}
	flags := syntax.EmptyOp(0)
	if !s.begun {
		flags = syntax.EmptyBeginText
	}
	sets := strings.Split(s.sets, ";")
	moving := make([][]uint32, len(sets))
	for i, set := range sets {
		if set == matched {
			continue
		}
		found, match := m.closure(i, threads(set), flags)
		if moving[i] = found; match {
			sets[i] = matched
		}
	}
	var out []stepTo[textState]
	for n, on := range m.classes {
		next := make([]string, len(sets))
		for i, set := range sets {
			if set == matched {
				next[i] = matched
				continue
			}
			next[i] = m.moved(i, moving[i], n)
		}
		out = append(out, stepTo[textState]{on, textState{strings.Join(next, ";"), true, min(s.count+1, m.limit)}})
	}
	return out
}

// moved gives the threads of a program after one character of a class.
func (m *matcher) moved(program int, from []uint32, of int) string {
	p := m.programs[program]
	m.spent += len(from)
	var after []uint32
	for _, pc := range from {
		if m.takes[program][pc][of] {
			after = append(after, p.Inst[pc].Out)
		}
	}
	slices.Sort(after)
	var b strings.Builder
	for _, pc := range slices.Compact(after) {
		b.WriteRune(rune(pc + threadBase))
	}
	return b.String()
}

func (m *matcher) accepts(s textState) bool {
	if s.count < m.least || m.most >= 0 && s.count > m.most {
		return false
	}
	flags := syntax.EmptyEndText
	if !s.begun {
		flags |= syntax.EmptyBeginText
	}
	for i, set := range strings.Split(s.sets, ";") {
		if set == matched {
			continue
		}
		if _, match := m.closure(i, threads(set), flags); !match {
			return false
		}
	}
	return true
}
