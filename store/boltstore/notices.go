package boltstore

import (
	"context"
	"errors"
	"time"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// scanNotices has everything told of that the processes before have not settled. A version
// without notices leaves rows of approvals that it has removed.
func (f *Store) scanNotices(t *tables) error {
	var gone []string
	err := t.tx.Bucket(noticesTable).ForEach(func(k, _ []byte) error {
		id := string(k)
		switch changed, _ := t.loadNotice(id); {
		case t.tx.Bucket(approvalsTable).Get(k) == nil:
			gone = append(gone, id)
		case changed:
			f.notices.Changed(id, f.now())
		}
		return nil
	})
	for _, id := range gone {
		t.delete(noticesTable, []byte(id))
	}
	return errors.Join(err, t.err)
}

// loadNotice returns whether an approval has changed since that was settled, and the states of
// it that were told of. An approval whose notice cannot be read is told of again.
func (t *tables) loadNotice(id string) (changed bool, notified approval.Notified) {
	switch row := t.tx.Bucket(noticesTable).Get([]byte(id)); len(row) {
	case 0:
		return false, 0
	case 2:
		return row[0] != 0, approval.Notified(row[1])
	}
	return true, 0
}

func (t *tables) saveNotice(id string, changed bool, notified approval.Notified) {
	row := []byte{0, byte(notified)}
	if changed {
		row[0] = 1
	}
	t.put(noticesTable, []byte(id), row)
}

// ClaimNotices implements store.Notices. A claim is in memory alone: this process has the file
// for itself.
func (f *Store) ClaimNotices(_ context.Context, limit int, lease time.Duration) (notices []store.Notice, err error) {
	for _, n := range f.notices.Claim(limit, lease, f.now()) {
		id := n.Approval.ID
		err = f.view(func(t *tables) error {
			n.Approval, err = t.loadApproval(id)
			_, n.Notified = t.loadNotice(id)
			return err
		})
		switch {
		case err == nil:
			n.Approval.Arguments = nil
			notices = append(notices, n)
		case errors.Is(err, store.ErrNotFound): // it was removed meanwhile
			f.notices.Remove(id)
		default:
			return notices, err
		}
	}
	return notices, nil
}

// SettleNotice implements store.Notices.
func (f *Store) SettleNotice(ctx context.Context, n *store.Notice, notified approval.Notified, again time.Duration) error {
	return f.writer.apply(ctx, func(t *tables) (func(), error) {
		a, err := t.loadApproval(n.Approval.ID)
		if err != nil {
			return nil, err
		}
		_, before := t.loadNotice(a.ID)
		t.saveNotice(a.ID, again > 0 || a.Revision != n.Approval.Revision, before|notified)
		return func() { f.notices.Settle(n, again, f.now()) }, nil
	}, nil)
}
