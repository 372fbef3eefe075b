package boltstore

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"hash/maphash"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/store/internal/codec"
)

// The buckets of records, and what else there is in a file.
var (
	callsTable     = []byte("calls")     // id → record
	answersTable   = []byte("answers")   // id → result, crc
	keysTable      = []byte("keys")      // hash of scope and key → id
	approvalsTable = []byte("approvals") // id → JSON, crc
	noticesTable   = []byte("notices")   // id of an approval → what there is to tell of it, and what was told
	byDigestTable  = []byte("asked")     // digest of a call, id, of approvals that may answer for it
	grantsTable    = []byte("grants")    // id → JSON, crc
	metaTable      = []byte("about")     // what the file is

	recordTables = [][]byte{callsTable, answersTable, keysTable, approvalsTable, noticesTable, byDigestTable, grantsTable, metaTable}
)

// indexTable is the bucket of an index. Its keys are the hash of whose rows they are, where the rows are
// somebody's, the time, where they have one, and the id.
type indexTable struct {
	name      []byte
	of, timed bool
	records   bool // it is that of the records: no row is written
}

var indexTables = [...]indexTable{
	store.OpenIndex:         {name: []byte("open")},
	store.DueIndex:          {name: []byte("due"), timed: true},
	store.EndedIndex:        {name: []byte("ended"), timed: true},
	store.SpareIndex:        {name: []byte("spare"), timed: true},
	store.PrincipalsSpare:   {name: []byte("own"), of: true, timed: true},
	store.AskedIndex:        {name: approvalsTable, records: true},
	store.ClosingIndex:      {name: []byte("closing"), timed: true},
	store.PrincipalsClosing: {name: []byte("closing own"), of: true, timed: true},
	store.OverIndex:         {name: []byte("over"), timed: true},
	store.NewsIndex:         {name: []byte("news"), timed: true},
	store.GrantIndex:        {name: grantsTable, records: true},
	store.GrantsWithKey:     {name: []byte("grants of a key"), of: true},
	store.LapsingIndex:      {name: []byte("lapsing"), timed: true},
}

// key is the key of a row. The file has milliseconds: a row is at the one in which its time is, and
// what bounds rows, which is passed with up, at the next one.
func (i *indexTable) key(of string, row store.Row, up int64) []byte {
	key := make([]byte, 0, 16+8+len(row.ID))
	if i.of {
		key = append(key, store.PrincipalHash(of)...)
	}
	if i.timed {
		ms := max(0, row.At) / 1000
		if row.At > ms*1000 {
			ms += up
		}
		key = binary.BigEndian.AppendUint64(key, uint64(ms))
	}
	return append(key, row.ID...)
}

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli) // of answers, approvals and grants
	revSeed    = maphash.MakeSeed()
)

// tables are the buckets within one transaction. err is the first write that failed;
// the transaction is then not committed.
type tables struct {
	tx    *bbolt.Tx
	wrote bool
	err   error
}

// write puts a value, or removes it where it is nil.
type write struct{ table, key, value []byte }

func (t *tables) write(writes []write) {
	for _, w := range writes {
		if w.value == nil {
			t.delete(w.table, w.key)
		} else {
			t.put(w.table, w.key, w.value)
		}
	}
}

func (t *tables) put(table, key, value []byte) {
	t.wrote = true
	if err := t.tx.Bucket(table).Put(key, value); t.err == nil {
		t.err = err
	}
}

func (t *tables) delete(table, key []byte) {
	t.wrote = true
	if err := t.tx.Bucket(table).Delete(key); t.err == nil {
		t.err = err
	}
}

func (t *tables) get(table []byte, id string) []byte {
	if id == "" {
		return nil
	}
	return t.tx.Bucket(table).Get([]byte(id))
}

func seal(b []byte) []byte {
	sealed := append(make([]byte, 0, len(b)+4), b...)
	return binary.LittleEndian.AppendUint32(sealed, crc32.Checksum(b, castagnoli))
}

func unseal(b []byte) ([]byte, error) {
	if len(b) < 4 || crc32.Checksum(b[:len(b)-4], castagnoli) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return nil, codec.ErrCorrupt
	}
	return b[:len(b)-4], nil
}

func unsealed[T approval.Approval | approval.Grant](sealed []byte) (record T, err error) {
	b, err := unseal(sealed)
	if err == nil {
		record, err = approval.Decode[T](b)
	}
	if err != nil {
		return record, codec.ErrCorrupt
	}
	return record, nil
}

// raw returns what the file has of a record; nil: there is none.
func (t *tables) raw(key store.Key) (record, more []byte) {
	switch key.Kind {
	case store.CallRecord:
		return t.get(callsTable, key.ID), nil
	case store.KeyRecord:
		return t.get(keysTable, key.ID), nil
	case store.AskRecord:
		return t.get(approvalsTable, key.ID), t.get(noticesTable, key.ID)
	case store.QuestionRecord:
		c := t.tx.Bucket(byDigestTable).Cursor()
		for k, _ := c.Seek([]byte(key.ID)); len(k) > len(key.ID) && string(k[:len(key.ID)]) == key.ID; k, _ = c.Next() {
			record = append(append(record, k[len(key.ID):]...), 0)
		}
		return record, nil
	case store.GrantRecord:
		return t.get(grantsTable, key.ID), nil
	}
	return nil, nil
}

// revision names the state of a record: another one has another, and the same one the same. That of what
// the file has is odd.
func revision(record, more []byte) store.Rev {
	if record == nil {
		return 0
	}
	rev := maphash.Bytes(revSeed, record)
	if more != nil {
		rev = rev*31 + maphash.Bytes(revSeed, more)
	}
	return store.Rev(rev | 1)
}

// record reads a record.
func (t *tables) record(key store.Key) (store.Record, error) {
	record, more := t.raw(key)
	if record == nil {
		return store.Record{}, nil
	}
	value, err := t.decode(key, record, more)
	if err != nil {
		return store.Record{}, store.Unavailable(err)
	}
	return store.Record{Rev: revision(record, more), Value: value}, nil
}

func (t *tables) decode(key store.Key, record, more []byte) (store.Value, error) {
	switch key.Kind {
	case store.CallRecord:
		c, err := codec.DecodeCall(record)
		if err != nil || c.ID != key.ID {
			return nil, codec.ErrCorrupt
		}
		if c.Step == store.Ended {
			result, err := unseal(t.get(answersTable, key.ID))
			if err != nil {
				return nil, err
			}
			c.Answer.Result = bytes.Clone(result)
		}
		return &c, nil
	case store.KeyRecord:
		if t.get(callsTable, string(record)) == nil {
			return nil, codec.ErrCorrupt // a key that refers to nothing is not free
		}
		return &store.Started{Call: string(record)}, nil
	case store.AskRecord:
		a, err := unsealed[approval.Approval](record)
		if err != nil || a.ID != key.ID {
			return nil, codec.ErrCorrupt
		}
		asked := &store.Asked{Approval: a}
		asked.DecodeNotice(more)
		return asked, nil
	case store.QuestionRecord:
		var q store.Question
		for id := range bytes.SplitSeq(record[:len(record)-1], []byte{0}) {
			q.Approvals = append(q.Approvals, string(id))
		}
		return &q, nil
	}
	g, err := unsealed[approval.Grant](record)
	if err != nil || g.ID != key.ID {
		return nil, codec.ErrCorrupt
	}
	return &g, nil
}

// present is the value of a row that has none.
var present = []byte{}

// writesOf returns what to write so that a value is in the place of another.
func writesOf(key store.Key, was, now store.Value, to []write) ([]write, error) {
	id := []byte(key.ID)
	switch now := now.(type) {
	case nil:
		switch was := was.(type) {
		case *store.Call:
			to = append(to, write{callsTable, id, nil}, write{answersTable, id, nil})
		case *store.Started:
			to = append(to, write{keysTable, id, nil})
		case *store.Asked:
			to = append(to, write{approvalsTable, id, nil}, write{noticesTable, id, nil})
		case *store.Question:
			for _, asked := range was.Approvals {
				to = append(to, write{byDigestTable, []byte(key.ID + asked), nil})
			}
		case *approval.Grant:
			to = append(to, write{grantsTable, id, nil})
		}
	case *store.Call:
		if was, _ := was.(*store.Call); now.Step == store.Ended && (was == nil || was.Step != store.Ended) {
			to = append(to, write{answersTable, id, seal(now.Answer.Result)})
		}
		to = append(to, write{callsTable, id, codec.EncodeCall(*now)})
	case *store.Started:
		to = append(to, write{keysTable, id, []byte(now.Call)})
	case *store.Asked:
		if was, _ := was.(*store.Asked); was == nil || was.Revision != now.Revision {
			b, err := approval.Encode(now.Approval)
			if err != nil {
				return nil, err
			}
			to = append(to, write{approvalsTable, id, seal(b)})
		}
		to = append(to, write{noticesTable, id, now.EncodeNotice()})
	case *store.Question:
		if was, _ := was.(*store.Question); was != nil {
			for _, asked := range was.Approvals {
				if !slices.Contains(now.Approvals, asked) {
					to = append(to, write{byDigestTable, []byte(key.ID + asked), nil})
				}
			}
		}
		for _, asked := range now.Approvals {
			to = append(to, write{byDigestTable, []byte(key.ID + asked), present})
		}
	case *approval.Grant:
		b, err := approval.Encode(*now)
		if err != nil {
			return nil, err
		}
		to = append(to, write{grantsTable, id, seal(b)})
	}
	return to, nil
}

// rowWrites appends the writes of rows of indexes: value is present, or nil to remove them.
func rowWrites(entries []store.Entry, value []byte, to []write) []write {
	for i := range entries {
		e := &entries[i]
		if table := &indexTables[e.Name]; !table.records {
			to = append(to, write{table.name, table.key(e.Of, e.Row, 0), value})
		}
	}
	return to
}

// rows passes the rows of an index that are behind a row and not behind another to do.
func (t *tables) rows(index store.Index, behind, to store.Row, do func(store.Row) (more bool)) {
	table := &indexTables[index.Name]
	first, last := table.key(index.Of, behind, 1), table.key(index.Of, to, 1)
	prefix := 0
	if table.of {
		prefix = 16
	}
	c := t.tx.Bucket(table.name).Cursor()
	for k, _ := c.Seek(first); len(k) >= prefix && bytes.Equal(k[:prefix], first[:prefix]); k, _ = c.Next() {
		if k == nil || table.timed && bytes.Compare(k, last) > 0 {
			return
		}
		if bytes.Equal(k, first) {
			continue
		}
		row := store.Row{ID: string(k[prefix:])}
		if table.timed {
			if len(k) < prefix+8 {
				return
			}
			row = store.Row{At: int64(binary.BigEndian.Uint64(k[prefix:])) * 1000, ID: string(k[prefix+8:])}
		}
		if !do(row) {
			return
		}
	}
}
