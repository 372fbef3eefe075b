package redisstore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// approvalFields are the number of strings in a reply for each approval.
const approvalFields = 6

// parseApprovals reads approvals from a reply, and the time by the clock of Redis.
func parseApprovals(reply []string) (found []approval.Approval, now time.Time, err error) {
	if len(reply)%approvalFields != 0 {
		return nil, now, store.Unavailable(errForeignReply)
	}
	for ; len(reply) > 0; reply = reply[approvalFields:] {
		a, bad := approval.Decode[approval.Approval]([]byte(reply[0]))
		revision, badRevision := strconv.Atoi(reply[4])
		ms, badNow := strconv.ParseInt(reply[5], 10, 64)
		if err := errors.Join(bad, badRevision, badNow); err != nil {
			return nil, now, store.Unavailable(errForeignReply)
		}
		if now = time.UnixMilli(ms); reply[2] != "" {
			ran, err := strconv.ParseInt(reply[3], 10, 64)
			if err != nil {
				return nil, now, store.Unavailable(errForeignReply)
			}
			a.Ran, a.RanAt = reply[2], time.UnixMilli(ran).UTC()
		} else if reply[1] != "" {
			a.Arguments = []byte(reply[1])
		}
		a.Revision = revision
		found = append(found, a)
	}
	return found, now, nil
}

// encodeApproval returns the record of an approval without the parts that have fields of
// their own.
func encodeApproval(a approval.Approval) ([]byte, error) {
	a.Arguments, a.Ran, a.RanAt = nil, "", time.Time{}
	return approval.Encode(a)
}

// endFields are the times in Redis of an approval: when it closes, from when it is kept for
// Retention, and until when it stands as a denial; the latter two are empty where that is not so.
func endFields(a *approval.Approval) (closes int64, over, stands string) {
	closes = a.Closes().UnixMilli()
	if a.Ended.End == "" && a.Ran == "" {
		return closes, "", ""
	}
	if until := a.StandsUntil(); !until.IsZero() {
		stands = strconv.FormatInt(until.UnixMilli(), 10)
	}
	return closes, strconv.FormatInt(a.Over().UnixMilli(), 10), stands
}

func approvalKey(a *approval.Approval) string {
	sum := sha256.Sum256([]byte(a.Key()))
	return hex.EncodeToString(sum[:])
}

func principalHash(principal string) string {
	return hex.EncodeToString(store.PrincipalHash(principal))
}

func changeArgs(was, a *approval.Approval) ([]any, error) {
	record, err := encodeApproval(*a)
	closes, over, stands := endFields(a)
	return []any{a.ID, was.Revision, record, a.Revision, closes, over, stands}, err
}
