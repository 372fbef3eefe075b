package redisstore

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// noticeFields are the number of strings in a reply for each notice.
const noticeFields = approvalFields + 2

// ClaimNotices implements store.Notices, for all gateways that share the store. No journal has
// what was told: if Redis is emptied, it is told again.
func (r *Store) ClaimNotices(ctx context.Context, limit int, lease time.Duration) (notices []store.Notice, err error) {
	l, err := r.connection()
	if err != nil {
		return nil, err
	}
	claim := rand.Text()
	for i := range l.partitions {
		if len(notices) >= limit {
			break
		}
		reply, err := r.runAt(ctx, l, i, 0, claimNoticesScript, limit-len(notices), lease.Milliseconds(), claim)
		if err != nil {
			return notices, err
		}
		if len(reply)%noticeFields != 0 {
			return notices, store.Unavailable(errForeignReply)
		}
		for ; len(reply) > 0; reply = reply[noticeFields:] {
			found, _, err := parseApprovals(reply[:approvalFields])
			tries, badTries := strconv.Atoi(reply[approvalFields+1])
			if err != nil || badTries != nil {
				return notices, store.Unavailable(errForeignReply)
			}
			n := store.Notice{Approval: found[0], Tries: tries, Claim: claim}
			for s := range strings.FieldsSeq(reply[approvalFields]) {
				n.Notified = n.Notified.With(approval.State(s))
			}
			notices = append(notices, n)
		}
	}
	return notices, nil
}

// SettleNotice implements store.Notices.
func (r *Store) SettleNotice(ctx context.Context, n *store.Notice, notified approval.Notified, again time.Duration) error {
	args := []any{n.Approval.ID, n.Claim, n.Approval.Revision, max(0, again.Milliseconds())}
	for _, s := range notified.States() {
		args = append(args, string(s))
	}
	_, err := r.run(ctx, n.Approval.Principal, settleNoticeScript, args...)
	return err
}
