package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/callgate/callgate/store/approval"
)

// Notices keeps which approvals have changed without anybody having been told of it. All stores
// of approvals implement it. A change is durable together with what it changes, and stays until
// it is settled, or the approval is removed.
type Notices interface {
	// ClaimNotices gives the caller at most limit approvals that have changed, those first that
	// are due longest. For the time of lease nobody else gets them, whatever process it is
	// of; after that others do, so that those of a process that has died are told of too.
	ClaimNotices(ctx context.Context, limit int, lease time.Duration) ([]Notice, error)
	// SettleNotice adds to the states that were told of, and ends the claim. If again is more
	// than 0, the approval is due again after that time; else, when it changes, or at once if it
	// has changed since the claim. Where the claim has ended before, told is added all the same.
	SettleNotice(ctx context.Context, n *Notice, notified approval.Notified, again time.Duration) error
}

// Notice is an approval that has changed.
type Notice struct {
	Approval approval.Approval // without its arguments
	Notified approval.Notified // before this
	Tries    int               // how often it was put off, by this process or by all
	Claim    string            // names the claim
}

// NoticeQueue is when each notice is due, and who has claimed it, in memory: for stores of one
// process. It is safe for concurrent use; the zero value is ready to use.
type NoticeQueue struct {
	mu  sync.Mutex
	due map[string]*dueNotice // by the id of the approval
}

// dueNotice is when somebody is to be told of the last change, or until when a claim holds; the zero
// value: of nothing.
type dueNotice struct {
	at      time.Time
	claim   string // names the claim; empty: there is none
	changed bool   // since it was claimed
	tries   int    // how often it was put off
}

// change has everybody told of a change: at once, or when the claim of an earlier one ends.
func (d *dueNotice) change(now time.Time) {
	if d.claim != "" && now.Before(d.at) {
		d.changed = true
		return
	}
	d.at, d.claim = now, ""
}

// take claims the notice.
func (d *dueNotice) take(lease time.Duration, now time.Time) {
	d.at, d.claim, d.changed = now.Add(lease), rand.Text(), false
}

// settle ends a claim, unless another has the notice by now.
func (d *dueNotice) settle(claim string, again time.Duration, now time.Time) {
	switch {
	case d.at.IsZero() || d.claim != claim:
	case again > 0:
		d.at, d.claim = now.Add(again), ""
		d.tries++
	case d.changed:
		d.at, d.claim = now, ""
	default:
		*d = dueNotice{}
	}
}

// Changed notes that an approval has changed.
func (q *NoticeQueue) Changed(id string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.due == nil {
		q.due = map[string]*dueNotice{}
	}
	if q.due[id] == nil {
		q.due[id] = &dueNotice{}
	}
	q.due[id].change(now)
}

// Claim claims notices. The approvals of those that it returns have only their ids.
func (q *NoticeQueue) Claim(limit int, lease time.Duration, now time.Time) (claimed []Notice) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var ids []string
	for id, d := range q.due {
		if !d.at.After(now) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(q.due[a].at.Compare(q.due[b].at), cmp.Compare(a, b)) })
	for _, id := range ids[:min(len(ids), max(0, limit))] {
		d := q.due[id]
		d.take(lease, now)
		claimed = append(claimed, Notice{Approval: approval.Approval{ID: id}, Tries: d.tries, Claim: d.claim})
	}
	return claimed
}

// Settle ends a claim, unless another has the notice by now.
func (q *NoticeQueue) Settle(n *Notice, again time.Duration, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := q.due[n.Approval.ID]
	if d == nil {
		return
	}
	if d.settle(n.Claim, again, now); d.at.IsZero() {
		delete(q.due, n.Approval.ID)
	}
}

// Remove forgets an approval.
func (q *NoticeQueue) Remove(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.due, id)
}
