package redisstore

import (
	"cmp"
	"context"

	"github.com/callgate/callgate/approval"
	"github.com/callgate/callgate/store"
)

// restoreApproval restores an approval of the journal: Redis has, after that, the votes and
// the end of both.
func (r *Store) restoreApproval(ctx context.Context, p *partition, a approval.Approval) error {
	for range maxConflicts {
		record, err := encodeApproval(a)
		if err != nil {
			return err
		}
		closes, over, stands := endFields(&a)
		code, reply, err := r.eval(ctx, p, 0, restoreApprovalScript, []any{a.ID, record, a.Arguments, principalHash(a.Principal), a.Digest, approvalKey(&a), closes, over, stands, a.Revision})
		if err != nil || code != "ok" {
			return cmp.Or(err, errForeignReply)
		}
		found, _, err := parseApprovals(reply)
		if err != nil || len(found) == 0 {
			return err
		}
		merged := approval.Merge(found[0], a)
		if merged.Revision == found[0].Revision || found[0].Ran != "" {
			return nil
		}
		args, err := changeArgs(&found[0], &merged)
		if err != nil {
			return err
		}
		if code, _, err = r.eval(ctx, p, 0, restoreChangeScript, args); err != nil || code == "ok" {
			return err
		}
	}
	return errForeignReply
}

// restoreUse marks the approvals that a call of the journal has used.
func (r *Store) restoreUse(ctx context.Context, p *partition, c *store.Call) error {
	args := []any{c.ID}
	for _, id := range c.Task.Using {
		if !store.IsGrant(id) {
			args = append(args, id)
		}
	}
	if len(args) == 1 {
		return nil
	}
	code, _, err := r.eval(ctx, p, 0, restoreUseScript, args)
	if err == nil && code != "ok" {
		err = errForeignReply
	}
	return err
}
