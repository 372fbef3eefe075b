package boltstore

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/store/internal/codec"
)

// The buckets of approvals and grants. The three in the middle are indexes.
var (
	approvalsTable = []byte("approvals") // id → JSON, crc
	byDigestTable  = []byte("asked")     // digest of the call, id, of approvals that Consents may return
	closingTable   = []byte("closing")   // closes, id → hash of the principal, of those that have no end yet
	overTable      = []byte("over")      // ended, id, of the others
	grantsTable    = []byte("grants")    // id → JSON, crc
	noticesTable   = []byte("notices")   // id of an approval → whether it has changed, states that were told of; a byte each

	approvalTables = [][]byte{approvalsTable, byDigestTable, closingTable, overTable, grantsTable, noticesTable}
)

func seal(b []byte) []byte {
	sealed := append(make([]byte, 0, len(b)+4), b...)
	return binary.LittleEndian.AppendUint32(sealed, crc32.Checksum(b, castagnoli))
}

func unseal[T approval.Approval | approval.Grant](sealed []byte) (record T, err error) {
	b, err := readAnswer(sealed)
	if err == nil {
		record, err = approval.Decode[T](b)
	}
	if err != nil {
		return record, store.Unavailable(codec.ErrCorrupt)
	}
	return record, nil
}

func (t *tables) loadApproval(id string) (a approval.Approval, err error) {
	if id == "" {
		return a, store.ErrNotFound
	}
	sealed := t.tx.Bucket(approvalsTable).Get([]byte(id))
	if sealed == nil {
		return a, store.ErrNotFound
	}
	a, err = unseal[approval.Approval](sealed)
	if err == nil && a.ID != id {
		err = store.Unavailable(codec.ErrCorrupt)
	}
	return a, err
}

// approvalRow is a row of an approval in an index.
type approvalRow struct{ table, key, value []byte }

func rowsOfApproval(a *approval.Approval) (rows []approvalRow) {
	byDigest := approvalRow{byDigestTable, []byte(a.Digest + a.ID), nil}
	switch {
	case a.Ran == "" && a.Ended.End == "":
		return append(rows, byDigest, approvalRow{closingTable, timeKey(nil, a.Closes(), a.ID), codec.PrincipalHash(a.Principal)})
	case a.Ended.End == approval.EndDenied && !a.Ended.Once:
		rows = append(rows, byDigest)
	}
	return append(rows, approvalRow{overTable, timeKey(nil, a.Over(), a.ID), nil})
}

// saveApproval writes an approval in place of before; nil: it is new. It writes nothing if
// the approval cannot be encoded.
func (t *tables) saveApproval(before, after *approval.Approval) error {
	b, err := approval.Encode(*after)
	if err != nil {
		return err
	}
	t.removeApprovalRows(before)
	for _, row := range rowsOfApproval(after) {
		t.put(row.table, row.key, row.value)
	}
	t.put(approvalsTable, []byte(after.ID), seal(b))
	_, notified := t.loadNotice(after.ID)
	t.saveNotice(after.ID, true, notified)
	return nil
}

func (t *tables) removeApprovalRows(a *approval.Approval) {
	if a == nil {
		return
	}
	for _, row := range rowsOfApproval(a) {
		t.delete(row.table, row.key)
	}
}

func (t *tables) removeApproval(a *approval.Approval) {
	t.removeApprovalRows(a)
	t.delete(approvalsTable, []byte(a.ID))
	t.delete(noticesTable, []byte(a.ID))
}

// asked returns the approvals of a digest that are in the index.
func (t *tables) approvalsOf(digest string) (found []approval.Approval, err error) {
	c := t.tx.Bucket(byDigestTable).Cursor()
	for k, _ := c.Seek([]byte(digest)); len(k) > len(digest) && string(k[:len(digest)]) == digest; k, _ = c.Next() {
		a, err := t.loadApproval(string(k[len(digest):]))
		if err != nil {
			return nil, store.Unavailable(err)
		}
		found = append(found, a)
	}
	return found, nil
}

// countLive counts the approvals that are live, in all and of one principal, up to the
// bound of all.
func (t *tables) countLive(principal string, now time.Time) (all, own int) {
	hash := string(codec.PrincipalHash(principal))
	c := t.tx.Bucket(closingTable).Cursor()
	for k, v := c.Seek(timeKey(nil, now.Add(time.Millisecond), "")); k != nil && all < store.MaxLive; k, v = c.Next() {
		if all++; string(v) == hash {
			own++
		}
	}
	return all, own
}
