package approvals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/consent"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store/approval"
)

// Question is a question to a caller about a call of its own that waits for people.
type Question struct {
	ID     string // of the approval
	Digest string // of the call that is shown
	Tool   string
	// Arguments are the call's, with secrets redacted; nil: they cannot be shown.
	Arguments json.RawMessage
	// Secret says that Arguments hold secrets, and so are not those of the call.
	Secret bool
	// Rules are those that the caller may satisfy, and did not yet, and Others those that wait
	// for approvers.
	Rules, Others []string
	// Hints are those of Rules.
	Hints []string
	// Remember is how long a yes of the caller may stand for the same call, in whole seconds and an hour
	// at most; 0: not at all.
	Remember time.Duration
}

// maxRemember is how long a yes of a caller stands at most.
const maxRemember = time.Hour

// Yes is the ballot of a caller that lets the call run, which stands for a time for the same call;
// 0: for this one alone.
func (q *Question) Yes(remember time.Duration) *Ballot {
	b := &Ballot{Yes: true, Digest: q.Digest}
	if remember > 0 {
		b.Remember = approval.Remember{Scope: approval.Same, For: remember}
	}
	return b
}

// No is the ballot of a caller that does not let the call run.
func (q *Question) No() *Ballot { return &Ballot{Digest: q.Digest} }

// NoStanding is the ballot of a caller that does not let the call run, nor the same call again
// for as long as a denial stands.
func (q *Question) NoStanding() *Ballot { return &Ballot{Digest: q.Digest, Stands: true} }

// CallerAnswer is the answer of a caller, and how long its request waits then.
type CallerAnswer struct {
	Ballot *Ballot // nil: nothing
	// Wait is how long the request waits for those who have not decided.
	Wait time.Duration
}

// maxCallerVotes bounds how often a caller is asked of one judgement. Each vote of it satisfies every
// rule that it may.
const maxCallerVotes = 4

// askCaller asks the caller of a decision's calls for its own vote on each, one after the other. It
// reports whether all are decided and are to be judged anew, or how long the request waits for
// others. Once a call is refused, nothing is asked of those behind it: they pass together or not at
// all.
func (d *Desk) askCaller(ctx context.Context, decision *gateway.Decision, w Wait) (within time.Duration, decided bool) {
	asking := decision.Asking()
	decided = len(asking) > 0
	for i, c := range asking {
		report := &decision.Reports[i]
		if c == nil || report.ApprovalRequest == nil {
			continue
		}
		wait, voted := d.askOf(ctx, report, c.Principal(), w)
		if !voted && wait <= 0 {
			return 0, false
		}
		within, decided = max(within, wait), decided && voted
	}
	return within, decided
}

// askOf asks a caller for its vote on one call.
func (d *Desk) askOf(ctx context.Context, report *gateway.Report, principal string, w Wait) (within time.Duration, decided bool) {
	refuse := func(err error) (time.Duration, bool) {
		report.Refusal, report.ApprovalRequest = refusal.From(refusal.Approval, err), nil
		return 0, false
	}
	for range maxCallerVotes {
		q, err := d.question(ctx, report.ApprovalRequest.ID, principal)
		if err != nil {
			return refuse(err)
		}
		answer := w.Caller(ctx, q)
		if answer.Ballot == nil {
			return answer.Wait, false
		}
		a, err := d.Confirm(ctx, principal, q.ID, *answer.Ballot)
		var refused *refusal.Error
		switch {
		case errors.As(err, &refused) && refused.Code == refusal.ApprovalConflict: // somebody has ended it meanwhile
			if !answer.Ballot.Yes { // where a grant stands by now, it would run
				return refuse(consent.RefuseDenied(""))
			}
			return 0, true
		case err != nil:
			return refuse(err)
		}
		switch state := d.State(&a); state {
		case approval.Waiting:
		case approval.Denied: // where the no does not stand, it would be asked for anew
			return refuse(d.RefuseEnded(&a, state))
		default:
			return 0, true
		}
	}
	return 0, false
}

// question is the question to a principal about its own call.
func (d *Desk) question(ctx context.Context, id, principal string) (Question, error) {
	a, err := d.Get(ctx, id)
	if err != nil {
		return Question{}, err
	}
	rules, people := d.kernel().Approvals()
	q := Question{ID: a.ID, Digest: a.Digest, Tool: a.Tool}
	own, _ := a.MayConfirm(principal, rules)
	for _, name := range own {
		if !a.Enough(name, rules, people, d.deps.Now()) {
			q.Rules = append(q.Rules, name)
			if hint := rules[name].Hint; hint != "" {
				q.Hints = append(q.Hints, hint)
			}
		}
	}
	for _, name := range a.Rules {
		if rules[name].By != approval.ByCaller && !a.Enough(name, rules, people, d.deps.Now()) {
			q.Others = append(q.Others, name)
		}
	}
	// A yes covers every rule that the caller may satisfy, and each must let it stand.
	for i, name := range own {
		if most := rules[name].Remember[approval.Same]; i == 0 || most < q.Remember {
			q.Remember = most
		}
	}
	q.Remember = min(q.Remember, maxRemember).Truncate(time.Second)
	// A tool that is not known now has nobody to say which of its arguments are secret.
	if tool, err := d.kernel().ToolVersion(a.Tool, a.Version); err == nil && tool != nil && len(a.Arguments) > 0 {
		q.Arguments, _ = audit.Redact(a.Arguments, tool.Secret)
		q.Secret = !bytes.Equal(q.Arguments, a.Arguments)
	}
	return q, nil
}

// Questions asks people to approve the calls of a decision, as Ask does, and returns what the
// caller can be asked of each; nil at the places of others, and nothing where nobody is asked.
func (d *Desk) Questions(ctx context.Context, decision *gateway.Decision) []*Question {
	if !d.Ask(ctx, decision) {
		return nil
	}
	questions := make([]*Question, len(decision.Reports))
	for i, c := range decision.Asking() {
		if c == nil {
			continue
		}
		report := &decision.Reports[i]
		q, err := d.question(ctx, report.ApprovalRequest.ID, c.Principal())
		if err != nil {
			report.Refusal, report.ApprovalRequest = refusal.From(refusal.Approval, err), nil
			return nil
		}
		questions[i] = &q
	}
	return questions
}

// Confirm takes the vote of a principal on a call of its own, and returns the approval as it is
// then. It counts for rules that callers answer, and for no other. A no of a caller stands only if
// the ballot says so: else the same call may be asked for again. A yes of which no grant can be kept counts for its
// call alone, without an error. The error is a *refusal.Error.
func (d *Desk) Confirm(ctx context.Context, principal, id string, b Ballot) (approval.Approval, error) {
	a, err := d.Get(context.WithoutCancel(ctx), id)
	if err != nil {
		return a, err
	}
	rules, _ := d.kernel().Approvals()
	v := approval.Vote{By: principal, Yes: b.Yes, Digest: b.Digest, Reason: b.Reason, Remember: b.Remember, Caller: true,
		Once: !b.Yes && !b.Stands}
	if v.Rules, err = a.MayConfirm(principal, rules); err != nil {
		return a, refuseVoter(err)
	}
	a, err = d.cast(ctx, a, v)
	if errors.Is(err, errDoesNotStand) {
		return a, nil // the next such call asks again
	}
	return a, err
}
