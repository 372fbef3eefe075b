package budget

import "strings"

// found has the charges and the price for a scope.
type found struct {
	charges []Charge
	price   Price
	priced  bool
}

const (
	// maxKnown is how many scopes are kept, and maxKnownBytes how long their names may be: about a
	// MiB. Callers choose the names of models that a prefix serves.
	maxKnown      = 1 << 12
	maxKnownBytes = 512
)

// lookUp finds the charges and the price of a request. The caller must not change the result.
func (s *Set) lookUp(of Scope) found {
	if s == nil || len(s.Budgets) == 0 {
		return found{}
	}
	s.mu.RLock()
	f, ok := s.known[of]
	s.mu.RUnlock()
	if ok {
		return f
	}
	for i := range s.Budgets {
		if b := &s.Budgets[i]; b.covers(&of) {
			f.charges = append(f.charges, Charge{b, b.subject(&of)})
		}
	}
	f.price, f.priced = s.Price(of.Model)
	if len(of.Principal)+len(of.Agent)+len(of.Workspace)+len(of.Project)+len(of.Model) > maxKnownBytes {
		return f
	}
	of.Model = strings.Clone(of.Model) // it may be a part of a long request
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxKnown {
		s.known = map[Scope]found{}
	}
	s.known[of] = f
	return f
}
