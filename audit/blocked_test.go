package audit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callgate/callgate/audit/internal/logfile"
	"github.com/callgate/callgate/internal/testkit/detector"
)

// brief is the wait of logs in tests of what happens when it is over.
const brief = 250 * time.Millisecond

// blockable is a log whose disk stops at a sync until release is called. Time
// in these tests is synctest's: it passes only while everyone waits.
func blockable(t *testing.T) (l *Log, m *memory, release func()) {
	m = &memory{}
	l = open(t, t.TempDir(), Options{open: m.open, Wait: brief})
	goOn := make(chan struct{})
	m.onSync = func() error { <-goOn; return nil }
	return l, m, sync.OnceFunc(func() { close(goOn) })
}

func TestABlockedDiskIsRefusedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, m, release := blockable(t)
		for range 3 {
			began := time.Now()
			wantUnavailable(t, l.Append(t.Context(), sample("refused")))
			if took := time.Since(began); took != brief {
				t.Errorf("refused after %v", took)
			}
		}
		if n := len(l.queue); n != 0 {
			t.Errorf("%d records wait for a disk that nobody waits for", n)
		}
		release()
		synctest.Wait()
		if len(m.content) != 0 {
			t.Errorf("the refused record stayed: %q", m.content)
		}
		mustAppend(t, l, "accepted")
		mustClose(t, l)
		if got := calls(t, m.saved(t)); !slices.Equal(got, []string{"accepted"}) {
			t.Errorf("the log holds %q", got)
		}
	})
}

func TestALateBatchKeepsThoseWhoStillWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, m, release := blockable(t)
		var wg sync.WaitGroup
		add := func(id string, accepted bool) {
			wg.Go(func() {
				if err := l.Append(t.Context(), sample(id)); (err == nil) != accepted {
					t.Errorf("%s: %v", id, err)
				}
			})
			synctest.Wait()
		}
		add("in time", true)
		time.Sleep(100 * time.Millisecond)
		add("early 1", false)
		add("early 2", false)
		time.Sleep(90 * time.Millisecond)
		add("late 1", true)
		add("late 2", true)
		time.Sleep(10 * time.Millisecond)
		// The four go to disk at 200 ms. The early ones leave at 350 ms, the sync
		// ends at 400 ms, and the late ones would leave at 440 ms.
		m.onSync = func() error { m.onSync = nil; time.Sleep(200 * time.Millisecond); return nil }
		release()
		wg.Wait()
		mustClose(t, l)
		if got := calls(t, m.saved(t)); !slices.Equal(got, []string{"in time", "late 1", "late 2"}) {
			t.Errorf("the log holds %q", got)
		}
	})
}

// Callers leave while the batch is with the disk, in every combination: the file holds
// exactly those who were answered, and nobody is answered twice.
func TestEveryWayToLeaveABatch(t *testing.T) {
	const size = 5
	for leavers := range 1 << size {
		m := &memory{}
		l := &Log{
			opts: Options{open: m.open, Now: time.Now, Wait: patient}, late: time.NewTimer(patient),
			writer: writer{tail: tail{Link: logfile.Link{Hash: logfile.Genesis}}, file: m},
		}
		var want []string
		batch := make([]*entry, size)
		for i, id := range ids(size) {
			body, err := encode(sample(id), Digest)
			if err != nil {
				t.Fatal(err)
			}
			batch[i] = &entry{body: body, queued: time.Now(), state: inFlight, done: make(chan error, 1)}
			if leavers>>i&1 == 0 {
				want = append(want, id)
			}
		}
		m.onSync = func() error {
			m.onSync = nil
			for i, e := range batch {
				if leavers>>i&1 == 1 {
					e.queued = time.Time{}
				}
			}
			l.refuseLate()
			for i, e := range batch {
				if leavers>>i&1 == 1 && (len(e.done) == 0 || <-e.done == nil) {
					t.Fatalf("record %d was not refused", i)
				}
			}
			return nil
		}
		body, err := encode(sample("newcomer"), Digest)
		if err != nil {
			t.Fatal(err)
		}
		l.queue = []*entry{{body: body, queued: time.Now(), done: make(chan error, 1)}}
		want = append(want, "newcomer")
		l.opts.batch = size + 1
		l.inFlight = batch
		l.commit(batch)
		l.commit(l.nextBatch())
		for i, e := range batch {
			if left := leavers>>i&1 == 1; left != (e.state == abandoned) || left != (len(e.done) == 0) {
				t.Errorf("leavers %05b: record %d: state %d with %d answers", leavers, i, e.state, len(e.done))
			}
		}
		if got := calls(t, m.saved(t)); !slices.Equal(got, want) {
			t.Errorf("leavers %05b: the log holds %q, want %q", leavers, got, want)
		}
	}
}

func TestLeavingWhileQueuedTakesTheRecordBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, m, release := blockable(t)
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		// In flight, leaving changes nothing; queued, it takes the record back.
		wg.Go(func() {
			if err := l.Append(ctx, sample("in flight")); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		wg.Go(func() { wantUnavailable(t, l.Append(ctx, sample("queued"))) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		release()
		wg.Wait()
		mustClose(t, l)
		if got := calls(t, m.saved(t)); !slices.Equal(got, []string{"in flight"}) {
			t.Errorf("the log holds %q", got)
		}
	})
}

func TestCloseIsBoundedAndKeepsTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		dir := t.TempDir()
		l := open(t, dir, Options{open: m.open, Wait: brief})
		goOn := make(chan struct{})
		m.onSync = func() error { <-goOn; return nil }
		wantUnavailable(t, l.Append(t.Context(), sample("refused")))
		began := time.Now()
		if err := l.Close(); !errors.Is(err, logfile.ErrBlocked) {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(began); took != 2*brief {
			t.Errorf("Close took %v", took)
		}
		var held *LockedError
		if _, err := Open(dir, Options{}); !errors.As(err, &held) {
			t.Errorf("a second log opened beside a write that may still land: %v", err)
		}
		close(goOn)
		mustClose(t, l)
		if len(m.content) != 0 {
			t.Errorf("the refused record stayed: %q", m.content)
		}
		open(t, dir, Options{open: m.open})
	})
}

// A disk that stands still for less than five seconds refuses nothing.
func TestAStallIsWaitedFor(t *testing.T) {
	for _, stall := range []time.Duration{300 * time.Millisecond, time.Second, 4900 * time.Millisecond, 5100 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			m := &memory{}
			l := open(t, t.TempDir(), Options{open: m.open, Wait: defaultWait})
			m.onSync = func() error { m.onSync = nil; time.Sleep(stall); return nil }
			began := time.Now()
			err := l.Append(t.Context(), sample("a"))
			if took, want := time.Since(began), min(stall, 5*time.Second); took != want || (err == nil) != (stall == want) {
				t.Errorf("a stall of %v: %v after %v", stall, err, took)
			}
			mustClose(t, l)
		})
	}
}

// While the disk stands still, a bounded number of records waits, and a bounded number of bytes; others
// are refused at once. Those that waited are recorded when it goes on.
func TestWaitingRecordsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		stall   time.Duration // before the records come
		body    int
		records int
		refused int
	}{
		"many of a stall":         {time.Second, 10, maxWaiting + 500, 500},
		"large ones of a stall":   {time.Second, 1 << 20, maxWaitingBytes>>20 + 10, 11},
		"many of a working disk":  {0, 10, maxWaiting + 500, 0},
		"large of a working disk": {0, 1 << 20, maxWaitingBytes>>20 + 10, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if detector.On && c.body > 10 {
				t.Skip("the race detector makes 75 MB dear: small records wait in the same way")
			}
			synctest.Test(t, func(t *testing.T) {
				m := &memory{}
				l := open(t, t.TempDir(), Options{open: m.open, Record: Completion, Wait: defaultWait})
				goOn := make(chan struct{})
				m.onSync = func() error { m.onSync = nil; <-goOn; return nil }
				var wg sync.WaitGroup
				wg.Go(func() { mustAppend(t, l, "first") })
				time.Sleep(c.stall)
				synctest.Wait()
				var refused, late atomic.Int64
				began := time.Now()
				for range c.records {
					wg.Go(func() {
						r := sample("x")
						r.Completion = strings.Repeat("a", c.body)
						if err := l.Append(t.Context(), r); err != nil {
							refused.Add(1)
							if time.Since(began) > 0 {
								late.Add(1)
							}
						}
					})
				}
				synctest.Wait()
				close(goOn)
				wg.Wait()
				mustClose(t, l)
				if n := len(calls(t, m.saved(t))); int(refused.Load()) != c.refused || late.Load() != 0 || n != c.records+1-c.refused {
					t.Errorf("%d refused, %d of them late, %d recorded; expected %d refused", refused.Load(), late.Load(), n, c.refused)
				}
			})
		})
	}
}
