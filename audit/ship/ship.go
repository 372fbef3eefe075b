package ship

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/callgate/callgate/audit/internal/logfile"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/telemetry"
)

// Options of a Shipper. Dir, Last and Export are required.
type Options struct {
	// Dir is the folder of the log, which belongs to this process.
	Dir string
	// Last is the last durable record of the log: audit.Log has it.
	Last func() (seq uint64, hash string)
	// Export sends records once; its results are those of telemetry.Logs.
	Export func(context.Context, []telemetry.LogRecord) (rejected uint64, err error)
	// Delay is how long a record waits for others at most; 0 is a second.
	Delay time.Duration
	// LongestPause bounds the growing time between two tries that fail; 0 is 30 s.
	LongestPause time.Duration
	// OnShipped is told how many records the collector has taken, and OnLost how many it
	// will never have, and why. They may be nil, and must not block.
	OnShipped func(count uint64)
	OnLost    func(count uint64, why error)
	// OnFailing is told why nothing is shipped, when that begins and when the reason is another
	// one, and nil when records are shipped again. It may be nil, and must not block.
	OnFailing func(error)
}

// Shipper sends the records of a log as they become durable.
type Shipper struct {
	options Options
	at      logfile.Link  // the last record that the collector has, or never will
	shipped atomic.Uint64 // its seq
	saved   time.Time     // when the cursor was saved last
	dirty   bool          // at is not the cursor that is saved
	unsaved error         // why the cursor could not be saved
	failing string        // what was reported last
	pauses  backoff.ExponentialBackOff

	stop   chan struct{} // closed by Close
	stops  sync.Once
	cancel context.CancelFunc
	done   chan struct{} // closed once nothing is sent any more
}

// Start begins with the record behind the last that the collector has, by the cursor in the
// folder. A folder without one begins with the next record that is written. A cursor that
// cannot be read, or is of another log, begins with the first record that there is: the collector
// may then get records twice. The caller must Close the shipper.
func Start(o Options) *Shipper {
	o.Delay, o.LongestPause = cmp.Or(o.Delay, time.Second), cmp.Or(o.LongestPause, 30*time.Second)
	s := &Shipper{
		options: o, pauses: *backoff.NewExponentialBackOff(),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	s.pauses.InitialInterval, s.pauses.MaxInterval = min(o.Delay, o.LongestPause), o.LongestPause
	s.begin()
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go s.run(ctx)
	return s
}

// begin finds where shipping begins.
func (s *Shipper) begin() {
	at, found, err := readCursor(s.options.Dir)
	if err == nil && found {
		// A file that cannot be read is reported when its records are to be shipped.
		if same, e := s.has(at); e == nil && !same {
			err = fmt.Errorf("%s is of another log", cursorName)
		}
	}
	switch {
	case err != nil:
		at, s.dirty = logfile.Link{Hash: logfile.Genesis}, true
		s.report(fmt.Errorf("all records that there are will be shipped: %w", err))
	case !found:
		seq, hash := s.options.Last()
		at.Seq, s.dirty = seq, true
		copy(at.Hash[:], hash)
	}
	s.at = at
	s.shipped.Store(at.Seq)
	s.save(true)
}

// Behind is how many durable records the collector does not have yet.
func (s *Shipper) Behind() uint64 {
	seq, _ := s.options.Last()
	return seq - min(seq, s.shipped.Load())
}

// Close sends what is durable, as long as the collector takes it and until ctx ends, and remembers
// the rest for the next start.
func (s *Shipper) Close(ctx context.Context) {
	if s == nil {
		return
	}
	s.stops.Do(func() { close(s.stop) })
	select {
	case <-s.done:
	case <-ctx.Done():
		s.cancel()
		<-s.done
	}
	s.cancel()
}

// run ships until Close.
func (s *Shipper) run(ctx context.Context) {
	defer close(s.done)
	for stopping := false; ; {
		more, err := s.step(ctx)
		if err != nil && ctx.Err() != nil {
			s.save(true)
			return // Close waits no longer
		}
		more = more && err == nil
		s.save(!more)
		s.report(cmp.Or(err, s.unsaved))
		if more {
			continue
		}
		pause := s.options.Delay
		if err != nil {
			pause = s.pauses.NextBackOff()
		} else {
			s.pauses.Reset()
		}
		if stopping { // a step since then found nothing more, or failed
			return
		}
		select {
		case <-time.After(pause):
		case <-s.stop:
			if err != nil {
				return
			}
			stopping = true
		}
	}
}

// step ships one batch. more is false where there was none.
func (s *Shipper) step(ctx context.Context) (more bool, err error) {
	err = safe.Do(func() error {
		b, err := s.next()
		if err != nil || len(b.lines) == 0 {
			return err
		}
		records := make([]telemetry.LogRecord, len(b.lines))
		for i, line := range b.lines {
			records[i] = recordOf(line)
		}
		r, err := s.export(ctx, records)
		if err != nil {
			return err
		}
		more = true
		s.at, s.dirty = b.end, true
		s.count(b, r)
		s.shipped.Store(s.at.Seq) // last: where nothing is behind, everything is counted
		return nil
	})
	return more, err
}

// count tells what became of a batch.
func (s *Shipper) count(b batch, r sent) {
	if s.options.OnShipped != nil && r.accepted > 0 {
		s.options.OnShipped(r.accepted)
	}
	if s.options.OnLost == nil {
		return
	}
	if b.gone > 0 {
		s.options.OnLost(b.gone, errors.New("they are in no file of the audit log any more, or not as they were written"))
	}
	if r.refused > 0 {
		s.options.OnLost(r.refused, r.why)
	}
}

// sent is the outcome of records that were sent.
type sent struct {
	accepted, refused uint64
	why               error                 // of the last refusal
	early             []telemetry.LogRecord // refused before any was accepted
}

// export sends records. Where the collector does not take the request, it is sent in halves, so
// that one record that is too long for it keeps no other from it. A record is refused for good
// only if it took another one: a collector that takes none may be set up wrongly.
func (s *Shipper) export(ctx context.Context, records []telemetry.LogRecord) (sent, error) {
	r, err := s.halve(ctx, records)
	if err == nil && r.accepted == 0 {
		return sent{}, r.why
	}
	if err != nil {
		return r, err
	}
	for i := range r.early {
		rejected, err := s.options.Export(ctx, r.early[i:i+1])
		switch {
		case err == nil && rejected == 0:
			r.accepted, r.refused = r.accepted+1, r.refused-1
		case err != nil && !errors.Is(err, telemetry.ErrRefused):
			return r, err
		}
	}
	return r, nil
}

func (s *Shipper) halve(ctx context.Context, records []telemetry.LogRecord) (sent, error) {
	rejected, err := s.options.Export(ctx, records)
	all := uint64(len(records))
	switch {
	case err == nil && rejected > 0:
		rejected = min(rejected, all)
		return sent{accepted: all - rejected, refused: rejected,
			why: fmt.Errorf("the collector rejected %d log records of a request", rejected)}, nil
	case err == nil:
		return sent{accepted: all}, nil
	case !errors.Is(err, telemetry.ErrRefused):
		return sent{}, err
	case len(records) == 1:
		return sent{refused: 1, why: err, early: records}, nil
	}
	first, err := s.halve(ctx, records[:len(records)/2])
	if err != nil {
		return first, err
	}
	second, err := s.halve(ctx, records[len(records)/2:])
	early := first.early
	if first.accepted == 0 {
		early = slices.Concat(early, second.early)
	}
	return sent{first.accepted + second.accepted, first.refused + second.refused, cmp.Or(second.why, first.why), early}, err
}

// saveEvery is how often the cursor is saved while records are shipped.
const saveEvery = time.Second

// save saves the cursor. Without it, records are shipped again after a restart.
func (s *Shipper) save(now bool) {
	if !s.dirty || !now && time.Since(s.saved) < saveEvery {
		return
	}
	s.saved = time.Now()
	s.unsaved = safe.Do(func() error { return saveCursor(s.options.Dir, s.at) })
	s.dirty = s.unsaved != nil
}

// report tells that shipping fails, or works again.
func (s *Shipper) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == s.failing {
		return
	}
	s.failing = text
	if s.options.OnFailing != nil {
		s.options.OnFailing(err)
	}
}
