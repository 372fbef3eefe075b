package audit

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/callgate/callgate/internal/safe"
)

const (
	// checkpointRecords and checkpointInterval are the most records, and the longest
	// time, without a checkpoint while the disk works.
	checkpointRecords  = 1024
	checkpointInterval = 5 * time.Second
	// checkpointGrace is how long records are accepted while checkpoints cannot be
	// written.
	checkpointGrace = 30 * time.Second
)

// signer writes checkpoints on a goroutine of its own, so that no record waits for one.
// It signs durable records only. A nil signer signs nothing and is never overdue.
type signer struct {
	store checkpointStore // the goroutine's, once it runs
	opts  Options

	wake chan struct{} // holds a token while there is something to sign
	quit chan struct{} // closed to sign the rest and end
	done chan struct{} // closed when that is over
	left error         // why records are left unsigned; set before done is closed

	mu      sync.Mutex
	last    link      // the last durable record
	pending []link    // links to sign at once, oldest first: ends of files
	signed  uint64    // seq of the last checkpoint
	since   time.Time // since when a durable record is unsigned; zero if none is
	cause   error     // why the last attempt failed
}

// newSigner continues the checkpoints in dir for a log that ends at the link end, and
// whose current file begins behind the link before. Records behind the last checkpoint
// are signed at once; a checkpoint that the log does not confirm is refused.
func newSigner(dir string, opts Options, before, end link) (*signer, error) {
	s := &signer{
		store: checkpointStore{path: filepath.Join(dir, checkpointsName), key: opts.SignKey, open: opts.open, now: opts.Now},
		opts:  opts, last: end,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	err := safe.Do(func() error { return s.store.resume(end) })
	if err == nil {
		err = syncDir(dir)
	}
	if err == nil {
		err = confirms(dir, s.store.path, s.store.confirmed.link(), end)
	}
	if err != nil {
		return nil, errors.Join(err, s.store.close())
	}
	s.signed = s.store.confirmed.Seq
	s.signFileEnd(before)
	if s.signFileEnd(end); len(s.pending) > 0 {
		s.since = s.opts.Now()
	}
	go s.run()
	return s, nil
}

// durable says that the log now ends at the link.
func (s *signer) durable(at link) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.seq <= s.last.seq {
		return
	}
	s.last = at
	first := s.since.IsZero()
	if first {
		s.since = s.opts.Now()
	}
	if first || at.seq-s.signed >= s.opts.checkpointEvery {
		s.signal()
	}
}

// signFileEnd requests a checkpoint for the last record of a file, so that later files
// can be verified without it.
func (s *signer) signFileEnd(at link) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.seq > max(s.signed, lastSeq(s.pending)) {
		s.pending = append(s.pending, at)
		s.signal()
	}
}

// overdue returns an error if records have been without a checkpoint for too long.
func (s *signer) overdue() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() || s.opts.Now().Sub(s.since) <= checkpointGrace {
		return nil
	}
	cause := s.cause
	if cause == nil {
		cause = errBlocked
	}
	return fmt.Errorf("no head could be signed for more than %v: %w", checkpointGrace, cause)
}

// finish signs the rest and closes the file.
func (s *signer) finish() error {
	if s == nil {
		return nil
	}
	close(s.quit)
	<-s.done
	return s.left
}

func (s *signer) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *signer) run() {
	defer close(s.done)
	pauses := newPauses()
	failing := false
	var again <-chan time.Time
	for {
		over := false
		select {
		case <-s.wake:
			if failing {
				continue // the attempt after the pause will see it
			}
		case <-again:
		case <-s.quit:
			over = true
		}
		wait, err := s.signDue(over)
		if over {
			s.left = errors.Join(err, safe.Do(s.store.close))
			return
		}
		again = nil
		switch {
		case err != nil:
			if !failing {
				s.opts.reportDegraded(Checkpoints, err)
			}
			failing = true
			wait = pauses.NextBackOff()
		case failing:
			failing = false
			pauses.Reset()
			s.opts.reportDegraded(Checkpoints, nil)
		}
		if wait > 0 {
			again = time.After(wait)
		}
	}
}

// signDue signs the links that are due, or all, and returns the time until the next
// will be due: 0 if none is left.
func (s *signer) signDue(all bool) (time.Duration, error) {
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
	for len(s.pending) > 0 && s.pending[0].seq <= s.signed {
		s.pending = s.pending[1:]
	}
	if s.since = (time.Time{}); s.last.seq > s.signed {
		s.since = began
		return checkpointInterval, nil
	}
	return 0, nil
}

// due returns the links that need a checkpoint now. If there are none, wait is the
// time until there will be; 0 is never.
func (s *signer) due(all bool) (links []link, now time.Time, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = s.opts.Now()
	if s.since.IsZero() {
		return nil, now, 0
	}
	wait = checkpointInterval - now.Sub(s.since)
	if !all && len(s.pending) == 0 && s.last.seq-s.signed < s.opts.checkpointEvery && wait > 0 {
		return nil, now, wait
	}
	links = append(links, s.pending...)
	if s.last.seq > lastSeq(links) {
		links = append(links, s.last)
	}
	return links, now, 0
}

func lastSeq(links []link) uint64 {
	if len(links) == 0 {
		return 0
	}
	return links[len(links)-1].seq
}
