// Package boltstore keeps calls in one file of this node, so that they outlive the
// process: an idempotency key or a waiting call is found again after a crash. It is
// also the journal that a process keeps beside calls that it shares through Redis.
package boltstore

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
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
	// tool answers later: they cost no write, and a crash loses them. That such a
	// call was dispatched, and that its outcome is not known, the audit log says.
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
	// evictBatch bounds how many calls one transaction evicts.
	evictBatch = 128
)

var (
	identityKey = []byte("identity")
	versionKey  = []byte("version")
	sequenceKey = []byte("sequence")
)

const fileVersion = "1"

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
	now      func() time.Time
	identity string
	epoch    string
	writer   *writer
	watchers store.Watchers
	closing  sync.Once

	approvalWatchers store.Watchers
	notices          store.NoticeQueue // of what the table has

	brief *store.Memory // of calls that are kept in memory alone; nil: there are none
	// moving has a lock for each call, which is held while the call goes from
	// memory to the file, so that everybody else finds it in exactly one of them.
	// There are many, so that a call does not wait for the writes of another.
	moving [256]sync.RWMutex

	mu          sync.Mutex
	quota       store.Quota
	opened      store.OpenedCalls
	consents    consents
	unrecovered []string // calls without an outcome of the processes before, not yet recovered
	unsettled   []string // calls of theirs whose outcome is not yet settled
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
	f := &Store{
		now: options.Now, epoch: rand.Text(), opened: store.OpenedCalls{},
		quota: store.NewQuota(options.Bounds.WithDefaults(store.DurableCalls, store.DurableBytes)),
	}
	if f.now == nil {
		f.now = time.Now
	}
	if options.UnkeyedInMemory {
		f.brief = store.NewBoundedMemory(f.now, options.Bounds)
	}
	w := &writer{
		db: db, wait: options.Wait, beforeCommit: options.Hooks.BeforeCommit, evict: f.evict,
		jobs: make(chan *job, maxJobs), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	if w.wait <= 0 {
		w.wait = defaultWait
	}
	f.writer = w
	if err := f.initialize(); err != nil {
		_ = db.Close() // err says what is wrong with it
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	go w.run()
	return f, nil
}

func openDB(path string) (db *bbolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer safe.Catch(func(error) {
		err = fmt.Errorf("%s is damaged: move it away to begin a new one, which forgets every idempotency key", path)
	})
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait, FreelistType: bbolt.FreelistMapType})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("%s is in use by another process", path)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%s is damaged, or no store (%w): move it away to begin a new one, which forgets every idempotency key", path, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return db, nil
}

// initialize creates the tables where they are missing, and reads the file once.
func (f *Store) initialize() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer safe.Catch(func(error) {
		err = fmt.Errorf("the file is damaged: move it away to begin a new one, which forgets every idempotency key")
	})
	if err := f.writer.db.Update(f.createTables); err != nil {
		return err
	}
	if err := f.writer.db.Update(f.scanApprovals); err != nil {
		return err
	}
	return f.writer.db.View(f.scan)
}

func (f *Store) createTables(tx *bbolt.Tx) error {
	if about := tx.Bucket(metaTable); about != nil {
		if v := string(about.Get(versionKey)); v != fileVersion {
			return fmt.Errorf("found version %.20q of the store, expected %s", v, fileVersion)
		}
		return nil
	}
	if name, _ := tx.Cursor().First(); name != nil {
		return errors.New("found the tables of something else")
	}
	for _, name := range allTables {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	t := &tables{tx: tx}
	t.put(metaTable, versionKey, []byte(fileVersion))
	t.put(metaTable, identityKey, []byte(rand.Text()))
	t.put(metaTable, sequenceKey, number(0))
	return t.err
}

// scan reads and counts every record.
func (f *Store) scan(tx *bbolt.Tx) error {
	t := &tables{tx: tx}
	for _, name := range allTables {
		b := tx.Bucket(name)
		if b == nil {
			return fmt.Errorf("the table %s is missing", name)
		}
		if err := b.ForEach(func(k, v []byte) error { return f.scanRow(t, name, k) }); err != nil {
			return err
		}
	}
	about := tx.Bucket(metaTable)
	f.identity = string(about.Get(identityKey))
	var err error
	if f.writer.sequence, err = readNumber(about.Get(sequenceKey)); err == nil && f.identity == "" {
		err = codec.ErrCorrupt
	}
	return err
}

// scanRow counts one row. It also checks that every reference to a call finds the
// call: a key that refers to nothing would be free again.
func (f *Store) scanRow(t *tables, table, key []byte) error {
	switch string(table) {
	case string(callsTable):
		c, err := t.load(string(key))
		if err != nil {
			return err
		}
		if c.Key != "" && t.keyOwner(c.Scope, c.Key) != c.ID {
			return codec.ErrCorrupt
		}
		f.quota.Update(c.Scope.Principal, nil, c.Footprint())
		if c.Step != store.Ended {
			f.unrecovered = append(f.unrecovered, c.ID)
		}
	case string(keysTable):
		_, err := t.load(string(t.tx.Bucket(keysTable).Get(key)))
		return err
	case string(unsettledTable):
		f.unsettled = append(f.unsettled, string(key))
	}
	return nil
}

// Identity identifies the file: it is the same for every process that opens it.
func (f *Store) Identity() string { return f.identity }

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
			err = f.writer.db.Close()
		}
	})
	return err
}

// view runs read in a transaction.
func (f *Store) view(read func(*tables) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer safe.Catch(func(error) { err = store.Unavailable(codec.ErrCorrupt) })
	return f.writer.db.View(func(tx *bbolt.Tx) error { return read(&tables{tx: tx}) })
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func readNumber(b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, errSequence
	}
	return binary.BigEndian.Uint64(b), nil
}
