package schema

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/callgate/callgate/internal/decimal"
)

// evaluation is the state of evaluating one value.
type evaluation struct {
	tool      string
	steps     int
	exhausted bool // the steps did not suffice
	quiet     int  // above 0: only the verdict is asked for
	// exhaustive takes no short cut, as the secondary evaluator does, so that
	// the steps measure its work.
	exhaustive  bool
	depth       int // schemas that are being applied; counted if thorough
	path        []pathToken
	found       collector
	suggestions memberSuggestions
}

// evaluated is the set of members and items of one value that schemas have evaluated.
type evaluated struct {
	members map[string]struct{}
	items   map[int]struct{}
	upTo    int // items before this index
	all     bool
}

func (s *evaluated) member(name string) {
	if s == nil || s.all {
		return
	}
	if s.members == nil {
		s.members = map[string]struct{}{}
	}
	s.members[name] = struct{}{}
}

func (s *evaluated) item(i int) {
	if s == nil || s.all {
		return
	}
	if s.items == nil {
		s.items = map[int]struct{}{}
	}
	s.items[i] = struct{}{}
}

// merge adds the members and items that another schema has evaluated.
func (j *evaluation) merge(s, o *evaluated) {
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

// spend takes steps and reports whether there were enough.
func (j *evaluation) spend(n int) bool {
	j.steps += n
	if j.steps > maxSteps || j.exhaustive && j.steps > maxSecondarySteps {
		j.exhausted = true
	}
	return !j.exhausted
}

// failFast reports whether the first fault settles the verdict.
func (j *evaluation) failFast() bool { return j.quiet > 0 && !j.exhaustive }

// apply evaluates one value by one schema. Parts of the value that the schema
// evaluated are added to seen, unless seen is nil or the verdict is false. Where
// only the verdict counts, the first fault ends the evaluation.
func (j *evaluation) apply(n *node, v any, seen *evaluated) bool {
	if !j.spend(1) {
		return false
	}
	if j.exhaustive {
		j.depth++
		defer func() { j.depth-- }()
		if !j.spend(1 + j.depth/deepPerStep + n.secondaryExtra(v)) {
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
		if !j.exhaustive {
			return false
		}
		mistyped = true
	}
	own := seen
	if n.unevaluatedProperties != nil || n.unevaluatedItems != nil {
		own = &evaluated{}
	}
	ok := j.enumAndConst(n, v) && !mistyped
	if !ok && j.failFast() {
		return false
	}
	switch v := v.(type) {
	case string:
		ok = j.stringKeywords(n, v) && ok
	case json.Number:
		ok = j.numberKeywords(n, v) && ok
	case []any:
		ok = j.arrayKeywords(n, v, own) && ok
	case map[string]any:
		ok = j.objectKeywords(n, v, own) && ok
	}
	if !ok && j.failFast() {
		return false
	}
	branches := j.inPlaceKeywords(n, v, own)
	ok = ok && branches
	if !ok && j.failFast() {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		if n.unevaluatedProperties != nil {
			ok = j.unevaluatedProperties(n, v, own, branches) && ok
			own.all = true
		}
	case []any:
		if n.unevaluatedItems != nil {
			ok = j.unevaluatedItems(n, v, own) && ok
			own.all = true
		}
	}
	if own != seen && ok {
		j.merge(seen, own)
	}
	return ok
}

func (j *evaluation) enumAndConst(n *node, v any) bool {
	ok := true
	if n.enum != nil {
		has, cost := n.enum.has(v)
		if !has {
			j.invalid(n, v, faultEnum)
		}
		ok = j.spend(cost) && (!j.exhaustive || n.enumPrimaryOnly || j.spend(n.enum.secondaryCompareCost(v))) && has
	}
	if n.constant != nil {
		has, cost := n.constant.has(v)
		if !has {
			j.invalid(n, v, faultConst)
		}
		ok = j.spend(cost) && (!j.exhaustive || j.spend(n.constant.secondaryCompareCost(v))) && has && ok
	}
	return ok
}

func (j *evaluation) stringKeywords(n *node, v string) bool {
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
	if n.format != nil && (!j.spend(len(v)/bytesPerStep) || !n.format.Valid(v)) {
		fail(faultFormat)
	}
	return ok
}

func (j *evaluation) numberKeywords(n *node, v json.Number) bool {
	if n.minimum == nil && n.maximum == nil && n.exclusiveMinimum == nil && n.exclusiveMaximum == nil && n.multipleOf == nil {
		return true
	}
	d, ok := decimal.Parse(string(v))
	if !ok {
		j.invalid(n, v, faultNever)
		return false
	}
	if j.exhaustive && !j.spend(2+4*numberCost(v)) {
		return false
	}
	fail := func(f faultKind) {
		j.invalid(n, v, f)
		ok = false
	}
	if n.minimum != nil && d.Compare(*n.minimum) < 0 {
		fail(faultMinimum)
	}
	if n.maximum != nil && d.Compare(*n.maximum) > 0 {
		fail(faultMaximum)
	}
	if n.exclusiveMinimum != nil && d.Compare(*n.exclusiveMinimum) <= 0 {
		fail(faultExclusiveMinimum)
	}
	if n.exclusiveMaximum != nil && d.Compare(*n.exclusiveMaximum) >= 0 {
		fail(faultExclusiveMaximum)
	}
	if n.multipleOf != nil && (!j.spend(4) || !d.IsMultipleOf(*n.multipleOf)) {
		fail(faultMultiple)
	}
	return ok
}

// inPlaceKeywords evaluates the same value by the in-place applicators of a schema.
func (j *evaluation) inPlaceKeywords(n *node, v any, seen *evaluated) bool {
	ok := true
	if n.ref != nil {
		ok = j.apply(n.ref, v, seen)
	}
	for _, b := range n.allOf {
		if !ok && j.failFast() {
			return false
		}
		ok = j.apply(b, v, seen) && ok
	}
	if len(n.anyOf) > 0 && j.countMatches(n.anyOf, v, seen) == 0 {
		j.invalid(n, v, faultAnyOf)
		ok = false
	}
	if len(n.oneOf) > 0 {
		switch matches := j.countMatches(n.oneOf, v, seen); {
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
	if n.ifSchema != nil {
		ok = j.conditional(n, v, seen) && ok
	}
	if object, is := v.(map[string]any); is && j.spend(len(n.dependentSchemas)/namesPerStep) {
		for _, d := range n.dependentSchemas {
			if _, has := object[d.name]; has {
				ok = j.apply(d.node, v, seen) && ok
			}
		}
	}
	return ok && !j.exhausted
}

func (j *evaluation) conditional(n *node, v any, seen *evaluated) bool {
	branch, f := n.elseSchema, faultElse
	if j.test(n.ifSchema, v, seen) {
		branch, f = n.thenSchema, faultThen
	}
	if branch == nil || j.test(branch, v, seen) {
		return true
	}
	j.invalid(n, v, f)
	return false
}

// countMatches counts the branches that accept the value. All are asked: each one
// that accepts may have evaluated other parts.
func (j *evaluation) countMatches(branches []*node, v any, seen *evaluated) int {
	count := 0
	for _, b := range branches {
		if j.test(b, v, seen) {
			count++
		}
	}
	return count
}

// test evaluates without reporting faults. A false verdict leaves nothing in seen.
func (j *evaluation) test(n *node, v any, seen *evaluated) bool {
	j.quiet++
	defer func() { j.quiet-- }()
	if seen == nil {
		return j.apply(n, v, nil)
	}
	var own evaluated
	if !j.apply(n, v, &own) {
		return false
	}
	j.merge(seen, &own)
	return true
}

func (j *evaluation) push(t pathToken) { j.path = append(j.path, t) }
func (j *evaluation) pop()             { j.path = j.path[:len(j.path)-1] }
