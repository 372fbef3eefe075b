package schema

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/callgate/callgate/internal/safe"
)

// agreement compares both evaluators and the programs of plain schemas, for all schemas of
// one Compiler: when they are compiled or, beyond maxAgreementSteps, before their first use.
type agreement struct {
	schemas sync.Map     // answers of disagreement, by the digest of the closed schema
	agreed  sync.Map     // rules of parts on which there was no disagreement
	spent   atomic.Int64 // steps
}

// These bound the work of comparing: of one Compiler while it compiles, and of one schema.
// Values beyond these bounds are left to the differential fuzzer (make differential).
const (
	maxAgreementSteps       = 1_000_000
	maxSchemaAgreementSteps = 20_000
)

// disagreement returns a value on which the program of a schema or the evaluators disagree, or "".
// Comparing that panics counts as one.
func (a *agreement) disagreement(s *Schema) (found string) {
	defer safe.Catch(func(panicked error) { found = panicked.Error() })
	digest := sha256.Sum256(s.secondary.bundle)
	if known, ok := a.schemas.Load(digest); ok {
		return known.(string)
	}
	rules := map[string]bool{}
	probes := s.plain.Probes(func(rule string) bool {
		_, agreed := a.agreed.Load(rule)
		seen := agreed || rules[rule]
		rules[rule] = true
		return seen
	})
	found, whole := a.compare(s, probes)
	if whole && found == "" {
		for rule := range rules {
			a.agreed.Store(rule, true)
		}
	}
	a.schemas.Store(digest, found)
	return found
}

// compare evaluates values until there is a disagreement, which it returns. whole is false if
// there were too many values.
func (a *agreement) compare(s *Schema, values [][]byte) (found string, whole bool) {
	unseen, spent := false, 0 // unseen: the secondary evaluator does not see all enums
	s.root.walk(func(n *node) { unseen = unseen || n.enumPrimaryOnly })
	for _, value := range values {
		steps, accepted := s.plain.Steps(value)
		spent += steps
		if spent > maxSchemaAgreementSteps {
			return "", false
		}
		a.spent.Add(int64(steps))
		v, unreadable := decodeSchema(value)
		if unreadable != nil && !accepted {
			continue // a number out of range, which is refused before an evaluator sees it
		}
		own := (&evaluation{}).apply(s.root, v, nil)
		second := s.secondary.accepts(v, 0) == nil
		if own != accepted || second != accepted && !(second && unseen) {
			return fmt.Sprintf("%.200s (valid by its program: %v; by the primary evaluator: %v; by the secondary: %v)", value, accepted, own, second), true
		}
	}
	return "", true
}

// lateComparison compares the evaluators of a schema before its program is first used, so
// that many schemas load fast. Until they were found to agree, the program accepts nothing.
type lateComparison struct {
	with   *agreement
	once   sync.Once
	agrees bool
}

func (l *lateComparison) agree(s *Schema) bool {
	l.once.Do(func() { l.agrees = l.with.disagreement(s) == "" })
	return l.agrees
}
