package calls

import (
	"context"
	"sync"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/store"
)

// Backlog has the records of earlier processes in the journal.
type Backlog struct {
	// Open are the decisions of ModeCall that are tool calls and have no outcome.
	Open []audit.Record
	// Ended returns the outcomes of those of some calls that have one, or were handed over.
	Ended func(ids []string) (map[string]audit.Outcome, error)
}

// ReconcileStats counts what one round has done.
type ReconcileStats struct {
	Unknown      int // ended as unknown
	Redispatched int // dispatched again
	Recorded     int // had ended without a recorded outcome
	Expired      int
	// Err is why something failed; it is tried again in the next round.
	Err error
}

const (
	// reconcileInterval is the time between two rounds.
	reconcileInterval = time.Second
	// sweepRounds is the number of rounds for each sweep, which costs a sync. While there is more to sweep,
	// each round does that for sweepTime.
	sweepRounds = 10
	sweepTime   = reconcileInterval / 4
	// reconcileBatch is how many calls are read at once.
	reconcileBatch = 256
	// maxEnding and maxRunning bound how many calls are ended, and run, at the same time.
	maxEnding  = 32
	maxRunning = 8
)

// Reconciler ends the calls that other processes have abandoned.
type Reconciler struct {
	executor  *Executor
	report    func(ReconcileStats)
	backlog   Backlog
	rounds    int
	starting  bool // the journal and the store are not joined yet
	sweeping  bool // there is more to sweep
	abandoned []store.Call

	endSlots, runSlots chan struct{}
	started            sync.WaitGroup
	stop, stopped      chan struct{}
	cancel             context.CancelFunc // leaves what has not started to the next process
	mu                 sync.Mutex
	stats              ReconcileStats
}

// Reconcile starts a reconciler, which runs at once and then each second: it ends the
// calls whose process has died and those whose tool has not answered in time, and deletes
// old calls. Start it before the first Judge: the backlog holds decisions of processes
// that no longer exist.
//
// A call with the effect once may have acted, and ends as unknown. A call with the effect
// read or idempotent is dispatched again with the stored arguments, if its tool is still
// the one that was judged. It runs under the current configuration and takes no slot of
// the limits. A decision without an outcome whose call is not in the store ends as
// unknown, too, so that every decision has an outcome.
//
// report is called after every round.
func (e *Executor) Reconcile(backlog Backlog, report func(ReconcileStats)) *Reconciler {
	ctx, cancel := context.WithCancel(context.Background())
	t := &Reconciler{
		executor: e, report: report, backlog: backlog, starting: true,
		endSlots: make(chan struct{}, maxEnding), runSlots: make(chan struct{}, maxRunning),
		stop: make(chan struct{}), stopped: make(chan struct{}), cancel: cancel,
	}
	t.round(ctx)
	go t.loop(ctx)
	return t
}

// Stop stops the reconciler. It waits until ctx ends for the work that has started;
// Flush waits for the rest.
func (t *Reconciler) Stop(ctx context.Context) {
	close(t.stop)
	ended := make(chan struct{})
	go func() {
		<-t.stopped
		t.started.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	t.cancel()
}

func (t *Reconciler) loop(ctx context.Context) {
	defer close(t.stopped)
	tick := time.NewTicker(reconcileInterval)
	defer tick.Stop()
	for {
		select {
		case <-t.stop:
			return
		case <-tick.C:
			t.round(ctx)
		}
	}
}

func (t *Reconciler) count(of func(*ReconcileStats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of(&t.stats)
}

// round does the work of one second. Work that fails is tried again in the next round.
func (t *Reconciler) round(ctx context.Context) {
	defer func() {
		t.mu.Lock()
		done := t.stats
		t.stats = ReconcileStats{}
		t.mu.Unlock()
		t.report(done)
	}()
	t.noteError(t.resume(ctx))
	due, err := t.recover(ctx, store.Expired)
	t.noteError(err)
	for _, call := range due {
		c := t.executor.executions.Restore(stored.New(call))
		if !c.Begin() {
			continue
		}
		t.runLimited(ctx, t.endSlots, func() {
			if c.Expire(context.WithoutCancel(ctx)) {
				t.count(func(n *ReconcileStats) { n.Expired++ })
			}
		})
	}
	if t.rounds++; t.rounds%sweepRounds == 0 {
		t.noteError(t.executor.approvals.Lapse(ctx, reconcileBatch))
		t.noteError(t.executor.approvals.Measure(ctx))
		t.sweeping = true
	}
	for end := time.Now().Add(sweepTime); t.sweeping && time.Now().Before(end); {
		n, err := t.executor.calls.Sweep(ctx, reconcileBatch)
		t.noteError(err)
		t.sweeping = n > 0 && err == nil
	}
}

// noteError notes an error of the round.
func (t *Reconciler) noteError(err error) {
	if err != nil {
		t.count(func(n *ReconcileStats) { n.Err = err })
	}
}

// recover asks for a batch of calls.
func (t *Reconciler) recover(ctx context.Context, reason store.Reason) ([]store.Call, error) {
	return t.executor.calls.Recover(ctx, reason, reconcileBatch)
}
