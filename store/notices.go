package store

import (
	"context"
	"crypto/rand"
	"encoding/binary"
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

// EncodeNotice writes what there is to tell of an approval, and what was told.
func (a *Asked) EncodeNotice() []byte {
	if a.Notice.at.IsZero() {
		return []byte{0, byte(a.Notified)}
	}
	row := binary.AppendVarint([]byte{1, byte(a.Notified)}, a.Notice.at.UnixMicro())
	row = binary.AppendUvarint(row, uint64(a.Notice.tries))
	changed := byte(0)
	if a.Notice.changed {
		changed = 1
	}
	return append(append(row, changed), a.Notice.claim...)
}

// NoticeLength is the length of the part of an encoded notice that outlives the process which has
// claimed it or put it off.
const NoticeLength = 2

// DecodeNotice reads what EncodeNotice has written, whole or cut to NoticeLength: what is to be told of
// is due at once then. A notice that cannot be read is told of again.
func (a *Asked) DecodeNotice(row []byte) {
	if len(row) == 0 || len(row) == NoticeLength && row[0] == 0 {
		a.Notice = dueNotice{}
		if len(row) > 1 {
			a.Notified = approval.Notified(row[1])
		}
		return
	}
	a.Notice = dueNotice{at: time.UnixMilli(1)}
	if len(row) < NoticeLength {
		return
	}
	a.Notified = approval.Notified(row[1])
	at, n := binary.Varint(row[NoticeLength:])
	if n <= 0 {
		return
	}
	tries, m := binary.Uvarint(row[NoticeLength+n:])
	if rest := row[NoticeLength+n+max(m, 0):]; m > 0 && len(rest) > 0 {
		a.Notice = dueNotice{at: time.UnixMicro(at), claim: string(rest[1:]), changed: rest[0] != 0, tries: int(tries)}
	}
}
