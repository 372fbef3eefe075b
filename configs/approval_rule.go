package configs

import "time"

// The bounds of a rule of approval.
const (
	maxApprove  = 5
	minWithin   = time.Minute
	maxWithin   = 7 * 24 * time.Hour
	maxRemember = 30 * 24 * time.Hour
	maxHint     = 1024 // bytes
)

// By says who answers a rule.
type By string

// Who answers a rule.
const (
	ByApprovers By = "approvers"
	// ByCaller lets the person at the client answer, where the client's protocol can ask.
	ByCaller By = "caller"
)

// Scope is for which calls a yes may stand, beyond the one that it was given to.
type Scope string

// The scopes.
const (
	Same     Scope = "same"   // the same arguments, in any thread
	InThread Scope = "thread" // all calls of the tool in the same thread
	AnyCall  Scope = "tool"   // all calls of the tool
)

// ApprovalRule says who must approve a call, and within what time.
type ApprovalRule struct {
	Name    string
	Approve int           // how many different people must say yes
	Within  time.Duration // that they have, from asking
	// Remember is how long a yes may stand at most, for each scope that may be remembered.
	Remember map[Scope]time.Duration
	Hint     string // for the people who decide
	By       By
}
