package gateway

import (
	"net/url"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/consent"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// NewApproval returns what people are asked for by a call that was refused because it needs
// their approval, and the record of asking.
func (c *Call) NewApproval() (approval.Approval, audit.Record, error) {
	call, err := c.approvalCall()
	if err != nil {
		return approval.Approval{}, audit.Record{}, err
	}
	asks := c.approvals.askRules
	if len(asks) == 0 {
		asks = c.permission.decision.Asks
	}
	a, err := approval.Open(approval.Approval{
		ID: c.id, Call: call, Rules: asks, Rows: consent.ShownRows(c.permission.decision.Rows), Config: c.config.Digest, Ledger: c.storedLedger(),
		Repeat: c.repeat(),
	}, c.config.Approvals, c.kernel.deps.Now())
	if err != nil {
		return approval.Approval{}, audit.Record{}, err
	}
	r := c.record(audit.Approval)
	r.Code, r.Approvals, r.Until = audit.Requested, []string{a.Digest}, a.Until
	r.Rules, r.Rows = c.countedRules(asks), c.permission.decision.Rows
	return a, r, nil
}

// approvalRules are the rules by which the call must be approved, each with the number of people
// who must say yes.
func (c *Call) approvalRules() []string { return c.countedRules(c.permission.decision.Asks) }

// countedRules are rules, each with the number of people who must say yes.
func (c *Call) countedRules(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	rules := make([]string, len(names))
	for i, name := range names {
		rules[i] = audit.RuleVotes(name, c.config.Approvals.Needed(name), c.config.Approvals[name].By == approval.ByCaller)
	}
	return rules
}

// Using are the approvals and grants by which people allow the call. They are used up where
// it is dispatched or handed over.
func (c *Call) Using() []string { return c.approvals.using }

// SetKey notes the idempotency key of the call. If the call has to ask people, the one that runs by
// their approval takes the key (see Repeated).
func (c *Call) SetKey(key string) { c.held.key = key }

// repeat is the idempotency key that an approval of the call keeps. The key of answers is of none: the
// answers are not kept with an approval.
func (c *Call) repeat() approval.Repeat {
	if c.held.key == "" || elicit.IsAnswerKey(c.held.key) {
		return approval.Repeat{}
	}
	return approval.Repeat{Key: c.held.key, Digest: c.idempotencyDigest()}
}

// Repeated is the call as the store opens it under the key that its approval was asked under, so
// that the request which asked gets its outcome when it comes again; ok is false where there is
// none, and for one that is handed over, which has no outcome here.
func (c *Call) Repeated() (call store.Call, ok bool) {
	again := c.approvals.usesRepeat
	if again.Key == "" && c.admission != nil {
		again = c.admission.repeat
	}
	if again.Key == "" || c.mode != ModeCall {
		return store.Call{}, false
	}
	return store.Call{ID: c.id, Scope: c.storeScope(), Key: again.Key, Digest: again.Digest}, true
}

// TakesUp is the approval that the call takes up, as of Admission.TakeUp; empty: none.
func (c *Call) TakesUp() string {
	if c.admission == nil {
		return ""
	}
	return c.admission.takesUp
}

// Principal is the owner of the call; empty where no credentials are required.
func (c *Call) Principal() string { return c.storeScope().Principal }

// Approvals are the rules by which people approve calls, and what voters may do, by the
// configuration of now.
func (k *Kernel) Approvals() (approval.Rules, approval.People) {
	config := k.config.Load()
	return config.Approvals, config.people()
}

// ApprovalWait is how long a request waits for people if its caller cannot be told later.
func (k *Kernel) ApprovalWait() time.Duration { return k.config.Load().ApprovalWait }

// ApprovalURL is the URL at which people decide an approval; empty where the operator has not
// said how they reach the gateway.
func (k *Kernel) ApprovalURL(id string) string {
	pages := k.config.Load().ApprovalPages
	if pages == "" {
		return ""
	}
	return pages + url.PathEscape(id)
}

// Asking returns the calls of a decision that people have to approve, each at the place of its
// report; nil for others. It returns nothing where the decision is refused for another reason:
// then nobody is to be asked.
func (d *Decision) Asking() []*Call {
	if d.Refusal() == nil { // as of most decisions
		return nil
	}
	asking, some := make([]*Call, len(d.calls)), false
	for i, c := range d.calls {
		switch {
		case c.refused == nil:
		case c.approvals.unaskable || c.refused.Code != refusal.ApprovalRequired || c.kernel.deps.Consents == nil ||
			len(c.parsed.Arguments) > approval.MaxArguments:
			return nil
		default:
			asking[i], some = c, true
		}
	}
	if !some {
		return nil
	}
	return asking
}
