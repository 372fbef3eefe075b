package redisstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// restoreApproval restores an approval of the journal: Redis has, after that, the votes and
// the end of both.
func (r *Store) restoreApproval(ctx context.Context, p *partition, a approval.Approval) error {
	if a.Ran != "" {
		if err := r.restoreUse(ctx, p, a.Ran, []string{a.ID}); err != nil {
			return err
		}
	}
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

// journalUses writes the approvals that a call has used to the journal. The journal does not
// keep the call as long as its approvals can be used: they would come back unused after a loss.
func (r *Store) journalUses(ctx context.Context, c *store.Call) error {
	var ids []any
	needed := 0
	for _, id := range c.Task.Using {
		if !store.IsGrant(id) {
			ids = append(ids, id)
			needed++
		}
	}
	for _, id := range c.Task.Spends {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil
	}
	reply, err := r.run(ctx, c.Scope.Principal, approvalsScript, ids...)
	if err != nil {
		return err
	}
	used, _, err := parseApprovals(reply)
	used = slices.DeleteFunc(used, func(a approval.Approval) bool { return a.Ran != c.ID })
	if err != nil || len(used) < needed {
		return cmp.Or(err, store.Unavailable(errForeignReply))
	}
	for _, a := range used {
		if err := r.journal.RecordApproval(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// withSpent is a call for its journal, which does not know what Redis will have left: an approval
// that the journal says is used by two calls is used.
func withSpent(c store.Call) store.Call {
	c.Task.Using = slices.Concat(c.Task.Using, c.Task.Spends)
	c.Task.Spends = nil
	return c
}

// restoreUse marks the approvals that a call of the journal has used.
func (r *Store) restoreUse(ctx context.Context, p *partition, call string, using []string) error {
	args := []any{call}
	for _, id := range using {
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
