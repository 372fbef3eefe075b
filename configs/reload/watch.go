package reload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/safe"
)

// Watcher keeps a serving process up to date with its configuration files.
//
// A configuration that is handed to Swap was read from files that, all of them and together,
// held the same bytes for WatcherOptions.Debounce before the load and still after
// it: a save of one file or of many that takes place during a load, or that
// pauses for less than that, is never served in part. Beyond that the line
// "# end" tells a file that was cut. Files that change in one step need no such
// care: write a file beside and rename it, or a whole folder behind a symbolic
// link, as Kubernetes does. A program that overwrites a file in place without cutting
// it first, and stops for good in between, leaves a file that no reader can tell
// from a finished one.
//
// Its methods may be called from any goroutine.
type Watcher struct {
	path           string
	initial        configs.Settings // whose restart-only keys hold until the restart
	opts           WatcherOptions
	reloadRequests chan struct{}
	load           func(*fingerprint) (*configs.Config, error)

	running atomic.Bool
	mu      sync.Mutex
	state   State

	// Of the goroutine in Run alone:
	fingerprint     *fingerprint     // by the last load
	known           bool             // it is that of the first configuration already
	pendingSwap     *candidate       // valid, and Swap failed
	lastFailure     string           // the failure that was last reported
	writtenSettings configs.Settings // as in the served files, restart-only keys included
	served          *configs.Config
}

// WatcherOptions say how to watch.
type WatcherOptions struct {
	// Interval is the time between two reads of all files; zero or less means one second. A
	// change is noticed after it at the latest.
	Interval time.Duration
	// Debounce is how long the files must be at rest before they are loaded;
	// zero or less means a quarter of a second.
	Debounce time.Duration
	// Now dates State; nil means time.Now.
	Now func() time.Time
	// Swap makes a new valid configuration the one that is served. When it
	// fails it must have changed nothing; it is then called again, with the same
	// configuration, at every look until it succeeds or the files change. Its
	// context ends with that of Run, and a failure after that is not reported.
	// Without Swap, nothing is ever served but the first.
	Swap func(context.Context, *configs.Config) error
	// Report receives events; it may be nil. Swap and Report are called by Run, one at a
	// time; a panic of either is caught.
	Report func(Event)
}

// EventKind is the kind of an event.
type EventKind string

const (
	// Reloaded: Swap has taken a new configuration.
	Reloaded EventKind = "reloaded"
	// Failed: the files are not served, for the reasons in Faults. It is
	// reported again only when the reasons become others.
	Failed EventKind = "failed"
	// Recovered: what is served is again what the files say, after Failed.
	Recovered EventKind = "recovered"
	// RestartRequired: the served configuration is that of the files except for Keys, which
	// have changed and take effect at the next start.
	RestartRequired EventKind = "restart"
)

// Event is one thing that happened.
type Event struct {
	Kind   EventKind
	Digest string          // of the configuration served now
	Faults document.Faults // of Failed
	Keys   []string        // of Restart, such as auth.mode
	Files  []string        // of Reloaded: those that are new, gone or changed
}

// State is the state of a Watcher at one time.
type State struct {
	Digest       string          // of the configuration that is served
	Since        time.Time       // when it came to be served
	Faults       document.Faults // why the files are not served; nil when they are
	FailingSince time.Time       // when they began not to be; zero when they are
	RestartKeys  []string        // the keys that wait for a restart
}

// Load is configs.Load for a configuration that NewWatcher is given: it remembers what it has read, so
// that the first look loads nothing if the files have not changed since.
func Load(path string) (*configs.Config, error) {
	s := newFingerprint(path)
	defer s.dropCache()
	return configs.LoadFrom(s, path, "")
}

// NewWatcher watches the files of the configuration whose main file is path. first
// is what was loaded from it and what is served at the start. The first look is a load, since
// the files may have changed in between, unless first is of Load, which knows whether they
// have. The embedded default, whose path is empty, never changes.
func NewWatcher(path string, first *configs.Config, opts WatcherOptions) *Watcher {
	if opts.Interval <= 0 {
		opts.Interval = time.Second
	}
	if opts.Debounce <= 0 {
		opts.Debounce = 250 * time.Millisecond
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Report == nil {
		opts.Report = func(Event) {}
	}
	if opts.Swap == nil {
		opts.Swap = func(context.Context, *configs.Config) error {
			return errors.New("found nothing that takes a new configuration; expected Swap")
		}
	}
	w := &Watcher{
		path:            path,
		initial:         first.Settings,
		opts:            opts,
		reloadRequests:  make(chan struct{}, 1),
		state:           State{Digest: first.Digest, Since: opts.Now()},
		fingerprint:     newFingerprint(path),
		writtenSettings: first.Settings,
		served:          first,
	}
	if read, is := first.Source().(*fingerprint); is {
		w.fingerprint, w.known = read, true
	}
	// Another data_dir waits for a restart, and so do the definitions accepted there.
	w.load = func(s *fingerprint) (*configs.Config, error) {
		return configs.Reload(s, path, first.DataDir, w.served)
	}
	return w
}

// Reload makes Run load the files now, whether or not they have changed, as on
// SIGHUP. It does not wait for the outcome.
func (w *Watcher) Reload() {
	select {
	case w.reloadRequests <- struct{}{}:
	default: // one that is not yet begun sees all that this one would
	}
}

// State returns what is known now.
func (w *Watcher) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.state
	s.Faults, s.RestartKeys = slices.Clone(s.Faults), slices.Clone(s.RestartKeys)
	return s
}

// Run watches until ctx ends, and returns nil then. Its one error is that it
// runs already. A panic while loading is a failed load.
func (w *Watcher) Run(ctx context.Context) error {
	if !w.running.CompareAndSwap(false, true) {
		return errors.New("this watch runs already")
	}
	defer w.running.Store(false)
	if w.path == "" {
		<-ctx.Done()
		return nil
	}
	poll := time.NewTicker(w.opts.Interval)
	defer poll.Stop()
	for forced := !w.known; ; {
		err := safely(func() error {
			w.check(ctx, forced)
			return nil
		})
		if err != nil {
			w.reportFailure(asFaults(w.path, err))
		}
		// However short the interval is, there is a pause between two looks.
		if !sleep(ctx, w.opts.Debounce/5) {
			return nil
		}
		forced = err != nil // an interrupted attempt starts again
		select {
		case <-ctx.Done():
			return nil
		case <-w.reloadRequests:
			forced = true
		case <-poll.C:
		}
	}
}

// check reads the files once, and loads them if something has changed or force is set.
func (w *Watcher) check(ctx context.Context, force bool) {
	if !force && w.fingerprint.changed() == "" {
		if w.pendingSwap != nil {
			w.swap(ctx, w.pendingSwap)
		}
		return
	}
	rested, c, err := w.loadSettled(ctx)
	if !rested {
		return
	}
	w.pendingSwap = nil
	switch {
	case err != nil:
		w.reportFailure(asFaults(w.fingerprint.lastRead, err))
	case c.Digest == w.State().Digest:
		w.reportRecovery()
	default:
		o := &candidate{config: c, writtenSettings: c.Settings}
		o.restartKeys = keepRestartOnly(&c.Settings, w.initial)
		if missing := c.MissingReplicas(); c.Redis != nil && missing != nil { // the file no longer has the key redis, which waits for a restart
			w.reportFailure(document.Faults{missing})
			return
		}
		w.swap(ctx, o)
	}
}

// settleTimeout is after how long files that never come to rest are a failure.
const settleTimeout = 10 * time.Second

// loadSettled loads files that are at rest, and returns false when ctx ends before
// they are.
func (w *Watcher) loadSettled(ctx context.Context) (rested bool, c *configs.Config, err error) {
	for tries := time.Duration(1); ; tries++ {
		before := w.fingerprint.retake()
		if !sleep(ctx, w.opts.Debounce) {
			return false, nil, nil
		}
		moved := before.changed()
		if moved == "" {
			s := newFingerprint(w.path)
			err = safely(func() (err error) { c, err = w.load(s); return err })
			s.dropCache()
			w.fingerprint = s
			// A file that was not known before has yet to be seen at rest.
			if !s.coveredBy(before) && !sleep(ctx, w.opts.Debounce) {
				return false, nil, nil
			}
			moved = s.changed()
		}
		if moved == "" {
			return true, c, err
		}
		if tries*w.opts.Debounce >= settleTimeout {
			w.reportFailure(document.Faults{{File: moved,
				Message: fmt.Sprintf("found changes at every look; expected all files at rest for %s", duration.Spell(w.opts.Debounce))}})
		}
	}
}

// candidate is a configuration for Swap.
type candidate struct {
	config          *configs.Config
	writtenSettings configs.Settings // as in the file
	restartKeys     []string         // the keys in which config differs from it
}

func (w *Watcher) swap(ctx context.Context, o *candidate) {
	if err := safely(func() error { return w.opts.Swap(ctx, o.config) }); err != nil {
		if ctx.Err() != nil {
			return // it was broken off, which says nothing of the configuration
		}
		w.pendingSwap = o
		w.reportFailure(asFaults(w.path, err))
		return
	}
	w.pendingSwap = nil
	now := w.opts.Now()
	w.mu.Lock()
	w.state.Digest, w.state.Since, w.state.RestartKeys = o.config.Digest, now, o.restartKeys
	w.mu.Unlock()
	w.emit(Event{Kind: Reloaded, Files: o.config.FilesChangedSince(w.served)})
	w.served = o.config
	w.reportRecovery()
	settings := o.writtenSettings
	if changed := keepRestartOnly(&settings, w.writtenSettings); len(changed) > 0 && len(o.restartKeys) > 0 {
		w.emit(Event{Kind: RestartRequired, Keys: o.restartKeys})
	}
	w.writtenSettings = o.writtenSettings
}

// reportFailure says why the files are not served.
func (w *Watcher) reportFailure(faults document.Faults) {
	now := w.opts.Now()
	w.mu.Lock()
	w.state.Faults = faults
	if w.state.FailingSince.IsZero() {
		w.state.FailingSince = now
	}
	w.mu.Unlock()
	if text := faults.Error(); text != w.lastFailure {
		w.lastFailure = text
		w.emit(Event{Kind: Failed, Faults: faults})
	}
}

// reportRecovery says that the files are served, if they were not.
func (w *Watcher) reportRecovery() {
	if w.lastFailure == "" {
		return
	}
	w.lastFailure = ""
	w.mu.Lock()
	w.state.Faults, w.state.FailingSince = nil, time.Time{}
	w.mu.Unlock()
	w.emit(Event{Kind: Recovered})
}

func (w *Watcher) emit(e Event) {
	e.Digest = w.State().Digest
	// A failure of Report cannot be reported.
	_ = safely(func() error { w.opts.Report(e); return nil })
}

// asFaults are the faults that err is, or one at a file.
func asFaults(file string, err error) document.Faults {
	var all document.Faults
	if errors.As(err, &all) {
		return all
	}
	return document.Faults{{File: file, Message: err.Error()}}
}

// safely runs f. A panic of f is an error, which shows nothing of its value.
func safely(f func() error) error {
	panicked := true
	err := safe.Do(func() error {
		err := f()
		panicked = false
		return err
	})
	if panicked {
		return fmt.Errorf("found a fault of the program itself (%w)", err)
	}
	return err
}

// sleep waits, and returns false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
