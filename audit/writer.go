package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/callgate/callgate/audit/internal/logfile"
	"github.com/callgate/callgate/internal/safe"
)

const (
	// batchRecords and batchBytes bound what one write carries; a single record
	// may be longer. findTail checks as many bytes.
	batchRecords = 512
	batchBytes   = 1 << 20
	// lineOverhead is the most that seq, prev, hash and the line end add.
	lineOverhead = 256
)

// writer is the state of the one goroutine that writes.
type writer struct {
	tail              // the last confirmed record, and the length of the file with it
	file logfile.File // nil while the bytes behind the tail are in doubt
	// cause, retryAt and pauses are for repairing a file in doubt.
	cause   error
	retryAt time.Time
	pauses  backoff.ExponentialBackOff
	// buf, body, batch and tails are reused from batch to batch.
	buf   []byte
	body  []byte // of one record, with syncedMember
	batch []*entry
	tails []tail

	before      logfile.Link // the one that the file's first record follows
	needsCreate bool         // the file is to be made: the one before was moved aside
	moveAt      time.Time    // before which moving is not tried again
	moveFailed  bool         // moving failed, and the operator was told
}

// run writes batch after batch until the log is closed and its queue empty.
func (l *Log) run() {
	defer close(l.ended)
	for range l.wake {
		for batch := l.nextBatch(); len(batch) > 0; batch = l.nextBatch() {
			l.commit(batch)
		}
		l.mu.Lock()
		over := !l.accepting && len(l.queue) == 0
		l.mu.Unlock()
		if over {
			break
		}
	}
	l.late.Stop()
	l.failed = safe.Do(l.closeFile)
	l.saves.Wait()
	l.failed = errors.Join(l.failed, l.signer.Finish(), l.lock.Close())
}

// closeFile closes the file, after a last attempt to truncate refused records.
func (l *Log) closeFile() error {
	w := &l.writer
	if w.needsCreate {
		return nil // the file is not there, so nothing is in it
	}
	if w.file == nil {
		if err := l.reopen(); err != nil {
			return fmt.Errorf("audit log: bytes behind seq %d were never confirmed and may still be in the file: %w", w.Seq, err)
		}
	}
	return w.file.Close()
}

// nextBatch moves the next batch from the queue to the writer.
func (l *Log) nextBatch() []*entry {
	// Callers that were just answered come back with their next record: let them run
	// first, or every other batch is nearly empty.
	runtime.Gosched()
	l.mu.Lock()
	defer l.mu.Unlock()
	n, size := 0, 0
	for n < len(l.queue) && n < l.opts.batch {
		size += len(l.queue[n].body) + lineOverhead
		if n > 0 && size > batchBytes {
			break
		}
		l.queue[n].state = inFlight
		n++
	}
	l.writer.batch = append(l.writer.batch[:0], l.queue[:n]...)
	l.inFlight = l.writer.batch
	l.queue = slices.Delete(l.queue, 0, n)
	return l.inFlight
}

// commit writes a batch to disk and answers it. Whatever fails, a panic included,
// records that were confirmed stay, and all others are truncated and refused.
func (l *Log) commit(batch []*entry) {
	err := safe.Do(l.ready)
	if err == nil {
		err = safe.Do(func() error { return l.write(batch) })
		if err != nil {
			err = l.recoverFile(err)
		}
	}
	if err == nil {
		return
	}
	l.mu.Lock()
	refused := l.inFlight
	for i, e := range refused {
		if e.state == abandoned {
			refused[i] = nil
			continue
		}
		e.state = answered
	}
	l.inFlight = nil
	l.mu.Unlock()
	answer(refused, unavailable(err))
}

// answer gives the entries their result. It is called without Log.mu, so that the callers
// do not wait for it. From here on an entry is its caller's, who may reuse it.
func answer(entries []*entry, err error) {
	for _, e := range entries {
		if e != nil {
			e.done <- err
		}
	}
}

// ready makes sure that the file ends with the tail.
func (l *Log) ready() error {
	w := &l.writer
	if w.file == nil {
		if l.opts.Now().Before(w.retryAt) {
			return w.cause
		}
		if err := l.reopen(); err != nil {
			w.cause = err
			return err
		}
	}
	if err := w.checkSize(l.path, w.end); err != nil {
		return err
	}
	if err := l.signer.Overdue(); err != nil {
		return err
	}
	return l.rotate()
}

// checkSize checks that the file is still the one under its name and has size bytes.
func (w *writer) checkSize(name string, size int64) error {
	found, err := w.file.Size()
	if err == nil && found != size {
		err = fmt.Errorf("%s: has %d bytes, expected %d: it was changed by another", name, found, size)
	}
	return err
}

// write writes the batch to disk behind the tail and answers it. If callers have
// abandoned records meanwhile, the file is truncated before the first of these, and
// the records behind it that still have a caller are queued again.
func (l *Log) write(batch []*entry) error {
	w := &l.writer
	if cap(w.buf) > 2*batchBytes {
		w.buf, w.body = nil, nil
	}
	buf, at := w.buf[:0], w.tail
	w.tails = w.tails[:0]
	for _, e := range batch {
		before := len(buf)
		body := e.body
		if l.opts.Preallocate {
			w.body = strconv.AppendUint(append(append(w.body[:0], body...), syncedMember...), w.Seq, 10)
			body = w.body
		}
		buf, at.Link = at.Seal(buf, body)
		at.last = int64(len(buf) - before)
		at.end += at.last
		w.tails = append(w.tails, at)
	}
	w.buf = buf
	if _, err := w.file.Write(buf); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	// This shows a short write, and a file that was moved away meanwhile or has the
	// bytes of another process: no reader would find the records.
	if err := w.checkSize(l.path, at.end); err != nil {
		return err
	}
	if l.confirm(batch) {
		return nil
	}
	return w.truncate()
}

// confirm answers the records before the first abandoned one, and reports whether
// these are all.
func (l *Log) confirm(batch []*entry) bool {
	w := &l.writer
	l.mu.Lock()
	n := 0
	for n < len(batch) && batch[n].state != abandoned {
		batch[n].state = answered
		n++
	}
	l.requeue(batch[n:])
	l.inFlight = nil
	if n > 0 {
		w.tail = w.tails[n-1]
		l.durable = w.Link
		l.track(batch[:n])
	}
	l.mu.Unlock()
	l.signer.Durable(w.Link)
	answer(batch[:n], nil)
	return n == len(batch)
}

// requeue puts the records that still have a caller back at the front of the queue.
func (l *Log) requeue(batch []*entry) {
	if len(batch) == 0 {
		return
	}
	var retries []*entry
	for _, e := range batch {
		if e.state == inFlight {
			e.state = queued
			retries = append(retries, e)
		}
	}
	l.queue = append(retries, l.queue...)
}

// truncate ends the file at the tail, durably: else bytes behind the tail could mix
// with the next write in a crash.
func (w *writer) truncate() error {
	if err := w.file.Truncate(w.end); err != nil {
		return err
	}
	return w.file.Sync()
}

// recoverFile closes the file after a failure and tries at once to reopen it, so that
// refused records are off the disk before their callers are told. It returns the
// error for the operator.
func (l *Log) recoverFile(cause error) error {
	w := &l.writer
	f := w.file
	w.file, w.cause, w.retryAt = nil, cause, time.Time{}
	w.pauses.Reset()
	// The file is in doubt already: an error of Close adds nothing.
	_ = safe.Do(f.Close)
	if err := safe.Do(l.reopen); err != nil {
		w.cause = fmt.Errorf("%w; repair: %w", cause, err)
		return w.cause
	}
	return cause
}

// reopen opens the file again, reads the last confirmed record back, and truncates the
// rest.
func (l *Log) reopen() (err error) {
	w := &l.writer
	w.retryAt = l.opts.Now().Add(w.pauses.NextBackOff())
	flags := logfile.WriteFlags
	if w.needsCreate {
		flags |= os.O_CREATE
	}
	f, err := l.opts.open(l.path, flags)
	if err != nil {
		return err
	}
	second := *w
	second.file, second.cause, second.retryAt, second.needsCreate = f, nil, time.Time{}, false
	second.pauses.Reset()
	if err := safe.Do(func() error { return second.settle(l.path, w.needsCreate) }); err != nil {
		return errors.Join(err, f.Close())
	}
	*w = second
	return nil
}

// settle makes a reopened file end with the tail, durably.
func (w *writer) settle(name string, fresh bool) error {
	if !fresh {
		if err := w.readBack(name); err != nil {
			return err
		}
		return w.truncate()
	}
	if err := w.checkSize(name, 0); err != nil {
		return err
	}
	return logfile.SyncDir(filepath.Dir(name))
}

// readBack checks that the last confirmed record is where it was written.
func (w *writer) readBack(name string) error {
	size, err := w.file.Size()
	if err != nil {
		return err
	}
	if size < w.end {
		return fmt.Errorf("%s: has %d bytes, expected at least %d: it was cut by another", name, size, w.end)
	}
	if w.last == 0 {
		return nil
	}
	line := make([]byte, w.last)
	if _, err := w.file.ReadAt(line, w.end-w.last); err != nil {
		return err
	}
	at, _, err := logfile.ParseLine(line[:len(line)-1])
	if err == nil && (at != w.Link || line[len(line)-1] != '\n') {
		err = errors.New("is not the one that was written")
	}
	if err != nil {
		return fmt.Errorf("%s: the last confirmed record, seq %d, %w", name, w.Seq, err)
	}
	return nil
}
