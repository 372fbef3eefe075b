package checkpoint

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/callgate/callgate/audit/internal/logfile"
	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/safe"
)

const (
	// Records and Interval are the most records, and the longest
	// time, without a checkpoint while the disk works.
	Records  = 1024
	Interval = 5 * time.Second
	// Grace is how long records are accepted while checkpoints cannot be
	// written.
	Grace = 30 * time.Second
)

// Options of a Signer. All are required.
type Options struct {
	Key  ed25519.PrivateKey
	Open func(path string, flags int) (logfile.File, error)
	Now  func() time.Time
	// Every is the most records without a checkpoint; usually Records.
	Every uint64
	// OnDegraded is called when checkpoints cannot be written, and with nil when they
	// can be again.
	OnDegraded func(error)
	// Confirm checks that the log has the record that the last checkpoint, in the file
	// path, signs.
	Confirm func(path string, signed logfile.Link) error
}

// Signer writes checkpoints on a goroutine of its own, so that no record waits for one.
// It signs durable records only. A nil signer signs nothing and is never overdue.
type Signer struct {
	store fileStore // the goroutine's, once it runs
	opts  Options

	wake chan struct{} // holds a token while there is something to sign
	quit chan struct{} // closed to sign the rest and end
	done chan struct{} // closed when that is over
	left error         // why records are left unsigned; set before done is closed

	mu      sync.Mutex
	last    logfile.Link   // the last durable record
	pending []logfile.Link // links to sign at once, oldest first: ends of files
	signed  uint64         // seq of the last checkpoint
	since   time.Time      // since when a durable record is unsigned; zero if none is
	cause   error          // why the last attempt failed
}

// NewSigner continues the checkpoints in dir for a log that ends at the link end, and
// whose current file begins behind the link before. Records behind the last checkpoint
// are signed at once; a checkpoint that the log does not confirm is refused.
func NewSigner(dir string, opts Options, before, end logfile.Link) (*Signer, error) {
	s := &Signer{
		store: fileStore{path: filepath.Join(dir, FileName), key: opts.Key, open: opts.Open, now: opts.Now},
		opts:  opts, last: end,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	err := safe.Do(func() error { return s.store.resume(end) })
	if err == nil {
		err = logfile.SyncDir(dir)
	}
	if err == nil {
		err = opts.Confirm(s.store.path, s.store.confirmed.Link())
	}
	if err != nil {
		return nil, errors.Join(err, s.store.close())
	}
	s.signed = s.store.confirmed.Seq
	s.SignFileEnd(before)
	if s.SignFileEnd(end); len(s.pending) > 0 {
		s.since = s.opts.Now()
	}
	go s.run()
	return s, nil
}

// Durable says that the log now ends at the link.
func (s *Signer) Durable(at logfile.Link) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.Seq <= s.last.Seq {
		return
	}
	s.last = at
	first := s.since.IsZero()
	if first {
		s.since = s.opts.Now()
	}
	if first || at.Seq-s.signed >= s.opts.Every {
		s.signal()
	}
}

// SignFileEnd requests a checkpoint for the last record of a file, so that later files
// can be verified without it.
func (s *Signer) SignFileEnd(at logfile.Link) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.Seq > max(s.signed, lastSeq(s.pending)) {
		s.pending = append(s.pending, at)
		s.signal()
	}
}

// Overdue returns an error if records have been without a checkpoint for too long.
func (s *Signer) Overdue() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() || s.opts.Now().Sub(s.since) <= Grace {
		return nil
	}
	cause := s.cause
	if cause == nil {
		cause = logfile.ErrBlocked
	}
	return fmt.Errorf("no head could be signed for more than %s: %w", duration.Spell(Grace), cause)
}

// Finish signs the rest and closes the file.
func (s *Signer) Finish() error {
	if s == nil {
		return nil
	}
	close(s.quit)
	<-s.done
	return s.left
}

func (s *Signer) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Signer) run() {
	defer close(s.done)
	pauses := logfile.NewPauses()
	failing := false
	var retry <-chan time.Time
	for {
		over := false
		select {
		case <-s.wake:
			if failing {
				continue // the attempt after the pause will see it
			}
		case <-retry:
		case <-s.quit:
			over = true
		}
		wait, err := s.signDue(over)
		if over {
			s.left = errors.Join(err, safe.Do(s.store.close))
			return
		}
		retry = nil
		switch {
		case err != nil:
			if !failing {
				s.opts.OnDegraded(err)
			}
			failing = true
			wait = pauses.NextBackOff()
		case failing:
			failing = false
			pauses.Reset()
			s.opts.OnDegraded(nil)
		}
		if wait > 0 {
			retry = time.After(wait)
		}
	}
}

// signDue signs the links that are due, or all, and returns the time until the next
// will be due: 0 if none is left.
func (s *Signer) signDue(all bool) (time.Duration, error) {
	links, began, wait := s.due(all)
	if len(links) == 0 {
		return wait, nil
	}
	err := safe.Do(func() error { return s.store.append(links...) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause = err; err != nil {
		return 0, fmt.Errorf("records behind seq %d have no signed head: %w", s.signed, err)
	}
	s.signed = lastSeq(links)
	for len(s.pending) > 0 && s.pending[0].Seq <= s.signed {
		s.pending = s.pending[1:]
	}
	if s.since = (time.Time{}); s.last.Seq > s.signed {
		s.since = began
		return Interval, nil
	}
	return 0, nil
}

// due returns the links that need a checkpoint now. If there are none, wait is the
// time until there will be; 0 is never.
func (s *Signer) due(all bool) (links []logfile.Link, now time.Time, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = s.opts.Now()
	if s.since.IsZero() {
		return nil, now, 0
	}
	wait = Interval - now.Sub(s.since)
	if !all && len(s.pending) == 0 && s.last.Seq-s.signed < s.opts.Every && wait > 0 {
		return nil, now, wait
	}
	links = append(links, s.pending...)
	if s.last.Seq > lastSeq(links) {
		links = append(links, s.last)
	}
	return links, now, 0
}

func lastSeq(links []logfile.Link) uint64 {
	if len(links) == 0 {
		return 0
	}
	return links[len(links)-1].Seq
}

// SignedSeq is the seq of the last record that a checkpoint signs.
func (s *Signer) SignedSeq() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signed
}
