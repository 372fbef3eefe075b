package approvals

import (
	"context"
	"maps"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// measured are the approvals and grants that Measure has found.
type measured struct {
	revisions map[string]int // of live approvals, by their ids
	grants    int
}

// Waiting is how many approvals waited for votes when Measure last counted them.
func (d *Desk) Waiting() int { return int(d.waiting.Load()) }

// Changes measures, and returns a number that grows when other approvals or grants were measured than
// before: asked, voted on or ended at whatever gateway shares the store, or counted otherwise by
// another configuration. If they cannot be read, nothing is known to have changed.
func (d *Desk) Changes(ctx context.Context) int {
	_ = d.Measure(ctx) // who listens is told nothing then
	return int(d.changes.Load())
}

// Measure counts how many approvals wait for votes, and how many grants stand, in the whole
// store, and tells the observer. It reads the records of approvals that have got votes since it
// last did, and no others. If it cannot read them, the numbers of before stand. The error is a
// *refusal.Error.
func (d *Desk) Measure(ctx context.Context) error {
	if d.deps.Store == nil {
		return nil
	}
	type kept struct {
		live   []store.LiveApproval
		grants int
	}
	now, err := ask(ctx, d, func(ctx context.Context, s store.Approvals) (k kept, err error) {
		k.live, k.grants, err = s.LiveApprovals(ctx)
		return k, err
	})
	if err != nil {
		return refuseRead(err)
	}
	d.measuring.Lock()
	defer d.measuring.Unlock()
	waiting, voted, found := 0, map[string]*approval.Approval{}, measured{grants: now.grants, revisions: map[string]int{}}
	for _, l := range now.live {
		found.revisions[l.ID] = l.Revision
		if l.Revision == 0 {
			waiting++
			continue
		}
		a := d.voted[l.ID]
		if a == nil || a.Revision != l.Revision {
			read, err := d.Get(ctx, l.ID)
			if refused := refusal.From(refusal.Approval, err); refused != nil && refused.Code == refusal.NotFound {
				continue // it is gone since
			} else if refused != nil {
				return refused
			}
			read.Arguments, a = nil, &read
		}
		if voted[l.ID] = a; d.State(a) == approval.Waiting {
			waiting++
		}
	}
	if int(d.waiting.Swap(int64(waiting))) != waiting || found.grants != d.measured.grants ||
		!maps.Equal(found.revisions, d.measured.revisions) {
		d.changes.Add(1)
	}
	d.voted, d.measured = voted, found
	if d.deps.Observer != nil {
		d.deps.Observer.ApprovalsKept(waiting, now.grants)
	}
	return nil
}
