package approval

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/callgate/callgate/internal/duration"
)

// The bounds of a rule.
const (
	MaxApprove  = 5
	MinWithin   = time.Minute
	MaxWithin   = 7 * 24 * time.Hour
	MaxRemember = 30 * 24 * time.Hour
	MaxHint     = 1024 // bytes
)

// By says who answers a rule.
type By string

// The people who can answer a rule. The zero value is ByApprovers.
const (
	ByApprovers By = "approvers"
	// ByCaller lets the person at the client answer, in the client's own protocol. On a
	// face that cannot ask its caller, approvers answer.
	ByCaller By = "caller"
)

// Scope is for which calls a yes may stand, beyond the one that it was given to.
type Scope string

// The scopes. A grant always holds for one rule, principal, user, agent, workspace, project,
// tool, version and definition.
const (
	Same     Scope = "same"   // the same arguments, in any thread
	InThread Scope = "thread" // any arguments that the policy permits, in the same thread
	AnyCall  Scope = "tool"   // any arguments that the policy permits, in any thread
)

// Scopes are all scopes.
func Scopes() []Scope { return []Scope{AnyCall, InThread, Same} }

// covers reports whether a yes for the scope s is one for the scope t, too. Same and
// InThread do not cover each other: either holds for calls that the other does not.
func (s Scope) covers(t Scope) bool { return s == t || s == AnyCall && t != "" }

// Rule says who must approve a call, and within what time.
type Rule struct {
	Name string
	// Approve is how many different people must say yes.
	Approve int `key:"approve" of:"how many people must approve a call" range:"1..5"`
	// Within is the time that they have, from asking.
	Within time.Duration `key:"within" of:"how long people have to decide" range:"1m..7d"`
	// Remember is how long a yes may stand at most, for each scope that may be
	// remembered.
	Remember map[Scope]time.Duration `key:"remember"`
	Hint     string                  `key:"hint"` // for the people who decide
	By       By                      `key:"by" of:"who decides" words:"approvers caller"`
}

// Rules are the rules of a configuration by their names.
type Rules map[string]Rule

// Needed returns how many different people must say yes by a rule; 0 if there is no such rule.
func (r Rules) Needed(name string) int { return r[name].Approve }

// Validate returns an error unless the rule is within its bounds.
func (r *Rule) Validate() error {
	switch {
	case r.Name == "" || len(r.Name) > maxName:
		return fmt.Errorf("found a name of %d bytes, expected 1 to %d", len(r.Name), maxName)
	case r.Approve < 1 || r.Approve > MaxApprove:
		return fmt.Errorf("approve: found %d, expected 1 to %d", r.Approve, MaxApprove)
	case r.Within < MinWithin || r.Within > MaxWithin:
		return fmt.Errorf("within: found %s, expected %s to %s",
			duration.Spell(r.Within), duration.Spell(MinWithin), duration.Spell(MaxWithin))
	case len(r.Hint) > MaxHint:
		return fmt.Errorf("hint: found %d bytes, expected at most %d", len(r.Hint), MaxHint)
	case r.By != "" && r.By != ByApprovers && r.By != ByCaller:
		return fmt.Errorf("by: found %.20q, expected approvers or caller", r.By)
	case r.By == ByCaller && r.Approve > 1:
		return errors.New("approve: a caller is one person, and its rule needs one yes")
	}
	for scope, most := range r.Remember {
		if !slices.Contains(Scopes(), scope) {
			return fmt.Errorf("remember: found %.20q, expected same, thread or tool", scope)
		}
		if most < MinWithin || most > MaxRemember {
			return fmt.Errorf("remember: found %s, expected %s to %s",
				duration.Spell(most), duration.Spell(MinWithin), duration.Spell(MaxRemember))
		}
	}
	return nil
}
