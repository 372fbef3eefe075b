// Package charge is shared by the limiters of ratelimit and ratelimit/redislimit: rates
// and their buckets, the charges of one request, and the verdict on them as a refusal. It
// counts nothing itself. Values are not safe for concurrent use.
package charge

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/callgate/callgate/ratelimit/budget"
)

// Kind is a class of budgets. Each kind has its own table of buckets, so that names
// invented in one cannot evict those of another.
type Kind uint8

// The kinds; Kinds is their number.
const (
	Agents Kind = iota
	AgentTools
	Tools
	Projects
	Callers
	Kinds
)

// Name identifies a bucket within its kind.
type Name struct{ First, Second string }

// Charge is one token that a call must take from a budget.
type Charge struct {
	Kind      Kind
	Listed    bool // the limits hold the name, so it is not made up
	Own       bool // the budget is the name's own, not the default
	Name      Name
	Budget    Budget
	Undivided Budget // of which budget is one replica's share; zero: it is no share

	TableFull bool // there is no room for another bucket
}

// Charges are all that one request must take: at most one token of each kind of bucket, a
// slot, and an amount of each window.
type Charges struct {
	List    [Callers]Charge
	Count   int
	Agent   string // whose slot
	Slots   *int   // nil: not limited
	Windows []budget.Charge
	Amount  budget.Amount
	Share   int                // of so many replicas one's share is taken; 0: it is no share
	Held    budget.Reservation // of the windows, once all is taken
	Refusal error              // where the verdict is refused
}

// Add adds a token of a bucket; listed and own are as in Charge.
func (d *Charges) Add(k Kind, listed, own bool, n Name, b Budget) {
	a := &d.List[d.Count]
	a.Kind, a.Listed, a.Own, a.Name, a.Budget = k, listed, own, n, b
	d.Count++
}

// Valid reports whether every budget can be counted.
func (d *Charges) Valid() bool {
	for i := range d.Count {
		if !d.List[i].Budget.Valid() {
			return false
		}
	}
	return d.Slots == nil || *d.Slots >= 1
}

// Divide cuts valid charges to the share that one replica may grant alone. The rate
// is divided exactly. A bucket holds at least one token, since a bucket that holds
// none would never grant; slots round down, even to none, since else they would add
// up to more than the limit. A window's share is one of what is left of it.
func (d *Charges) Divide(replicas int) {
	d.Share = replicas
	for i := range d.Count {
		a := &d.List[i]
		a.Undivided = a.Budget
		a.Budget.Rate.per *= time.Duration(replicas)
		a.Budget.Burst = max(1, a.Budget.Burst/replicas)
	}
	if d.Slots != nil {
		d.Slots = new(*d.Slots / replicas)
	}
}

// BoundedName keeps names of agents and callers short, since they may be invented and
// are kept in memory. A digest is longer than any name that is kept as it is, so it
// equals none of them.
func BoundedName(s string) string {
	if len(s) <= sha256.Size*2 {
		return s
	}
	return Digest(s)
}

// Digest returns a text that stands for a name that is too long, or not fit for a key.
func Digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Path is the key of the budget in the limits, for the operator. It contains only
// names that the limits contain.
func (a *Charge) Path() string {
	switch a.Kind {
	case Agents:
		if !a.Own {
			return "default"
		}
		return "agents." + a.Name.First
	case AgentTools:
		return "agents." + a.Name.First + ".tools." + a.Name.Second
	case Tools:
		return "tools." + a.Name.First
	case Projects:
		return "projects." + a.Name.First + "/" + a.Name.Second
	}
	return "caller"
}
