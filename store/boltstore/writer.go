package boltstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/store"
)

// mutation makes one change in a transaction. If it returns an error, it must
// have written nothing; after is called once the transaction is durable.
type mutation func(*tables) (after func(), err error)

// job is a mutation on its way to the disk.
type job struct {
	run   mutation
	late  func() // follows run when nobody waits for it any more; nil: nothing does
	then  func() // follows in any case; nil: nothing does
	state atomic.Int32
	after func()
	err   error
	done  chan struct{} // closed when err is set
}

func newJob(run mutation) *job { return &job{run: run, done: make(chan struct{})} }

// The states of a job.
const (
	queued int32 = iota
	taken        // by the writer
	done
	abandoned // by its caller, who was told that it is refused
)

// writer writes to the file: all mutations that are queued, in one transaction with
// one sync.
type writer struct {
	db           *bbolt.DB
	wait         time.Duration
	beforeCommit func() error // of each commit; nil but in tests

	jobs      chan *job // which begin a transaction
	stop      chan struct{}
	ended     chan struct{}
	startedAt atomic.Int64           // when the transaction under way began, in Unix nanoseconds
	failed    atomic.Pointer[string] // why the file is not trusted any more

	mu   sync.Mutex
	lazy []*job // which wait for the next transaction

	sequence uint64
}

const (
	maxJobs = 4096
	// maxWaiting is how many wait behind a transaction that the disk has not confirmed within
	// stallAfter.
	maxWaiting = 1024
	stallAfter = 250 * time.Millisecond
	maxBatch   = 512
	maxLazy    = 8192
	// lazyTick is how long a lazy change waits for another to ride with.
	lazyTick = 200 * time.Millisecond
)

var (
	errDiskTimeout = errors.New("the disk does not confirm in time")
	errQueueFull   = errors.New("too many changes wait for the disk")
	errClosed      = errors.New("the store is closed")
	errUncertain   = errors.New("it is unknown whether it was written")
	errSequence    = errors.New("the file has no sequence number")
)

// apply makes a mutation durable, or returns an error within the writer's wait.
func (w *writer) apply(ctx context.Context, j *job) error {
	if err := w.ready(); err != nil {
		return store.Unavailable(err)
	}
	if len(w.jobs) >= maxWaiting && w.stalled(stallAfter) {
		return store.Unavailable(errQueueFull)
	}
	select {
	case <-w.stop:
		return store.Unavailable(errClosed)
	case w.jobs <- j:
	default:
		return store.Unavailable(errQueueFull)
	}
	timer := time.NewTimer(w.wait)
	defer timer.Stop()
	cause := errDiskTimeout
	select {
	case <-j.done:
		return j.err
	case <-timer.C:
	case <-ctx.Done():
		cause = ctx.Err()
	case <-w.ended:
		cause = errClosed
	}
	switch {
	case j.state.CompareAndSwap(queued, abandoned):
		return store.Unavailable(cause)
	case j.state.CompareAndSwap(taken, abandoned):
		return store.Unavailable(errors.Join(cause, errUncertain))
	}
	<-j.done
	return j.err
}

// ready returns an error if a mutation would be refused after waiting.
func (w *writer) ready() error {
	if hurt := w.failed.Load(); hurt != nil {
		return errors.New(*hurt)
	}
	if w.stalled(w.wait) {
		return errDiskTimeout
	}
	return nil
}

// stalled reports whether a transaction has been under way for longer than that.
func (w *writer) stalled(longer time.Duration) bool {
	since := w.startedAt.Load()
	return since != 0 && time.Since(time.Unix(0, since)) > longer
}

// queue has a job ride with the next transaction; false: too many do.
func (w *writer) queue(j *job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lazy) >= maxLazy {
		return false
	}
	w.lazy = append(w.lazy, j)
	return true
}

// pause waits for a moment; false: the writer was stopped.
func (w *writer) pause() (goOn bool) {
	select {
	case <-w.stop:
		return false
	case <-time.After(lazyTick):
		return true
	}
}

// run writes until the writer is stopped.
func (w *writer) run() {
	defer close(w.ended)
	debug.SetPanicOnFault(true) // the file may be truncated by another process
	tick := time.NewTicker(lazyTick)
	defer tick.Stop()
	for {
		batch, last := w.gather(tick.C)
		if len(batch) > 0 {
			w.write(batch)
		}
		if last {
			return
		}
	}
}

// gather takes the jobs that wait. last reports that the writer was stopped and no job
// that begins a transaction waits.
func (w *writer) gather(tick <-chan time.Time) (batch []*job, last bool) {
	select {
	case j := <-w.jobs:
		batch = append(batch, j)
	case <-tick:
	case <-w.stop:
		last = true
	}
	for len(batch) < maxBatch {
		select {
		case j := <-w.jobs:
			batch = append(batch, j)
			continue
		default:
		}
		break
	}
	last = last && len(batch) == 0
	w.mu.Lock()
	defer w.mu.Unlock()
	batch, w.lazy = append(w.lazy, batch...), nil // they have come first
	return batch, last
}

// write makes one transaction of a batch, and answers those who wait.
func (w *writer) write(batch []*job) {
	w.startedAt.Store(time.Now().UnixNano())
	taking := batch[:0]
	for _, j := range batch {
		if j.state.CompareAndSwap(queued, taken) {
			taking = append(taking, j)
		}
	}
	err := w.commit(taking)
	w.startedAt.Store(0)
	for _, j := range taking {
		if err != nil {
			j.err, j.after = store.Unavailable(err), nil
		}
		if j.after != nil {
			j.after()
		}
		if !j.state.CompareAndSwap(taken, done) && j.err == nil && j.late != nil {
			go j.late()
		}
		if j.then != nil {
			j.then()
		}
		close(j.done)
	}
}

// commit is the transaction: all of it is durable, or nothing of it.
func (w *writer) commit(batch []*job) error {
	if hurt := w.failed.Load(); hurt != nil {
		return errors.New(*hurt)
	}
	wrote, err := w.transact(batch)
	if err == nil {
		if wrote {
			w.sequence++
		}
		return nil
	}
	// A transaction that failed must not be readable. A full disk refuses before the
	// transaction is visible, and may have room later; after any other failure the
	// kernel may hold what the disk does not.
	if !diskFull(err) || w.committed() {
		hurt := "the file is no longer trusted, until it is opened again: " + err.Error()
		w.failed.Store(&hurt)
	}
	return err
}

func (w *writer) transact(batch []*job) (wrote bool, err error) {
	defer safe.Catch(func(panicked error) {
		// The text of a panic may quote a record, which this error would carry into a log.
		err = fmt.Errorf("the file is damaged: %w", panicked)
	})
	tx, err := w.db.Begin(true)
	if err != nil {
		return false, err
	}
	committed := false
	defer func() {
		// After a panic, too: while a transaction is open, the file cannot be closed.
		if !committed {
			_ = tx.Rollback() // says only that a failed commit has rolled back already
		}
	}()
	t := &tables{tx: tx}
	for _, j := range batch {
		j.after, j.err = j.run(t)
	}
	if !t.wrote {
		return false, nil
	}
	t.put(metaTable, sequenceKey, number(w.sequence+1))
	if t.err != nil {
		return true, t.err
	}
	if w.beforeCommit != nil {
		if err := w.beforeCommit(); err != nil {
			return true, err
		}
	}
	if err := tx.Commit(); err != nil {
		return true, err
	}
	committed = true
	return true, nil
}

// diskFull reports whether the disk had no room.
func diskFull(err error) bool {
	var at *fs.PathError
	return errors.As(err, &at) && (at.Op == "write" || at.Op == "truncate") &&
		(errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT))
}

// committed reports whether the transaction that failed can be read, or may be.
func (w *writer) committed() (yes bool) {
	defer safe.Catch(func(error) { yes = true })
	var n uint64
	err := w.db.View(func(tx *bbolt.Tx) (err error) {
		n, err = readNumber(tx.Bucket(metaTable).Get(sequenceKey))
		return err
	})
	return err != nil || n != w.sequence
}

// close ends the writer, and waits for it for a bounded time.
func (w *writer) close() error {
	close(w.stop)
	select {
	case <-w.ended:
		return nil
	case <-time.After(2 * w.wait):
		return errDiskTimeout
	}
}
