package store

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"go.etcd.io/bbolt"
)

// The buckets of a file. All but calls, answers, owed and about are indexes of calls.
var (
	callsTable                = []byte("calls")   // id → record
	answersTable              = []byte("answers") // id → result, crc
	keysTable                 = []byte("keys")    // hash of scope and key → id
	openTable                 = []byte("open")    // id, of calls without an outcome
	dueTable                  = []byte("due")     // until, id, of waiting calls
	endedTable                = []byte("ended")   // ended, id
	evictableTable            = []byte("spare")   // ended, id, of calls that may make room
	evictableByPrincipalTable = []byte("own")     // hash of the principal, ended, id, of the same
	unsettledTable            = []byte("owed")    // id, of calls whose outcome is not yet settled
	metaTable                 = []byte("about")   // what the file is

	allTables = [][]byte{callsTable, answersTable, keysTable, openTable, dueTable, endedTable, evictableTable, evictableByPrincipalTable, unsettledTable, metaTable}
)

// tables are the buckets within one transaction. err is the first write that failed;
// the transaction is then not committed.
type tables struct {
	tx  *bbolt.Tx
	err error
}

func (t *tables) put(table, key, value []byte) {
	if err := t.tx.Bucket(table).Put(key, value); t.err == nil {
		t.err = err
	}
}

func (t *tables) delete(table, key []byte) {
	if err := t.tx.Bucket(table).Delete(key); t.err == nil {
		t.err = err
	}
}

// load returns a call with its answer.
func (t *tables) load(id string) (Call, error) {
	if id == "" {
		return Call{}, ErrNotFound
	}
	record := t.tx.Bucket(callsTable).Get([]byte(id))
	if record == nil {
		return Call{}, ErrNotFound
	}
	c, err := DecodeCall(record)
	if err != nil || c.ID != id {
		return Call{}, Unavailable(ErrCorrupt)
	}
	if c.Step == Ended {
		if c.Answer.Result, err = readAnswer(t.tx.Bucket(answersTable).Get([]byte(id))); err != nil {
			return Call{}, Unavailable(err)
		}
	}
	return c, nil
}

func readAnswer(b []byte) ([]byte, error) {
	if len(b) < 4 || crc32.Checksum(b[:len(b)-4], castagnoli) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return nil, ErrCorrupt
	}
	return append([]byte(nil), b[:len(b)-4]...), nil
}

// holder returns the id of the call that a key has started.
func (t *tables) holder(scope Scope, key string) string {
	return string(t.tx.Bucket(keysTable).Get(KeyHash(scope, key)))
}

// save writes a call in place of before; nil: it is new.
func (t *tables) save(before *Call, after *Call) {
	id := []byte(after.ID)
	if before != nil {
		for _, row := range before.rows() {
			t.delete(row.table, row.key)
		}
	}
	for _, row := range after.rows() {
		t.put(row.table, row.key, nil)
	}
	if before == nil && after.Key != "" {
		t.put(keysTable, KeyHash(after.Scope, after.Key), id)
	}
	if after.Step == Ended && (before == nil || before.Step != Ended) {
		result := after.Answer.Result
		sealed := binary.LittleEndian.AppendUint32(append(make([]byte, 0, len(result)+4), result...), crc32.Checksum(result, castagnoli))
		t.put(answersTable, id, sealed)
		t.put(unsettledTable, id, nil)
	}
	t.put(callsTable, id, EncodeCall(*after))
}

// remove removes a call.
func (t *tables) remove(c *Call) {
	id := []byte(c.ID)
	for _, row := range c.rows() {
		t.delete(row.table, row.key)
	}
	if c.Key != "" && t.holder(c.Scope, c.Key) == c.ID {
		t.delete(keysTable, KeyHash(c.Scope, c.Key))
	}
	t.delete(answersTable, id)
	t.delete(unsettledTable, id)
	t.delete(callsTable, id)
}

type row struct{ table, key []byte }

// rows are the rows of a call in the indexes.
func (c *Call) rows() (rows []row) {
	id := []byte(c.ID)
	if c.Step != Ended {
		rows = append(rows, row{openTable, id})
	}
	switch c.Step {
	case Waiting:
		rows = append(rows, row{dueTable, timeKey(nil, c.Until, c.ID)})
	case Ended:
		rows = append(rows, row{endedTable, timeKey(nil, c.Ended, c.ID)})
	}
	if c.Evictable() {
		rows = append(rows, row{evictableTable, timeKey(nil, c.Ended, c.ID)}, row{evictableByPrincipalTable, timeKey(PrincipalHash(c.Scope.Principal), c.Ended, c.ID)})
	}
	return rows
}

// timeKey is a key that sorts by time below its prefix.
func timeKey(prefix []byte, t time.Time, id string) []byte {
	key := append([]byte(nil), prefix...)
	key = binary.BigEndian.AppendUint64(key, uint64(max(0, t.UnixMilli())))
	return append(key, id...)
}

// upTo returns at most limit ids of a table whose time is not after until, oldest
// first.
func (t *tables) upTo(table, prefix []byte, until time.Time, limit int) (ids []string) {
	c := t.tx.Bucket(table).Cursor()
	for k, _ := c.Seek(prefix); len(k) > len(prefix)+8 && string(k[:len(prefix)]) == string(prefix) && len(ids) < limit; k, _ = c.Next() {
		if binary.BigEndian.Uint64(k[len(prefix):]) > uint64(max(0, until.UnixMilli())) {
			break
		}
		ids = append(ids, string(k[len(prefix)+8:]))
	}
	return ids
}

func KeyHash(scope Scope, key string) []byte {
	return digestOf(scope.Principal, scope.Workspace, scope.Project, key)
}

func PrincipalHash(principal string) []byte { return digestOf(principal)[:16] }

// digestOf is a digest of texts; different lists of texts have different digests.
func digestOf(texts ...string) []byte {
	h := sha256.New()
	for _, s := range texts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(s), s) // a hash takes everything
	}
	return h.Sum(nil)
}

func Unavailable(cause error) error { return fmt.Errorf("%w: %w", ErrUnavailable, cause) }
