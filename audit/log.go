package audit

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/callgate/callgate/audit/checkpoint"
	"github.com/callgate/callgate/audit/internal/logfile"
	"github.com/callgate/callgate/refusal"
)

// defaultWait is the longest that a caller waits for the disk: one that stands still for a second or two
// is nothing out of the ordinary.
const defaultWait = 5 * time.Second

// Options of a log. The zero value is the strict one.
type Options struct {
	// Record says how much content is written. Other content is left out, even if the
	// caller passes it. Empty is Digest.
	Record Content
	// Wait bounds how long Append and Close wait for the disk; 0 is 5 s.
	// While the disk stands still, at most maxWaiting records wait, and others are refused at once.
	Wait time.Duration
	// SignKey signs checkpoints of the chain; nil signs none.
	SignKey ed25519.PrivateKey
	// RotateBytes is the size at which a file is rotated; 0 is never.
	RotateBytes int64
	// Preallocate writes zeros ahead of the records in the file that is appended to, and the records
	// in their place, on file systems where a sync is shorter then (ext4 and XFS). Close and rotation
	// remove the zeros. What reads the file while it is written must know them: the readers of this
	// package do.
	Preallocate bool
	// OnDegraded, if not nil, is called when a component begins to fail while records
	// are still accepted, and with a nil error when it works again: checkpoints cannot
	// be written, a file cannot be rotated, or a snapshot cannot be saved. It must not block.
	OnDegraded func(Component, error)
	// OnReadAll, if not nil, is called when OpenCalls must read the whole log, with the
	// reason, how many bytes are read and how many there are; again as it continues.
	OnReadAll func(reason error, read, total int64)
	// OnMissing, if not nil, is called by Open for records that no file of the folder has, though files
	// behind them are there, and for a file that cannot be read. oldest says that they are the first ones,
	// which an operator may remove. The log is continued at its end all the same, which Open has checked.
	OnMissing func(cause error, oldest bool)
	// Now is the clock of the lock's start time, of checkpoints, and of the pauses
	// between repairs; nil is time.Now.
	Now func() time.Time

	open            func(path string, flags int) (logfile.File, error)
	move            func(from, to string) error
	batch           int    // most records in one write; 0 is batchRecords
	checkpointEvery uint64 // most records without a checkpoint; 0 is Records
	snapshotEvery   uint64 // records between two snapshots; 0 is snapshotEvery
}

// Component is the part of a log that OnDegraded reports.
type Component string

// The components. Checkpoints are called heads in logs and on disk.
const (
	Checkpoints Component = "heads"
	Rotation    Component = "rotation"
	Snapshots   Component = "snapshots"
)

// Log appends to the log of one folder. It is safe for concurrent use. A nil
// or zero Log refuses every record.
type Log struct {
	path string
	opts Options
	lock *logfile.Disk
	// started is when the lock was taken.
	started   time.Time
	truncated int64
	wake      chan struct{} // holds a token while the writer has something to see
	ended     chan struct{} // closed when the writer has given up file and lock

	entries   sync.Pool // of *entry
	mu        sync.Mutex
	queue     []*entry // oldest first
	inFlight  []*entry // the batch of the writer, until it is confirmed
	accepting bool
	late      *time.Timer // calls refuseLate
	lateIsSet bool
	appended  bool         // a record was queued
	durable   logfile.Link // the last confirmed record

	opened     tail            // the end of the log at Open
	calls      *openCalls      // nil until OpenCalls
	earlier    map[string]bool // the calls that OpenCalls returned
	readFrom   uint64          // the record from which OpenCalls read on, behind a snapshot; 0: it read the whole log
	saved      uint64          // seq of the last snapshot
	saving     bool            // the next one is being written
	saveFailed bool
	saves      sync.WaitGroup

	writer writer
	signer *checkpoint.Signer // nil if no checkpoints are signed
	failed error              // the error of closing; set before ended is closed
}

var (
	errClosed    = errors.New("the log is closed")
	errQueueFull = errors.New("too many records wait for the disk")
)

// Open locks dir, which it creates (mode 0700) if it is missing, and continues the
// log in it. It truncates an incomplete last line, and refuses a complete one that is
// corrupt with a *CorruptionError. If the folder is in use it returns a *LockedError.
// It refuses anything but regular files, symbolic links included.
func Open(dir string, opts Options) (*Log, error) {
	if !slices.Contains([]Content{"", Digest, Arguments, Completion}, opts.Record) {
		return nil, fmt.Errorf("audit.record is %q, expected %s, %s or %s", opts.Record, Digest, Arguments, Completion)
	}
	if opts.Wait <= 0 {
		opts.Wait = defaultWait
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.open == nil {
		opts.open = func(path string, flags int) (logfile.File, error) {
			if opts.Preallocate && filepath.Base(path) == fileName {
				return logfile.OpenAhead(path, flags)
			}
			return logfile.OpenFile(path, flags)
		}
	}
	if opts.move == nil {
		opts.move = renameRotated
	}
	if opts.batch <= 0 {
		opts.batch = batchRecords
	}
	if opts.checkpointEvery == 0 {
		opts.checkpointEvery = checkpoint.Records
	}
	if opts.snapshotEvery == 0 {
		opts.snapshotEvery = snapshotEvery
	}
	if n := len(opts.SignKey); n != 0 && n != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("audit log: the signing key has %d bytes, expected %d", n, ed25519.PrivateKeySize)
	}
	if err := logfile.MakeDir(dir); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	started := opts.Now()
	lock, err := takeLock(dir, started)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	l := &Log{
		path: filepath.Join(dir, fileName), opts: opts, lock: lock, started: started, accepting: true,
		wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	if err := l.resume(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("audit log: %w", err), lock.Close())
	}
	if opts.OnMissing != nil {
		reportMissing(dir, opts.OnMissing)
	}
	l.mu.Lock() // refuseLate may be called before l.late is set
	l.late = time.AfterFunc(opts.Wait, l.refuseLate)
	l.lateIsSet = true
	l.mu.Unlock()
	go l.run()
	return l, nil
}

// resume finds the end of the log and makes it ready for the next record.
func (l *Log) resume(dir string) error {
	f, err := l.opts.open(l.path, logfile.WriteFlags|os.O_CREATE)
	if err != nil {
		return err
	}
	t, partial, err := findTail(l.path, f, func() (logfile.Link, error) { return newestLink(dir) })
	if err == nil && t.end == 0 {
		t.Link, err = newestLink(dir)
	}
	l.truncated = partial
	l.writer = writer{tail: t, file: f, before: t.Link, pauses: logfile.NewPauses()}
	if err == nil && t.end > 0 && (l.opts.RotateBytes > 0 || len(l.opts.SignKey) > 0) {
		l.writer.before, err = linkBeforeFirst(l.path, io.NewSectionReader(f, 0, t.end))
	}
	l.opened, l.durable = t, t.Link
	if err == nil {
		err = l.writer.truncate()
	}
	if err == nil {
		err = logfile.SyncDir(dir)
	}
	if err == nil && len(l.opts.SignKey) > 0 {
		l.signer, err = checkpoint.NewSigner(dir, checkpoint.Options{
			Key: l.opts.SignKey, Open: l.opts.open, Now: l.opts.Now, Every: l.opts.checkpointEvery,
			OnDegraded: func(err error) { l.opts.reportDegraded(Checkpoints, err) },
			Confirm:    func(path string, signed logfile.Link) error { return confirms(dir, path, signed, t.Link) },
		}, l.writer.before, t.Link)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

// TruncatedBytes returns the length of the incomplete last line that Open truncated; 0
// if there was none.
func (l *Log) TruncatedBytes() int64 { return l.truncated }

// Append writes r as the next record and returns nil once it is on disk. Every other
// result is a *refusal.Error of the stage log, and the record is not in the log:
// AuditUnavailable if the disk fails or does not confirm in time, too many wait for it, or ctx ends before
// the record is handed to the disk; Internal if r itself cannot be a record.
// Concurrent calls share one write and one sync.
//
// The refusal's message is written for a decision. A caller that fails to append an
// outcome must append it again.
func (l *Log) Append(ctx context.Context, r Record) error {
	if l == nil {
		return unavailable(errClosed)
	}
	e, err := l.newEntry(&r)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return unavailable(err)
	}
	if err := l.enqueue(e); err != nil {
		return unavailable(err)
	}
	if ctx.Done() == nil {
		err = <-e.done
	} else {
		select {
		case err = <-e.done:
		case <-ctx.Done():
			// A record that is being written is waited for: to withdraw it would cost
			// every other record of the batch a second write.
			if l.withdraw(e) {
				err = unavailable(ctx.Err())
			} else {
				err = <-e.done
			}
		}
	}
	if e.state != abandoned && cap(e.body) <= maxReusedBody {
		l.entries.Put(e)
	}
	return err
}

// Close refuses new records, writes those that are queued, and closes file and lock.
// If the disk blocks it returns an error after a bounded time; the lock then stays
// until the write, or the process, has ended.
func (l *Log) Close() error {
	if l == nil || l.ended == nil {
		return nil
	}
	l.mu.Lock()
	l.accepting = false
	l.mu.Unlock()
	l.signal()
	// Twice: for the batch that is being written, and for the next one. Once more for
	// the last checkpoint.
	bound := 2 * l.opts.Wait
	if l.signer != nil {
		bound += l.opts.Wait
	}
	late := time.NewTimer(bound)
	defer late.Stop()
	select {
	case <-l.ended:
		return l.failed
	case <-late.C:
		return fmt.Errorf("audit log: %s: %w: file and lock stay with this process", l.path, logfile.ErrBlocked)
	}
}

func (o Options) reportDegraded(p Component, err error) {
	if o.OnDegraded != nil {
		o.OnDegraded(p, err)
	}
}

const notRecorded = "The decision could not be recorded, so nothing was executed. Retry later; changing the call will not help."

func unavailable(cause error) error {
	return refusal.New(refusal.AuditUnavailable, notRecorded).WithCause(fmt.Errorf("audit log: %w", cause))
}
