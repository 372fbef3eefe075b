package approvals

import (
	"context"

	"github.com/callgate/callgate/approval"
	"github.com/callgate/callgate/store"
)

// The most that Measure reads at once: approvals hold arguments of up to 64 KiB each.
const (
	approvalsPage = 100
	grantsPage    = 1_000
)

// Waiting is how many approvals waited for votes when Measure last counted them.
func (d *Desk) Waiting() int { return int(d.waiting.Load()) }

// Measure counts how many approvals wait for votes, and how many grants stand, in the whole
// store, and tells the observer. It reads at most as many as a store keeps. If it cannot read
// all, the numbers of before stand. The error is a *refusal.Error.
func (d *Desk) Measure(ctx context.Context) error {
	if d.deps.Store == nil {
		return nil
	}
	waiting, grants := 0, 0
	for f := (store.ApprovalFilter{Live: true, Limit: approvalsPage}); ; {
		page, err := d.List(ctx, f)
		if err != nil {
			return err
		}
		for i := range page {
			if d.State(&page[i]) == approval.Waiting {
				waiting++
			}
		}
		if len(page) < f.Limit {
			break
		}
		f.After = page[len(page)-1].ID
	}
	for after := ""; ; {
		page, err := d.Grants(ctx, after, grantsPage)
		if err != nil {
			return err
		}
		grants += len(page)
		if len(page) < grantsPage {
			break
		}
		after = page[len(page)-1].ID
	}
	d.waiting.Store(int64(waiting))
	if d.deps.Observer != nil {
		d.deps.Observer.ApprovalsKept(waiting, grants)
	}
	return nil
}
