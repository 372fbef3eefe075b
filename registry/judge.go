package registry

import (
	"encoding/json"
	"unicode/utf8"
)

// A step is the unit in which judging is bounded, about a microsecond at most:
// one schema applied to one value by the first judge, half of that by the
// second. Long texts, lists and messages cost more than one.
const (
	maxSteps       = 600_000 // every value of the longest completion, once
	maxSecondSteps = 400_000 // of the second judge: up to 200,000 values
	bytesPerStep   = 64
	// Of what is looked up, sorted or copied, as many as one step pays for.
	namesPerStep   = 16
	sortedPerStep  = 2
	mergedPerStep  = 8
	writtenPerStep = 16 // bytes of canonical forms and of pointers
	// maxValueDepth bounds recursion for callers without a parser in front.
	maxValueDepth = 1_000
)

// judge is one judgement of one value.
type judge struct {
	tool  string
	steps int
	spent bool // the steps did not suffice
	quiet int  // above 0: only the verdict is asked for
	// thorough does without every short cut, as the second judge does, so that
	// the steps are a measure of its work.
	thorough bool
	deep     int // schemas that are being applied; counted if thorough
	path     []token
	found    collector
	near     nearMembers
}

// token is one step into the value.
type token struct {
	name  string
	index int // -1: name holds a member's name
}

// judged is what some schema has already judged of one object or array.
type judged struct {
	members map[string]struct{}
	items   map[int]struct{}
	upTo    int // items before this index
	all     bool
}

func (s *judged) member(name string) {
	if s == nil || s.all {
		return
	}
	if s.members == nil {
		s.members = map[string]struct{}{}
	}
	s.members[name] = struct{}{}
}

func (s *judged) item(i int) {
	if s == nil || s.all {
		return
	}
	if s.items == nil {
		s.items = map[int]struct{}{}
	}
	s.items[i] = struct{}{}
}

// merge adds what another schema has judged.
func (j *judge) merge(s, o *judged) {
	if s == nil || s.all || !j.spend((len(o.members)+len(o.items))/mergedPerStep) {
		return
	}
	s.all = o.all
	s.upTo = max(s.upTo, o.upTo)
	for name := range o.members {
		s.member(name)
	}
	for i := range o.items {
		s.item(i)
	}
}

// spend takes steps and tells whether there were enough.
func (j *judge) spend(n int) bool {
	j.steps += n
	if j.steps > maxSteps || j.thorough && j.steps > maxSecondSteps {
		j.spent = true
	}
	return !j.spent
}

// brief tells that the first fault settles the verdict.
func (j *judge) brief() bool { return j.quiet > 0 && !j.thorough }

// apply judges one value by one schema. Parts of the value that the schema
// judged are noted in seen where that is asked for (not nil) and the verdict
// is true. Where only the verdict is asked for, the first fault ends it.
func (j *judge) apply(n *node, v any, seen *judged) bool {
	if !j.spend(1) {
		return false
	}
	if j.thorough {
		j.deep++
		defer func() { j.deep-- }()
		if !j.spend(1 + j.deep/deepPerStep + n.extra(v)) {
			return false
		}
	}
	if n.never {
		j.invalid(n, v, faultNever)
		return false
	}
	if n.empty {
		return true
	}
	mistyped := false
	if n.types != 0 && !n.types.holds(v) {
		j.wrongType(n, v)
		if !j.thorough {
			return false
		}
		mistyped = true
	}
	own := seen
	if n.restProps != nil || n.restList != nil {
		own = &judged{}
	}
	ok := j.equalities(n, v) && !mistyped
	if !ok && j.brief() {
		return false
	}
	switch v := v.(type) {
	case string:
		ok = j.text(n, v) && ok
	case json.Number:
		ok = j.number(n, v) && ok
	case []any:
		ok = j.array(n, v, own) && ok
	case map[string]any:
		ok = j.object(n, v, own) && ok
	}
	if !ok && j.brief() {
		return false
	}
	branches := j.branches(n, v, own)
	ok = ok && branches
	if !ok && j.brief() {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		if n.restProps != nil {
			ok = j.restOfMembers(n, v, own, branches) && ok
			own.all = true
		}
	case []any:
		if n.restList != nil {
			ok = j.restOfItems(n, v, own) && ok
			own.all = true
		}
	}
	if own != seen && ok {
		j.merge(seen, own)
	}
	return ok
}

func (j *judge) equalities(n *node, v any) bool {
	ok := true
	if n.allowed != nil {
		has, cost := n.allowed.has(v)
		if !has {
			j.invalid(n, v, faultEnum)
		}
		ok = j.spend(cost) && (!j.thorough || n.alone || j.spend(n.allowed.comparing(v))) && has
	}
	if n.constant != nil {
		has, cost := n.constant.has(v)
		if !has {
			j.invalid(n, v, faultConst)
		}
		ok = j.spend(cost) && (!j.thorough || j.spend(n.constant.comparing(v))) && has && ok
	}
	return ok
}

func (j *judge) text(n *node, v string) bool {
	ok := true
	fail := func(f faultKind) {
		j.invalid(n, v, f)
		ok = false
	}
	if n.minLength > 0 || n.maxLength >= 0 {
		length := utf8.RuneCountInString(v)
		if length < n.minLength {
			fail(faultMinLength)
		}
		if n.maxLength >= 0 && length > n.maxLength {
			fail(faultMaxLength)
		}
	}
	if n.pattern != nil && (!j.spend(n.pattern.cost(v)) || !n.pattern.expr.MatchString(v)) {
		fail(faultPattern)
	}
	if n.format != nil && (!j.spend(len(v)/bytesPerStep) || !n.format.valid(v)) {
		fail(faultFormat)
	}
	return ok
}

// cost bounds the work of a match: each byte may meet each instruction.
func (p *pattern) cost(s string) int { return len(s) * p.size / bytesPerStep }

func (j *judge) number(n *node, v json.Number) bool {
	if n.minimum == nil && n.maximum == nil && n.above == nil && n.below == nil && n.multiple == nil {
		return true
	}
	d, ok := parseDecimal(string(v))
	if !ok {
		j.invalid(n, v, faultNever)
		return false
	}
	if j.thorough && !j.spend(2+4*size(v)) {
		return false
	}
	fail := func(f faultKind) {
		j.invalid(n, v, f)
		ok = false
	}
	if n.minimum != nil && d.compare(*n.minimum) < 0 {
		fail(faultMinimum)
	}
	if n.maximum != nil && d.compare(*n.maximum) > 0 {
		fail(faultMaximum)
	}
	if n.above != nil && d.compare(*n.above) <= 0 {
		fail(faultAbove)
	}
	if n.below != nil && d.compare(*n.below) >= 0 {
		fail(faultBelow)
	}
	if n.multiple != nil && (!j.spend(4) || !d.multipleOf(*n.multiple)) {
		fail(faultMultiple)
	}
	return ok
}

// branches judges the same value by the schemas beside this one.
func (j *judge) branches(n *node, v any, seen *judged) bool {
	ok := true
	if n.ref != nil {
		ok = j.apply(n.ref, v, seen)
	}
	for _, b := range n.all {
		if !ok && j.brief() {
			return false
		}
		ok = j.apply(b, v, seen) && ok
	}
	if len(n.any) > 0 && j.matches(n.any, v, seen) == 0 {
		j.invalid(n, v, faultAnyOf)
		ok = false
	}
	if len(n.one) > 0 {
		switch matches := j.matches(n.one, v, seen); {
		case matches == 0:
			j.invalid(n, v, faultOneOf)
			ok = false
		case matches > 1:
			j.invalid(n, v, faultOneOfMany)
			ok = false
		}
	}
	if n.not != nil && j.test(n.not, v, nil) {
		j.invalid(n, v, faultNot)
		ok = false
	}
	if n.cond != nil {
		ok = j.condition(n, v, seen) && ok
	}
	if object, is := v.(map[string]any); is && j.spend(len(n.dependents)/namesPerStep) {
		for _, d := range n.dependents {
			if _, has := object[d.name]; has {
				ok = j.apply(d.node, v, seen) && ok
			}
		}
	}
	return ok && !j.spent
}

func (j *judge) condition(n *node, v any, seen *judged) bool {
	branch, f := n.other, faultElse
	if j.test(n.cond, v, seen) {
		branch, f = n.then, faultThen
	}
	if branch == nil || j.test(branch, v, seen) {
		return true
	}
	j.invalid(n, v, f)
	return false
}

// matches counts the branches that accept the value. All are asked: each one
// that accepts may have judged other parts.
func (j *judge) matches(branches []*node, v any, seen *judged) int {
	count := 0
	for _, b := range branches {
		if j.test(b, v, seen) {
			count++
		}
	}
	return count
}

// test asks a question of the value. A false answer leaves no trace.
func (j *judge) test(n *node, v any, seen *judged) bool {
	j.quiet++
	defer func() { j.quiet-- }()
	if seen == nil {
		return j.apply(n, v, nil)
	}
	var own judged
	if !j.apply(n, v, &own) {
		return false
	}
	j.merge(seen, &own)
	return true
}

func (j *judge) enter(t token) { j.path = append(j.path, t) }
func (j *judge) leave()        { j.path = j.path[:len(j.path)-1] }
