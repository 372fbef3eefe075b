package boltstore

import (
	"context"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// RecordApproval writes an approval as it is, unless the journal has a later revision, and
// returns once that is durable.
func (f Journal) RecordApproval(ctx context.Context, a approval.Approval) error {
	return f.writer.apply(ctx, func(t *tables) (func(), error) {
		before, err := ifFound(t.loadApproval(a.ID))
		if err != nil || before != nil && before.Revision >= a.Revision {
			return nil, err
		}
		return f.replaced(before, &a), t.saveApproval(before, &a)
	}, nil)
}

// PageOfApprovals returns approvals in the order of their ids, to be restored after a loss.
func (f Journal) PageOfApprovals(ctx context.Context, after string, limit int) ([]approval.Approval, error) {
	return f.Approvals(ctx, store.ApprovalFilter{After: after, Limit: limit})
}
