// Package boltstore keeps calls in one file of this node, so that they outlive the
// process: an idempotency key or a waiting call is found again after a crash.
package boltstore

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/internal/codec"
	"github.com/callgate/callgate/store/internal/testhooks"
)

// Options configure a Store. The zero value is the strict one.
type Options struct {
	Bounds store.Bounds
	// UnkeyedInMemory keeps calls without a key in this process alone until their
	// tool answers later, or they use an approval: they cost no write, and a crash loses
	// them. That such a call was dispatched, and that its outcome is not known, the audit
	// log says.
	UnkeyedInMemory bool
	// Wait bounds how long a transition waits for the disk. 0 is 4.9 s, so that a
	// transition is refused within 5. While the disk stands still, at most maxWaiting wait.
	Wait time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time

	// Hooks are for tests of this package and of package redisstore.
	Hooks testhooks.Bolt
}

// FileName is the file of a store in its folder.
const FileName = "store.db"

const (
	defaultWait = 4900 * time.Millisecond
	lockWait    = time.Second
)

var (
	versionKey  = []byte("version")
	sequenceKey = []byte("sequence")
)

// A file of version 1, which has fewer indexes of approvals and grants, is brought to version 2 when it
// is opened.
const (
	fileVersion   = "2"
	olderVersion  = "1"
	damagedAdvice = "move it away to begin a new one, which forgets every idempotency key"
)

// Store keeps calls in a file of this node: they outlive the process. One process
// has the file at a time. A Store is safe for concurrent use.
//
// The file is an embedded transactional database (bbolt): pages are written aside
// and take effect with the sync of one checksummed page, so that a crash at any
// moment leaves the state before or after a transaction. Concurrent changes share a
// transaction. While the disk is full, transitions are refused. After any other
// failure, above all a failed sync, nothing is written until the file is opened
// again, since what can be read may differ from what is on disk. Records carry a
// checksum, which is verified with every read; the whole file is read at the start.
type Store struct {
	*store.Engine
	file
	epoch   string
	closing sync.Once

	brief *brief // calls that are kept in memory alone; nil: there are none
}

// Open opens the store in a folder, or creates it. An error says what is wrong
// with the file: it is in use, or damaged.
func Open(dir string, options Options) (*Store, error) {
	path := filepath.Join(dir, FileName)
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: found something other than a regular file", path)
	}
	db, err := openDB(path)
	if err != nil {
		return nil, err
	}
	now := options.Now
	if now == nil {
		now = time.Now
	}
	bounds := options.Bounds.WithDefaults(store.DurableCalls, store.DurableBytes)
	f := &Store{epoch: rand.Text(), file: file{quota: store.NewQuota(bounds), held: map[store.Key]store.Record{}}}
	f.Engine = store.NewEngine(backend{&f.file}, store.Process{Name: f.epoch}, now, bounds)
	f.takeBack = f.TakeBack
	if options.UnkeyedInMemory {
		f.brief = newBrief(f.Engine, f.epoch, now, options.Bounds)
	}
	w := &writer{
		db: db, wait: options.Wait, beforeCommit: options.Hooks.BeforeCommit,
		jobs: make(chan *job, maxJobs), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	if w.wait <= 0 {
		w.wait = defaultWait
	}
	f.writer = w
	if err := f.initialize(); err != nil {
		_ = closeFile(db) // err says what is wrong with it
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	go w.run()
	return f, nil
}

func openDB(path string) (db *bbolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer safe.Catch(func(error) {
		err = fmt.Errorf("%s is damaged: %s", path, damagedAdvice)
	})
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait, FreelistType: bbolt.FreelistMapType})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("%s is in use by another process", path)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%s is damaged, or no store (%w): %s", path, err, damagedAdvice)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return db, nil
}

// initialize creates the tables where they are missing, and reads the file once.
func (f *Store) initialize() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer safe.Catch(func(error) {
		err = errors.New("the file is damaged: " + damagedAdvice)
	})
	if err := f.writer.db.Update(createTables); err != nil {
		return err
	}
	if err := f.writer.db.Update(announce); err != nil {
		return err
	}
	return f.writer.db.View(f.scan)
}

// createTables creates the tables of a new file, and those which an older one has not.
func createTables(tx *bbolt.Tx) error {
	about := tx.Bucket(metaTable)
	if about != nil {
		version := string(about.Get(versionKey))
		if version == fileVersion {
			return nil
		}
		if version != olderVersion {
			return fmt.Errorf("found version %.20q of the store, expected %s", version, fileVersion)
		}
	} else if name, _ := tx.Cursor().First(); name != nil {
		return errors.New("found the tables of something else")
	}
	for _, name := range recordTables {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	for i := range indexTables {
		if _, err := tx.CreateBucketIfNotExists(indexTables[i].name); err != nil {
			return err
		}
	}
	t := &tables{tx: tx}
	t.put(metaTable, versionKey, []byte(fileVersion))
	if about == nil {
		t.put(metaTable, sequenceKey, number(0))
		return t.err
	}
	var writes []write
	for table, kind := range map[*[]byte]store.Kind{&approvalsTable: store.AskRecord, &grantsTable: store.GrantRecord} {
		if err := tx.Bucket(*table).ForEach(func(k, _ []byte) error {
			record, err := t.record(store.Key{Kind: kind, ID: string(k)})
			if err == nil {
				writes = rowWrites(store.Entries(record.Value, nil), present, writes)
			}
			return err
		}); err != nil {
			return err
		}
	}
	t.write(writes)
	return t.err
}

// announce has everything told of at once that the processes before have not settled.
func announce(tx *bbolt.Tx) error {
	t := &tables{tx: tx}
	var writes []write
	for _, name := range [][]byte{noticesTable, approvalsTable, indexTables[store.NewsIndex].name} {
		if tx.Bucket(name) == nil {
			return fmt.Errorf("the table %s is missing", name)
		}
	}
	if err := tx.Bucket(noticesTable).ForEach(func(k, row []byte) error {
		switch {
		case tx.Bucket(approvalsTable).Get(k) == nil: // as an older version leaves it
			writes = append(writes, write{noticesTable, bytes.Clone(k), nil})
		case len(row) > store.NoticeLength:
			id := string(k)
			record, err := t.record(store.Key{Kind: store.AskRecord, ID: id})
			if err != nil {
				return err
			}
			writes = rowWrites(news(record.Value), nil, writes)
			cut := write{noticesTable, []byte(id), bytes.Clone(row[:store.NoticeLength])}
			asked := *record.Value.(*store.Asked)
			asked.DecodeNotice(cut.value)
			writes = rowWrites(news(&asked), present, append(writes, cut))
		}
		return nil
	}); err != nil {
		return err
	}
	t.write(writes)
	return t.err
}

// news are the rows of an approval of which somebody is to be told.
func news(v store.Value) []store.Entry {
	return slices.DeleteFunc(store.Entries(v, nil), func(e store.Entry) bool { return e.Name != store.NewsIndex })
}

// scan reads and counts every record.
func (f *Store) scan(tx *bbolt.Tx) error {
	t := &tables{tx: tx}
	names := recordTables
	for i := range indexTables {
		names = append(slices.Clip(names), indexTables[i].name)
	}
	for _, name := range names {
		b := tx.Bucket(name)
		if b == nil {
			return fmt.Errorf("the table %s is missing", name)
		}
		if err := b.ForEach(func(k, v []byte) error { return f.scanRow(t, name, k) }); err != nil {
			return err
		}
	}
	var err error
	f.writer.sequence, err = readNumber(tx.Bucket(metaTable).Get(sequenceKey))
	return err
}

// scanRow counts one row. It also checks that every reference to a call finds the
// call: a key that refers to nothing would be free again.
func (f *Store) scanRow(t *tables, table, key []byte) error {
	kind := store.CallRecord
	switch string(table) {
	case string(callsTable):
	case string(keysTable):
		kind = store.KeyRecord
	case string(approvalsTable):
		kind = store.AskRecord
	case string(grantsTable):
		kind = store.GrantRecord
	default:
		return nil
	}
	record, err := t.record(store.Key{Kind: kind, ID: string(key)})
	if err != nil {
		return err
	}
	c, ok := record.Value.(*store.Call)
	if !ok {
		return nil
	}
	if c.Key != "" && string(t.tx.Bucket(keysTable).Get(c.KeyHash())) != c.ID {
		return codec.ErrCorrupt
	}
	f.quota.Add(store.Count{Principal: c.Scope.Principal, Of: c.Usage()})
	return nil
}

// Ready reports whether the store can be relied on now; if not, cause tells the
// operator why.
func (f *Store) Ready() (ready bool, cause error) {
	cause = f.writer.ready()
	return cause == nil, cause
}

// Close ends the store and closes the file.
func (f *Store) Close() error {
	err := errClosed
	f.closing.Do(func() {
		if err = f.writer.close(); err == nil {
			err = closeFile(f.writer.db)
		}
	})
	return err
}

// closeWait bounds how long closing the file waits for its transactions.
const closeWait = 2 * time.Second

// closeFile closes the file. A transaction that finds it damaged may panic while it is rolled back, and keeps
// the lock that Close waits for: then the file is closed when the process ends.
func closeFile(db *bbolt.DB) error {
	closed := make(chan error, 1)
	go func() { closed <- safe.Do(db.Close) }()
	select {
	case err := <-closed:
		return err
	case <-time.After(closeWait):
		return errors.New("the store is not closed: a transaction has not ended")
	}
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func readNumber(b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, errSequence
	}
	return binary.BigEndian.Uint64(b), nil
}
