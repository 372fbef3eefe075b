package grammar_test

import (
	"math/rand/v2"
	"strings"
)

// sampler makes texts of a grammar.
type sampler struct {
	rules
	random *rand.Rand
	depth  map[*node]int // the least depth of rules at which a part ends
	left   int           // rules to enter before the shortest way is taken
	out    strings.Builder
}

const endless = 1 << 30

func newSampler(g rules, seed uint64) *sampler {
	s := &sampler{rules: g, random: rand.New(rand.NewPCG(seed, 1)), depth: map[*node]int{}}
	for changed := true; changed; {
		changed = false
		for _, e := range g {
			changed = s.measure(e) || changed
		}
	}
	return s
}

func (s *sampler) depthOf(e *node) int {
	if e.kind == ref {
		e = s.rules[e.name]
		if d, known := s.depth[e]; known && d < endless {
			return d + 1
		}
		return endless
	}
	return s.depth[e]
}

func (s *sampler) measure(e *node) (changed bool) {
	d := 0
	for i, p := range e.parts {
		changed = s.measure(p) || changed
		switch of := s.depthOf(p); {
		case e.kind == alt && i == 0:
			d = of
		case e.kind == alt:
			d = min(d, of)
		case e.kind == rep && e.min == 0:
		default:
			d = max(d, of)
		}
	}
	before, known := s.depth[e]
	s.depth[e] = d
	return changed || !known || before != d
}

func (s *sampler) sample(start string) string {
	s.out.Reset()
	s.left = 200
	s.write(s.rules[start])
	return s.out.String()
}

func (s *sampler) write(e *node) {
	switch e.kind {
	case text:
		s.out.WriteString(e.text)
	case set:
		span := e.spans[s.random.IntN(len(e.spans))]
		c := span[0] + rune(s.random.IntN(int(span[1]-span[0])+1))
		if s.random.IntN(4) == 0 {
			c = []rune{span[0], span[1]}[s.random.IntN(2)]
		}
		s.out.WriteRune(c)
	case seq:
		for _, p := range e.parts {
			s.write(p)
		}
	case alt:
		way := e.parts[s.random.IntN(len(e.parts))]
		if s.left <= 0 || s.depthOf(way) >= endless {
			for _, p := range e.parts {
				if s.depthOf(p) < s.depthOf(way) {
					way = p
				}
			}
		}
		s.write(way)
	case rep:
		n := e.min
		for s.left > 0 && (e.max < 0 || n < e.max) && s.random.IntN(3) > 0 {
			n++
		}
		if e.max >= 0 && s.random.IntN(20) == 0 && s.left > 0 {
			n = e.max
		}
		for range n {
			s.write(e.parts[0])
		}
	case ref:
		s.left--
		s.write(s.rules[e.name])
	}
}
