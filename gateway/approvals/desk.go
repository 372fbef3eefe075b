// Package approvals is where people decide calls that the policy asks them for: it opens
// approvals, takes votes, and ends approvals and grants. Every act is in the audit log before
// it counts. Package approval defines approvals and says who may vote, a store keeps them, and the
// kernel decides whether a call may run.
package approvals

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/journal"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// Kernel is the part of a kernel that a desk uses.
type Kernel interface {
	Approvals() (approval.Rules, approval.People)
	Writer() *journal.Writer
	ToolVersion(name, version string) (*registry.Entry, error)
}

// Observer counts what people are asked and say. It must not block, and must be safe for
// concurrent use.
type Observer interface {
	// ApprovalActed counts an act by a rule: a code of the audit log's event approval.
	ApprovalActed(rule string, code refusal.Code)
	// ApprovalDecided takes the time from asking to the decision.
	ApprovalDecided(rule string, took time.Duration)
	// ApprovalsKept takes how many approvals wait for votes, and how many grants stand.
	ApprovalsKept(waiting, grants int)
}

// Deps are the parts of a desk. Without a store nobody can be asked.
type Deps struct {
	Store    store.Approvals
	Observer Observer // may be nil
	Now      func() time.Time
	Replica  string
}

// Desk is safe for concurrent use.
type Desk struct {
	deps    Deps
	kernel  func() Kernel
	waiting atomic.Int64 // as last measured
	changes atomic.Int64 // how often something else was measured than before

	measuring sync.Mutex
	measured  measured
	voted     map[string]*approval.Approval // by their ids, as last measured; without arguments
}

// New returns the desk of a kernel, which may be made after it.
func New(kernel func() Kernel, deps Deps) *Desk {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	return &Desk{deps: deps, kernel: kernel}
}

var errNoStore = errors.New("no approvals are kept here")

// ask asks the store, and contains its panics.
func ask[T any](ctx context.Context, d *Desk, question func(context.Context, store.Approvals) (T, error)) (answer T, err error) {
	if d.deps.Store == nil {
		return answer, errNoStore
	}
	ctx, cancel := context.WithTimeout(ctx, gateway.StoreWait)
	defer cancel()
	defer safe.RecoverZero(&answer, &err)
	return question(ctx, d.deps.Store)
}

// Consents implements consent.Reader.
func (d *Desk) Consents(ctx context.Context, call *approval.Call, digest string,
	keys []string) ([]approval.Approval, []approval.Grant, error) {
	type found struct {
		approvals []approval.Approval
		grants    []approval.Grant
	}
	f, err := ask(ctx, d, func(ctx context.Context, s store.Approvals) (f found, err error) {
		f.approvals, f.grants, err = s.Consents(ctx, call.Principal, digest, keys)
		return f, err
	})
	return f.approvals, f.grants, err
}

// Open asks people to approve a call that was refused because it needs that. A call that is
// asked for already, and waits, is asked for once: Open returns that approval. The error is a
// *refusal.Error.
func (d *Desk) Open(ctx context.Context, c *gateway.Call) (approval.Approval, error) {
	a, record, err := c.NewApproval()
	if err != nil {
		return a, refusal.From(refusal.Approval, err)
	}
	rules, people := d.kernel().Approvals()
	if found, _, err := d.Consents(ctx, &a.Call, a.Digest, nil); err != nil {
		return a, refusal.At(refusal.Approval, refusal.StoreUnavailable,
			"Approvals cannot be read now, so nobody was asked and nothing was executed. Say so; the call can be sent again later.").WithCause(err)
	} else if i := slices.IndexFunc(found, func(f approval.Approval) bool {
		return f.Key() == a.Key() && f.Pending(rules, people, d.deps.Now())
	}); i >= 0 {
		return found[i], nil
	}
	// An event in the log without its approval does no harm: nobody can vote, and nothing can
	// run by it. An approval that is not in the log would.
	if err := d.kernel().Writer().Write(ctx, record); err != nil {
		return a, refusal.From(refusal.Approval, err)
	}
	opened, err := ask(ctx, d, func(ctx context.Context, s store.Approvals) (approval.Approval, error) {
		kept, _, err := s.Ask(ctx, a)
		return kept, err
	})
	switch {
	case errors.Is(err, store.ErrFull):
		refused := refusal.At(refusal.Approval, refusal.Overloaded, "Too many calls wait for people's approval, so nobody was asked and nothing was executed. Say so; the call can be sent again later.").WithCause(err)
		return a, refused
	case err != nil:
		return a, refusal.At(refusal.Approval, refusal.StoreUnavailable,
			"Nothing was executed, and whether people were asked is not known, since the store failed. Say so; the same call can be sent again later, and is asked for once.").WithCause(err)
	}
	if opened.ID == a.ID {
		d.count(a.Rules, audit.Requested)
	}
	return opened, nil
}

// refuseRead is the refusal where the store cannot be read.
func refuseRead(err error) *refusal.Error {
	return refusal.At(refusal.Approval, refusal.StoreUnavailable, "Approvals cannot be read now. Try again later.").WithCause(err)
}

func (d *Desk) count(rules []string, code refusal.Code) {
	if d.deps.Observer == nil {
		return
	}
	for _, rule := range rules {
		d.deps.Observer.ApprovalActed(rule, code)
	}
}
