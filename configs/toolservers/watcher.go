// Package toolservers watches the tool servers of a configuration. A tool of a server may
// be called only while the server's definition is the one that an operator has accepted: a
// changed, new or invalid definition quarantines it. An unreachable server changes nothing,
// since it has sent no other definition.
package toolservers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
)

const (
	pollInterval = 30 * time.Second       // at which each server's list is read
	startWait    = 5 * time.Second        // for which calls wait for a server's first list, from its start
	firstPause   = 500 * time.Millisecond // half of that before a server is asked again that has not answered yet
)

// Discoverer asks servers for their tools.
type Discoverer interface {
	Discover(context.Context, tool.Server) ([]tool.Definition, error)
}

// Watcher polls the servers of the configuration and quarantines every tool whose
// definition is not the accepted one. While a server's answer is invalid, all of its tools are
// in quarantine, and until it has answered, none of them may be called.
type Watcher struct {
	discoverer Discoverer
	// hold replaces the sets of tools that may not be called: those in quarantine, and those that may
	// not be called yet, with the time until their server is asked again; 0: it is being asked.
	hold   func(quarantined map[string]bool, starting map[string]time.Duration)
	keep   func(servers []tool.Server) // closes programs and sessions of all other servers
	logger *slog.Logger

	mu           sync.Mutex
	tools        *registry.Registry
	servers      []*watchedServer // in the order of the configuration
	acceptedHeld int              // accepted tools that may not be called
	held         held
	previous     held // of the configuration before, while both may judge
	workers      sync.WaitGroup
	changed      func() // may be nil
	closed       bool
}

// held are the tools that may not be called.
type held struct {
	quarantined map[string]bool
	starting    map[string]time.Duration
}

// watchedServer is a server that is polled.
type watchedServer struct {
	config    lockfile.Server
	pins      []lockfile.Pin
	began     time.Time     // when it was polled first, or for the change that it announced last
	announced int           // changes that it has announced
	listed    int           // of these, those that came before it was asked for the list that it answered last
	pause     time.Duration // from the last attempt, which failed, to the next
	statement statement
	offers    map[versionKey]*tool.Definition // those that differ from the accepted ones
	answered  time.Time                       // when it last listed its tools; zero is never
	fault     string                          // why the last attempt failed
	// unreadable says that the last that it said of its tools cannot be read.
	unreadable bool
	logged     []string      // the quarantined tools that were logged last
	polled     chan struct{} // closed once it was polled after began
	wake       chan struct{}
	stop       context.CancelFunc
}

// Status is the state of a server, for operators.
type Status struct {
	Name  string     `json:"name"`
	Type  string     `json:"type"`
	Heard *time.Time `json:"heard,omitempty"` // when it last listed its tools
	Fault string     `json:"fault,omitempty"`
	// Unreadable says that the last that it said of its tools cannot be read, so that
	// all of them are in quarantine.
	Unreadable bool `json:"unreadable,omitempty"`
	Tools      int  `json:"tools"` // that may be called
	// Starting are tools that were accepted and may not be called yet, because the server has not
	// listed its tools since the gateway started, or since it announced a change.
	Starting []string `json:"starting,omitempty"`
	// Quarantined are tools that were accepted and may not be called now, New how
	// many were never accepted.
	// A version beside those that were accepted is one.
	Quarantined []string `json:"quarantined,omitempty"`
	New         int      `json:"new,omitempty"`
}

// NewWatcher returns a Watcher of no servers; Prepare gives it some.
func NewWatcher(of Discoverer, hold func(quarantined map[string]bool, starting map[string]time.Duration), keep func([]tool.Server),
	logger *slog.Logger) *Watcher {
	return &Watcher{discoverer: of, hold: hold, keep: keep, logger: logger}
}

// Prepare starts to watch the servers of a configuration and stops watching the others. A
// server whose settings did not change keeps its state. Call Prepare before the kernel
// judges by the configuration, so that no tool of a new server is called before it is
// compared. Tools that might not be called may not until Commit.
func (f *Watcher) Prepare(c *configs.Config) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.tools = c.Tools
	var next []*watchedServer
	for _, s := range c.Servers {
		at := slices.IndexFunc(f.servers, func(w *watchedServer) bool { return reflect.DeepEqual(w.config, s) })
		if at >= 0 {
			w := f.servers[at]
			f.servers = slices.Delete(f.servers, at, at+1)
			first := !w.mayAsk()
			w.pins = c.Pins[s.Name]
			if first && w.mayAsk() {
				w.wakeUp()
			}
			next = append(next, w)
			continue
		}
		ctx, stop := context.WithCancel(context.Background())
		w := &watchedServer{config: s, pins: c.Pins[s.Name], began: time.Now(), polled: make(chan struct{}), wake: make(chan struct{}, 1),
			stop: stop}
		next = append(next, w)
		f.workers.Go(func() { f.poll(ctx, w) })
	}
	for _, gone := range f.servers {
		gone.stop()
	}
	f.servers, f.previous = next, f.held
	f.applyQuarantine()
}

// Commit ends what follow has begun. Programs and sessions of servers that are gone,
// or that are reached otherwise now, end when the calls that still use them have.
func (f *Watcher) Commit() {
	f.mu.Lock()
	f.previous = held{}
	f.applyQuarantine()
	kept := make([]tool.Server, len(f.servers))
	for i, w := range f.servers {
		kept[i] = w.config.Server
	}
	f.mu.Unlock()
	f.keep(kept)
}

// poll asks a server for its tools, again and again, until ctx ends. One that has not answered yet
// is asked sooner, and a program of which nothing was accepted is not started: nobody has said that it may run.
func (f *Watcher) poll(ctx context.Context, w *watchedServer) {
	next := firstPause
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	for {
		f.mu.Lock()
		ask, announced := w.mayAsk(), w.announced
		if !ask {
			w.endPoll()
			f.fail(w, fmt.Errorf("its program is not started, since nothing of it was accepted: callgate servers accept %s", w.config.Name))
		}
		f.mu.Unlock()
		var err error
		if ask {
			var found []tool.Definition
			if found, err = f.discoverer.Discover(ctx, w.config.Server); ctx.Err() != nil {
				return
			}
			if next = min(2*next, pollInterval); err == nil {
				next = pollInterval
			}
			f.update(w, found, announced, err, next)
		}
		timer.Reset(next)
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			next = firstPause
		case <-timer.C:
		}
	}
}

// Changed has a server polled at once. If it has announced other tools, none of its tools may be called until it has
// listed them.
func (f *Watcher) Changed(server string, announced bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.servers {
		if w.config.Name != server {
			continue
		}
		if announced {
			w.announced++
			w.began, w.pause = time.Now(), 0
			select {
			case <-w.polled:
				w.polled = make(chan struct{})
			default:
			}
			f.applyQuarantine()
		}
		w.wakeUp()
	}
}

// WaitFirst waits until every server was polled once, or ctx ends.
func (f *Watcher) WaitFirst(ctx context.Context) {
	f.mu.Lock()
	var all []chan struct{}
	for _, w := range f.servers {
		all = append(all, w.polled)
	}
	f.mu.Unlock()
	for _, polled := range all {
		select {
		case <-polled:
		case <-ctx.Done():
			return
		}
	}
}

// WaitTool waits for a tool whose server has not listed its tools yet, or not since it announced a change: until it was
// polled, for five seconds from then, or until ctx ends.
func (f *Watcher) WaitTool(ctx context.Context, name string) {
	f.mu.Lock()
	var polled chan struct{}
	var until time.Time
	for _, w := range f.servers {
		if fit, has := w.matches()[name]; has && w.awaits(fit) {
			polled, until = w.polled, w.began.Add(startWait)
		}
	}
	f.mu.Unlock()
	if polled == nil {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	select {
	case <-polled:
	case <-ctx.Done():
	}
}

// update records the answer of a server, which was asked when it had announced a number of changes, and is asked again
// after a time. A server that does not answer changes nothing. An answer that cannot be read quarantines all of its
// tools.
func (f *Watcher) update(w *watchedServer, found []tool.Definition, announced int, err error, next time.Duration) {
	definitions := statementOf(found) // a long list does not block others
	f.mu.Lock()
	defer f.mu.Unlock()
	if announced == w.announced {
		defer w.endPoll()
		w.pause = next
	}
	if err != nil {
		f.fail(w, err)
		return
	}
	w.listed, w.pause = announced, 0
	if w.fault != "" || w.answered.IsZero() {
		f.logger.Info("tool server listed its tools", "server", w.config.Name, "tools", len(found))
	}
	w.statement, w.offers = definitions, offersOf(found, definitions, w.pins)
	w.answered, w.fault, w.unreadable = time.Now(), "", false
	f.applyQuarantine()
}

// fail records why a server did not answer, or that its answer cannot be read. A server
// that goes away after an unreadable answer stays unreadable.
func (f *Watcher) fail(w *watchedServer, err error) {
	unreadable := unreadable(err)
	if fault := err.Error(); w.fault != fault {
		w.fault = fault
		message := "tool server did not list its tools"
		if unreadable {
			message = "tool server listed tools that could not be read"
		}
		f.logger.Warn(message, "server", w.config.Name, "cause", fault)
	}
	w.unreadable = w.unreadable || unreadable
	f.applyQuarantine()
}

// unreadable reports whether an error means an answer that cannot be read, and not a
// server that does not answer.
func unreadable(err error) bool {
	var unreadable *tool.InvalidListError
	return errors.As(err, &unreadable)
}

// applyQuarantine computes which tools may not be called and puts them in quarantine.
// The caller holds mu.
func (f *Watcher) applyQuarantine() {
	apart, starting, accepted := map[string]bool{}, map[string]time.Duration{}, 0
	for _, w := range f.servers {
		var changed []string
		for name, fit := range w.matches() {
			switch {
			case w.awaits(fit):
				starting[name] = w.pause
			case fit:
				continue
			default:
				apart[name] = true
				changed = append(changed, name)
			}
			accepted++
		}
		if slices.Sort(changed); !w.starting() && !slices.Equal(changed, w.logged) {
			if w.logged = changed; len(changed) > 0 {
				f.logger.Warn("tools quarantined: their server's definitions differ from the accepted ones", "server", w.config.Name,
					"tools", changed)
			} else {
				f.logger.Info("no tool quarantined: the server's definitions match the accepted ones", "server", w.config.Name)
			}
		}
		if !w.mayAsk() {
			apart[w.config.Prefix+".*"] = true // what it has is not known
		}
		for _, name := range w.newTools() {
			// A new tool never quarantines one that a tool file or another server has.
			if _, ok := f.tools.Lookup(name); !ok {
				apart[name] = true
			}
		}
	}
	maps.Copy(apart, f.previous.quarantined)
	maps.Copy(starting, f.previous.starting)
	either := func(time.Duration, time.Duration) bool { return true }
	changed := !maps.Equal(apart, f.held.quarantined) || !maps.EqualFunc(starting, f.held.starting, either)
	f.acceptedHeld, f.held = accepted, held{apart, starting}
	f.hold(apart, starting)
	if changed && f.changed != nil {
		f.changed()
	}
}

// OnChange has a function called when other tools may be called than before. It must not block.
func (f *Watcher) OnChange(changed func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed = changed
}

// mayAsk reports whether a server may be asked for its tools: a program runs only after a tool of it was accepted.
func (w *watchedServer) mayAsk() bool { return len(w.config.Command) == 0 || len(w.pins) > 0 }

// wakeUp has the server polled at once.
func (w *watchedServer) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// starting reports whether a server has said nothing of its tools yet.
func (w *watchedServer) starting() bool { return w.answered.IsZero() && !w.unreadable }

// awaits reports whether the server must list its tools before one may be called that it lists as accepted, or does not.
// One that is in quarantine stays there.
func (w *watchedServer) awaits(fit bool) bool { return w.starting() || fit && w.announced != w.listed }

// endPoll ends the waiting for a poll. The Watcher must be locked.
func (w *watchedServer) endPoll() {
	select {
	case <-w.polled:
	default:
		close(w.polled)
	}
}

// matches tells for every accepted tool, by its name in the registry, whether the
// server's definition is the accepted one. Where several versions were accepted, all of
// them must match.
func (w *watchedServer) matches() map[string]bool {
	fit := map[string]bool{}
	for _, p := range w.pins {
		if !w.config.Allows(p.Name) {
			continue
		}
		name := w.config.ToolName(p.Name)
		same := !w.answered.IsZero() && !w.unreadable && w.statement.state(p) == StateAccepted
		if before, seen := fit[name]; seen {
			same = same && before
		}
		fit[name] = same
	}
	return fit
}

// newTools are the tools that are allowed but not accepted, by their names in the
// registry; where another version of the tool was accepted, as name@version.
func (w *watchedServer) newTools() []string {
	pinned, exact := map[string]bool{}, map[versionKey]bool{}
	for _, p := range w.pins {
		pinned[p.Name], exact[versionKey{p.Name, p.Version}] = true, true
	}
	names := map[string]bool{} // of several versions, where none was accepted, one
	for of := range w.statement {
		name := w.config.ToolName(of.Name)
		switch {
		case exact[of] || !w.config.Allows(of.Name) || !registry.ValidName(name):
		case pinned[of.Name]:
			names[name+"@"+of.Version] = true
		default:
			names[name] = true
		}
	}
	return slices.Collect(maps.Keys(names))
}

// Statuses are the states of the servers, in the order of the configuration.
func (f *Watcher) Statuses() []Status {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]Status, 0, len(f.servers))
	for _, w := range f.servers {
		s := Status{Name: w.config.Name, Type: w.config.Type, Fault: w.fault, Unreadable: w.unreadable, New: len(w.newTools())}
		if !w.answered.IsZero() {
			received := w.answered
			s.Heard = &received
		}
		for name, fit := range w.matches() {
			switch {
			case w.awaits(fit):
				s.Starting = append(s.Starting, name)
			case fit:
				s.Tools++
			default:
				s.Quarantined = append(s.Quarantined, name)
			}
		}
		slices.Sort(s.Starting)
		slices.Sort(s.Quarantined)
		all = append(all, s)
	}
	return all
}

// Quarantined counts the accepted tools that may not be called now.
func (f *Watcher) Quarantined() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.acceptedHeld
}

// Close stops polling, and waits for running polls to end.
func (f *Watcher) Close() {
	f.mu.Lock()
	f.closed = true
	for _, w := range f.servers {
		w.stop()
	}
	f.mu.Unlock()
	f.workers.Wait()
}
