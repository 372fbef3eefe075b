package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/store"
)

// Backlog is what the journal holds of the processes that wrote it before.
type Backlog struct {
	// Open are the decisions of ModeCall that are tool calls and have no outcome.
	Open []audit.Record
	// Ended tells which of some calls have an outcome.
	Ended func(ids []string) (map[string]bool, error)
}

// ReconcileStats counts what became of calls that others have left, or that nobody has
// answered.
type ReconcileStats struct {
	Unknown      int // ended as unknown
	Redispatched int // were dispatched again
	Recorded     int // had ended, and their outcome was not written down
	Expired      int
	// Err is why something could not be done, and is tried again; else nil.
	Err error
}

const (
	// reconcileInterval is how often the store is looked after.
	reconcileInterval = time.Second
	// sweepRounds is how many rounds there are to one sweep, which costs a sync.
	sweepRounds = 10
	// reconcileBatch is how many calls are asked for at once.
	reconcileBatch = 256
	// maxEnding and maxRunning bound how many calls are ended, and run, at once.
	maxEnding  = 32
	maxRunning = 8
	// maxDispatches is how often a call is dispatched that nobody has survived.
	maxDispatches = 3
)

// Reconciler looks after the store of a kernel.
type Reconciler struct {
	kernel    *Kernel
	store     RecoveryStore
	report    func(ReconcileStats)
	backlog   Backlog
	rounds    int
	starting  bool // what is left of the processes before is not all known yet
	ended     []store.Call
	abandoned []store.Call
	// arguments are the digests, by call, of what the store does not keep of a call
	// that has ended.
	arguments map[string]string

	endSlots, runSlots chan struct{}
	started            sync.WaitGroup
	stop, stopped      chan struct{}
	cancel             context.CancelFunc // what has not begun is left to the next process
	mu                 sync.Mutex
	stats              ReconcileStats
}

// Reconcile looks after the store until it is stopped: at once, and each second, it sees
// to the calls that have no outcome and whose process has gone, to those whose
// tool has not answered in time, and to what need not be kept any more. It is to
// be begun before the kernel judges: decisions of past are of nobody who lives.
//
// What was dispatched once has perhaps acted, and ends as unknown. What is read or
// idempotent is dispatched again, with the arguments that the store has, where
// its tool is still the one that was judged: it then runs as its configuration is
// now, without another slot of the limits. A decision without an outcome whose
// call the store does not have was not dispatched, or the store was spared the
// call: it ends as unknown too, so that every decision has its outcome.
//
// report is told of every round.
func (k *Kernel) Reconcile(past Backlog, report func(ReconcileStats)) *Reconciler {
	ctx, leave := context.WithCancel(context.Background())
	t := &Reconciler{
		kernel: k, store: k.deps.Store, report: report, backlog: past, starting: true, arguments: map[string]string{},
		endSlots: make(chan struct{}, maxEnding), runSlots: make(chan struct{}, maxRunning),
		stop: make(chan struct{}), stopped: make(chan struct{}), cancel: leave,
	}
	t.round(ctx)
	go t.loop(ctx)
	return t
}

// Stop ends a tender, once. It waits for what was begun until ctx ends; what runs
// then is still waited for by Settle.
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

// round does what is to be done now. What the store, or the journal, cannot tell
// yet is asked for again in the next one.
func (t *Reconciler) round(ctx context.Context) {
	defer func() {
		t.mu.Lock()
		done := t.stats
		t.stats = ReconcileStats{}
		t.mu.Unlock()
		t.report(done)
	}()
	t.noteError(t.resume(ctx))
	due, err := t.list(ctx, RecoveryStore.Expired)
	t.noteError(err)
	for _, call := range due {
		c := t.kernel.restore(newStoredCall(call))
		if !t.kernel.endings.begin(c) {
			continue
		}
		t.runLimited(ctx, t.endSlots, func() {
			if c.expire(context.WithoutCancel(ctx)) {
				t.count(func(n *ReconcileStats) { n.Expired++ })
			}
		})
	}
	if t.rounds++; t.rounds%sweepRounds == 0 {
		_, err = ask(t.store, func(s RecoveryStore) (int, error) { return s.Sweep(ctx, reconcileBatch) })
		t.noteError(err)
	}
}

// noteError notes what could not be done.
func (t *Reconciler) noteError(err error) {
	if err != nil {
		t.count(func(n *ReconcileStats) { n.Err = err })
	}
}

// list asks for a batch of calls.
func (t *Reconciler) list(ctx context.Context, calls func(RecoveryStore, context.Context, int) ([]store.Call, error)) ([]store.Call, error) {
	return ask(t.store, func(s RecoveryStore) ([]store.Call, error) { return calls(s, ctx, reconcileBatch) })
}
