package boltstore

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"

	"go.etcd.io/bbolt"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/internal/codec"
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

var castagnoli = crc32.MakeTable(crc32.Castagnoli) // of answers

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
func (t *tables) load(id string) (store.Call, error) {
	if id == "" {
		return store.Call{}, store.ErrNotFound
	}
	record := t.tx.Bucket(callsTable).Get([]byte(id))
	if record == nil {
		return store.Call{}, store.ErrNotFound
	}
	c, err := codec.DecodeCall(record)
	if err != nil || c.ID != id {
		return store.Call{}, store.Unavailable(codec.ErrCorrupt)
	}
	if c.Step == store.Ended {
		if c.Answer.Result, err = readAnswer(t.tx.Bucket(answersTable).Get([]byte(id))); err != nil {
			return store.Call{}, store.Unavailable(err)
		}
	}
	return c, nil
}

// ifFound is what load or loadApproval has found; nil where there is nothing.
func ifFound[T any](loaded T, err error) (*T, error) {
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return &loaded, err
}

func readAnswer(b []byte) ([]byte, error) {
	if len(b) < 4 || crc32.Checksum(b[:len(b)-4], castagnoli) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return nil, codec.ErrCorrupt
	}
	return append([]byte(nil), b[:len(b)-4]...), nil
}

// keyOwner returns the id of the call that a key has started.
func (t *tables) keyOwner(scope store.Scope, key string) string {
	return string(t.tx.Bucket(keysTable).Get(codec.KeyHash(scope, key)))
}

// save writes a call in place of before; nil: it is new.
func (t *tables) save(before *store.Call, after *store.Call) {
	id := []byte(after.ID)
	if before != nil {
		for _, row := range rowsOf(before) {
			t.delete(row.table, row.key)
		}
	}
	for _, row := range rowsOf(after) {
		t.put(row.table, row.key, nil)
	}
	if before == nil && after.Key != "" {
		t.put(keysTable, codec.KeyHash(after.Scope, after.Key), id)
	}
	if after.Step == store.Ended && (before == nil || before.Step != store.Ended) {
		result := after.Answer.Result
		sealed := binary.LittleEndian.AppendUint32(append(make([]byte, 0, len(result)+4), result...), crc32.Checksum(result, castagnoli))
		t.put(answersTable, id, sealed)
		t.put(unsettledTable, id, nil)
	}
	t.put(callsTable, id, codec.EncodeCall(*after))
}

// remove removes a call.
func (t *tables) remove(c *store.Call) {
	id := []byte(c.ID)
	for _, row := range rowsOf(c) {
		t.delete(row.table, row.key)
	}
	if c.Key != "" && t.keyOwner(c.Scope, c.Key) == c.ID {
		t.delete(keysTable, codec.KeyHash(c.Scope, c.Key))
	}
	t.delete(answersTable, id)
	t.delete(unsettledTable, id)
	t.delete(callsTable, id)
}

type row struct{ table, key []byte }

// rowsOf returns the rows of a call in the indexes.
func rowsOf(c *store.Call) (rows []row) {
	id := []byte(c.ID)
	if c.Step != store.Ended {
		rows = append(rows, row{openTable, id})
	}
	switch c.Step {
	case store.Waiting:
		rows = append(rows, row{dueTable, timeKey(nil, c.Until, c.ID)})
	case store.Ended:
		rows = append(rows, row{endedTable, timeKey(nil, c.Ended, c.ID)})
	}
	if c.Evictable() {
		rows = append(rows, row{evictableTable, timeKey(nil, c.Ended, c.ID)}, row{evictableByPrincipalTable, timeKey(codec.PrincipalHash(c.Scope.Principal), c.Ended, c.ID)})
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
