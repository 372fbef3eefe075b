package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/wholefile"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/redisstore"
)

// The files of threads in a data_dir: what was kept of them at some record of the audit log, and, where a Redis keeps them,
// since when their terms were kept last.
const (
	threadsFile = "threads.bin"
	termsFile   = "threads.json"
	threadsKey  = "threads.key" // by which values are named, where no Redis keeps threads
)

// How often what failed is tried again, the acceptance of a loss is looked for, and threads are swept and saved.
const (
	threadsBeat   = 200 * time.Millisecond
	threadsAccept = 50 // beats
	threadsSave   = 3000
	threadsSweep  = 10_000
)

// threads keep what policies ask of the past of threads. Where no Redis keeps them, they are in the memory of the process: a start puts
// them together from the last snapshot and the audit log behind it.
type threads struct {
	*store.Engine
	shared  bool
	file    string
	log     *audit.Log
	logger  *slog.Logger
	accepts func(lost time.Time) bool
	// unrecorded is what was added before the start, and the log does not say yet.
	unrecorded []store.ThreadFact
	stop       context.CancelFunc
	ended      chan struct{}

	secret atomic.Pointer[history.Secret]
	count  atomic.Int64          // of threads and callers, a while ago
	due    atomic.Pointer[error] // why the terms are not kept yet, or not saved; nil: they are

	mu     sync.Mutex
	terms  *history.Terms // to be kept
	before *history.Keeping
	failed string
}

// openThreads returns the threads of a data folder, whose log has been read and nothing was written to yet, and begins to keep these
// terms. ended is what the log does not say yet. used says that the policy reads the past. anonymous says that the log names as principals
// what the store does not.
func openThreads(ctx context.Context, dir string, log *audit.Log, ended []store.ThreadFact, terms *history.Terms, used, anonymous bool,
	bounds store.ThreadBounds, logger *slog.Logger) (*threads, error) {
	t := newThreads(filepath.Join(dir, threadsFile), dir, logger)
	t.log, t.unrecorded = log, ended
	if err := t.recover(ctx, used, anonymous, bounds); err != nil {
		return nil, fmt.Errorf("threads: %w", err)
	}
	return t, t.begin(ctx, terms, used)
}

// openSharedThreads is openThreads for those that a Redis keeps. It may be away: until it answers, nothing is known of threads.
func openSharedThreads(ctx context.Context, dir string, shared *store.Engine, terms *history.Terms, used bool,
	logger *slog.Logger) (*threads, error) {
	t := newThreads(filepath.Join(dir, termsFile), dir, logger)
	t.Engine, t.shared = shared, true
	before, err := termsBefore(dir, 0)
	switch {
	case errors.Is(err, errTermsFile):
		logger.Error("since when terms of threads are kept cannot be read", "cause", err.Error())
	case err != nil:
		return nil, err
	}
	t.before = before
	return t, t.begin(ctx, terms, used)
}

var errTermsFile = errors.New("it was changed or damaged")

// termsBefore returns since when the terms are kept of which a Redis has the threads, as the gateway of a data folder has known it last;
// nil: it has not, or longer ago than that. The error of a file that says something else is errTermsFile: then anything may have been lost.
func termsBefore(dir string, since time.Duration) (*history.Keeping, error) {
	file := filepath.Join(dir, termsFile)
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && since > 0 && time.Since(info.ModTime()) > since {
		return nil, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, oserr.Reason(err))
	}
	before := &history.Keeping{}
	if err := json.Unmarshal(content, before); err != nil {
		return (*history.Keeping)(nil).Losing(time.Now()), fmt.Errorf("%s: %w: %w", file, errTermsFile, err)
	}
	return before, nil
}

func newThreads(file, dir string, logger *slog.Logger) *threads {
	return &threads{file: file, logger: logger, accepts: lossAccepted(dir, logger, time.Now), ended: make(chan struct{})}
}

// begin begins to keep terms.
func (t *threads) begin(ctx context.Context, terms *history.Terms, used bool) error {
	if used || exists(t.file) {
		if err := t.keep(ctx, terms); err != nil && !t.shared {
			return fmt.Errorf("threads: %w", err)
		}
	}
	ctx, t.stop = context.WithCancel(context.WithoutCancel(ctx))
	go t.maintain(ctx)
	return nil
}

// recover puts together what was kept.
func (t *threads) recover(ctx context.Context, used, anonymous bool, bounds store.ThreadBounds) error {
	content, err := os.ReadFile(t.file)
	if err == nil {
		if err = t.recoverBehind(ctx, content, anonymous, bounds); err == nil {
			return nil
		}
		t.logger.Error("the snapshot of threads cannot be used; reading the whole audit log", "file", t.file, "cause", err.Error())
	}
	t.Engine = store.NewThreads(time.Now, bounds)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !used:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		seq, _ := t.log.Last()
		t.logger.Info("there is no snapshot of threads; reading the whole audit log", "file", t.file, "records", seq)
	case !errors.Is(err, store.ErrSnapshot) && !errors.Is(err, audit.ErrOtherLog):
		return oserr.Reason(err)
	}
	damaged := !errors.Is(err, fs.ErrNotExist)
	fold, err := t.fold(ctx, 0, "", anonymous)
	if err != nil {
		return err
	}
	lost := fold.lost
	if fold.records > 0 && !exists(t.keyFile()) {
		lost = time.Now() // nobody can say which values the records are about
	}
	if fold.records == 0 && !damaged { // none has used threads before
		lost = time.Time{}
	}
	if !lost.IsZero() && t.accepts(lost) {
		lost = time.Time{}
	}
	if !lost.IsZero() {
		t.logger.Error("the audit log is not complete, so threads are refused whose past is not known; put the rotated files back, or accept the loss with callgate audit accept-loss", "lost_until", lost)
	}
	return t.SettleThreads(ctx, lost)
}

// recoverBehind uses a snapshot.
func (t *threads) recoverBehind(ctx context.Context, content []byte, anonymous bool, bounds store.ThreadBounds) error {
	t.Engine = store.NewThreads(time.Now, bounds)
	seq, hash, err := t.LoadThreads(ctx, content)
	if err != nil {
		return err
	}
	fold, err := t.fold(ctx, seq, hash, anonymous)
	if err != nil {
		return err
	}
	if !exists(t.keyFile()) {
		fold.lost = time.Now()
	}
	return t.SettleThreads(ctx, fold.lost)
}

// folded is what a fold has read. lost is up to when records may be missing; the zero time: none is.
type folded struct {
	records int
	lost    time.Time
}

// fold applies the log behind a record.
func (t *threads) fold(ctx context.Context, seq uint64, hash string, anonymous bool) (f folded, err error) {
	f, err = foldTurns(ctx, t.log, seq, hash, anonymous, t.logger,
		func(facts []store.ThreadFact) error { return t.FoldThreads(ctx, facts) })
	if err == nil {
		err = t.FoldThreads(ctx, t.unrecorded)
	}
	return f, err
}

// foldTurns passes what the log says behind a record, whose hash may be empty.
func foldTurns(ctx context.Context, log *audit.Log, seq uint64, hash string, anonymous bool, logger *slog.Logger,
	do func([]store.ThreadFact) error) (f folded, err error) {
	var facts []store.ThreadFact
	flush := func() error {
		err := do(facts)
		facts = facts[:0]
		return err
	}
	reach, err := log.ReplayTurns(ctx, seq, hash, func(r *audit.Record) error {
		f.records++
		fact, err := threadFactOf(r, anonymous)
		if err != nil {
			logger.Error("a record of the audit log does not say what it adds to a thread", "seq", r.Seq, "cause", err.Error())
			f.lost = time.Now()
			return nil
		}
		if facts = append(facts, fact); len(facts) < factsBatch {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	switch {
	case reach.Missing == 0:
	case seq == 0 && reach.Missing == reach.First-1 && f.lost.IsZero():
		f.lost = reach.Time // only its beginning
	default:
		f.lost = time.Now()
	}
	return f, err
}

// threadFactOf is what a record says of a thread.
func threadFactOf(r *audit.Record, anonymous bool) (f store.ThreadFact, err error) {
	scope := store.Scope{Principal: r.Principal, Workspace: r.Workspace, Project: r.Project}
	if anonymous {
		scope.Principal = ""
	}
	f = store.ThreadFact{ThreadKeys: store.KeysOf(scope, ""), At: r.Time, Turn: r.Turn, CallerTurn: r.CallerTurn, Undo: len(r.Undo) > 0}
	if f.Thread = r.Ledger; r.Event == audit.Thread {
		f.Closes = true
		if f.Principal = r.OfPrincipal; anonymous {
			f.Principal = ""
		}
		return f, nil
	}
	texts := r.Adds
	if f.Undo {
		texts = r.Undo
	}
	if f.Turn == 0 && f.CallerTurn == 0 {
		return f, nil
	}
	f.Adds, err = history.ReadAdds(texts)
	f.Adds.Call = r.CallID
	return f, err
}

// keep keeps other terms from now on: once the policy that has them is in force, which gets no answer of those that are new
// before. What fails is tried again.
func (t *threads) keep(ctx context.Context, terms *history.Terms) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.terms = terms
	return t.tryKeep(ctx)
}

// tryKeep is keep, with t.mu held.
func (t *threads) tryKeep(ctx context.Context) error {
	kept, err := t.KeepTerms(ctx, t.terms, t.before)
	if err == nil && t.shared {
		t.before = kept
	}
	if err == nil && t.secret.Load() == nil {
		err = t.takeKey(kept)
	}
	if err == nil {
		err = t.AcceptLoss(ctx, t.accepts)
	}
	if err == nil {
		err = t.save(ctx)
	}
	if err != nil {
		t.due.Store(&err)
	} else {
		t.due.Store(nil)
	}
	t.report(err)
	return err
}

// takeKey takes the key of the values by which conditions count: on Redis that of all gateways, else that of the data folder,
// which the first start makes.
func (t *threads) takeKey(kept *history.Keeping) error {
	key := []byte(kept.Key)
	if !t.shared {
		var err error
		if key, err = os.ReadFile(t.keyFile()); errors.Is(err, fs.ErrNotExist) {
			key = []byte(rand.Text() + rand.Text())
			err = errors.Join(wholefile.Replace(t.keyFile(), key), wholefile.SyncFolder(filepath.Dir(t.file)))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.keyFile(), oserr.Reason(err))
		}
	}
	secret, err := history.NewSecret(key)
	if err != nil {
		return fmt.Errorf("%s: %w", t.keyFile(), err)
	}
	t.secret.Store(secret)
	return nil
}

func (t *threads) keyFile() string { return filepath.Join(filepath.Dir(t.file), threadsKey) }

// Secret is that of the values by which conditions count; nil where it is not known yet.
func (t *threads) Secret() *history.Secret { return t.secret.Load() }

// follow has other terms kept once the kernel judges by a configuration that asks for them. What fails is tried again, and the
// terms are not known until then.
func (t *threads) follow(_ context.Context, _ *configs.Config, next *gateway.Config) (change, error) {
	terms, used, err := next.Terms()
	if err != nil {
		return change{}, err
	}
	return change{commit: func() {
		if used || exists(t.file) {
			ctx, cancel := context.WithTimeout(context.Background(), gateway.StoreWait)
			defer cancel()
			_ = t.keep(ctx, terms) // which reports it
		}
	}, abort: doNothing}, nil
}

// openLedger opens the threads of a configuration, where its calls are kept.
func openLedger(ctx context.Context, c *configs.Config, state *gateway.Config, calls callStore, log *audit.Log, open []audit.Record,
	logger *slog.Logger) (*threads, error) {
	terms, used, err := state.Terms()
	if err != nil {
		return nil, err
	}
	if shared, ok := calls.Store.(*redisstore.Store); ok {
		return openSharedThreads(ctx, c.DataDir, shared.Engine, terms, used, logger)
	}
	ended, err := unrecorded(ctx, calls, open)
	if err != nil {
		return nil, fmt.Errorf("threads: %w", err)
	}
	return openThreads(ctx, c.DataDir, log, ended, terms, used, state.Identity == nil, threadBounds(c), logger)
}

// unrecorded is what calls have added to their threads that have ended and of which the log has no outcome.
func unrecorded(ctx context.Context, calls calls.Store, open []audit.Record) (facts []store.ThreadFact, err error) {
	for i := range open {
		if open[i].Ledger == "" {
			continue
		}
		call, err := calls.Get(ctx, open[i].CallID, store.OfRecovery())
		switch {
		case errors.Is(err, store.ErrNotFound) || err == nil && call.Counted.Turn == 0:
			continue
		case err != nil:
			return nil, err
		}
		f := store.ThreadFact{ThreadKeys: store.KeysOf(call.Scope, ""), At: call.Ended, Turn: call.Counted.Turn}
		if f.Adds, err = history.ReadAdds(call.Counted.Adds); err != nil {
			return nil, err
		}
		f.Thread, f.Adds.Call = call.Task.Ledger, call.ID
		facts = append(facts, f)
	}
	return facts, nil
}

// threadBounds are those of a configuration.
func threadBounds(c *configs.Config) store.ThreadBounds {
	return store.ThreadBounds{Idle: c.Threads.Idle, KeepLabels: c.Threads.KeepLabels}
}

// unavailable says why the terms are not kept yet, or not saved; empty if they are.
func (t *threads) unavailable() string {
	if err := t.due.Load(); err != nil {
		return (*err).Error()
	}
	return ""
}

// report logs a failure, until its cause changes. It is called with t.mu held.
func (t *threads) report(err error) {
	cause := ""
	if err != nil {
		cause = err.Error()
	}
	if cause != "" && cause != t.failed {
		t.logger.Error("what is kept of threads cannot be saved; trying again", "cause", cause)
	}
	t.failed = cause
}

// save writes the file. It is called with t.mu held.
func (t *threads) save(ctx context.Context) error {
	var content []byte
	var err error
	if t.shared {
		content, err = json.Marshal(t.before)
	} else {
		seq, hash := t.log.Last() // first: what is in the log was added before
		content, err = t.EncodeThreads(ctx, seq, hash)
	}
	if err != nil {
		return err
	}
	if err := wholefile.Replace(t.file, content); err != nil {
		return fmt.Errorf("%s: %w", t.file, oserr.Reason(err))
	}
	return nil
}

// maintain does what is due, until ctx ends.
func (t *threads) maintain(ctx context.Context) {
	defer close(t.ended)
	every := time.NewTicker(threadsBeat)
	defer every.Stop()
	for beat := 1; ; beat++ {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		t.mu.Lock()
		switch {
		case t.due.Load() != nil:
			_ = t.tryKeep(ctx) // which reports it
		case t.terms == nil && !exists(t.file): // nobody uses threads
		case beat%threadsSave == 0:
			_, err := t.SweepThreads(ctx, threadsSweep)
			if err == nil {
				err = t.save(ctx)
			}
			t.report(err)
		case beat%threadsAccept == 0:
			n, err := t.CountThreads(ctx)
			if err == nil {
				t.count.Store(int64(n))
				err = t.AcceptLoss(ctx, t.accepts)
			}
			if kept := t.KeptTerms(); err == nil && t.shared && kept != nil && !reflect.DeepEqual(kept, t.before) {
				t.before = kept // a loss is put back by the names that it has
				err = t.save(ctx)
			}
			t.report(err)
		}
		t.mu.Unlock()
	}
}

// close ends it, and saves the threads, where a policy has used them. Nothing may be added any more.
func (t *threads) close(ctx context.Context) error {
	t.stop()
	<-t.ended
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shared || !exists(t.file) {
		return nil
	}
	return t.save(ctx)
}
