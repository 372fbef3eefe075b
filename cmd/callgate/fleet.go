package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/registry"
)

// lookAgain is how often a server is asked what it has.
const lookAgain = 30 * time.Second

// discoverer asks servers what they have.
type discoverer interface {
	Discover(context.Context, engine.Server) ([]engine.Definition, error)
}

// fleet keeps an eye on the servers of the configuration: what they say of their
// tools must be what was accepted of it. A tool of which they say something else
// may not be called, nor one of a server that has not been asked yet, or that says
// what nobody can read.
type fleet struct {
	of     discoverer
	apart  func(names map[string]bool)   // puts tools into quarantine
	keep   func(servers []engine.Server) // ends what was begun with any other
	logger *slog.Logger

	mu      sync.Mutex
	tools   *registry.Registry
	servers []*watched      // in the order of the configuration
	held    int             // tools in quarantine that were accepted
	last    map[string]bool // the quarantine
	between map[string]bool // that of the configuration before, while both may judge
	working sync.WaitGroup
	closed  bool
}

// watched is a server that is asked again and again.
type watched struct {
	server configs.ToolServer
	pins   []configs.Pin
	says   statement
	heard  time.Time // when it said last what it has; zero is never
	fault  string    // why it did not the last time
	// garbled says that the last that it said of its tools cannot be read.
	garbled bool
	told    []string // the tools that the log says are in quarantine
	asked   chan struct{}
	once    sync.Once // closes asked
	wake    chan struct{}
	stop    context.CancelFunc
}

// serverStanding is how a server is, for operators.
type serverStanding struct {
	Name  string     `json:"name"`
	Type  string     `json:"type"`
	Heard *time.Time `json:"heard,omitempty"` // when it last said what it has
	Fault string     `json:"fault,omitempty"`
	// Unreadable says that the last that it said of its tools cannot be read, so that
	// all of them are in quarantine.
	Unreadable bool `json:"unreadable,omitempty"`
	Tools      int  `json:"tools"` // that may be called
	// Quarantined are tools that were accepted and may not be called now, New how
	// many were never accepted.
	// A version beside those that were accepted is one.
	Quarantined []string `json:"quarantined,omitempty"`
	New         int      `json:"new,omitempty"`
}

// newFleet watches nothing until it follows a configuration.
func newFleet(of discoverer, apart func(map[string]bool), keep func([]engine.Server), logger *slog.Logger) *fleet {
	return &fleet{of: of, apart: apart, keep: keep, logger: logger}
}

// follow makes the servers those of a configuration. What is known of a server
// that stays as it was is kept. It is called before the configuration judges, so
// that no tool of a new server is called unseen; what was in quarantine stays there
// until followed says that the configuration of before judges no more.
func (f *fleet) follow(c *configs.Config) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.tools = c.Tools
	var next []*watched
	for _, s := range c.Servers {
		at := slices.IndexFunc(f.servers, func(w *watched) bool { return reflect.DeepEqual(w.server, s) })
		if at >= 0 {
			w := f.servers[at]
			f.servers = slices.Delete(f.servers, at, at+1)
			w.pins = c.Pins[s.Name]
			next = append(next, w)
			continue
		}
		ctx, stop := context.WithCancel(context.Background())
		w := &watched{server: s, pins: c.Pins[s.Name], asked: make(chan struct{}), wake: make(chan struct{}, 1), stop: stop}
		next = append(next, w)
		f.working.Go(func() { f.watch(ctx, w) })
	}
	for _, gone := range f.servers {
		gone.stop()
	}
	f.servers, f.between = next, f.last
	f.judge()
}

// followed ends what follow has begun. Programs and sessions of servers that are gone,
// or that are reached otherwise now, end when the calls that still use them have.
func (f *fleet) followed() {
	f.mu.Lock()
	f.between = nil
	f.judge()
	kept := make([]engine.Server, len(f.servers))
	for i, w := range f.servers {
		kept[i] = serverOf(w.server)
	}
	f.mu.Unlock()
	f.keep(kept)
}

// watch asks a server until ctx ends.
func (f *fleet) watch(ctx context.Context, w *watched) {
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	for {
		found, err := f.of.Discover(ctx, serverOf(w.server))
		if ctx.Err() != nil {
			return
		}
		f.hear(w, found, err)
		w.once.Do(func() { close(w.asked) })
		timer.Reset(lookAgain)
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-timer.C:
		}
	}
}

// changed has a server asked at once.
func (f *fleet) changed(server string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.servers {
		if w.server.Name == server {
			select {
			case w.wake <- struct{}{}:
			default:
			}
		}
	}
}

// first waits until every server was asked once, or ctx ends.
func (f *fleet) first(ctx context.Context) {
	f.mu.Lock()
	servers := slices.Clone(f.servers)
	f.mu.Unlock()
	for _, w := range servers {
		select {
		case <-w.asked:
		case <-ctx.Done():
			return
		}
	}
}

// hear takes in what a server said. One that says nothing leaves things as they
// were: what it cannot be asked, it cannot change. One that says what cannot be read
// has not said what was accepted of it.
func (f *fleet) hear(w *watched, found []engine.Definition, err error) {
	says := statementOf(offersOf(found)) // a long list holds nobody up
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.trouble(w, err)
		return
	}
	if w.fault != "" || w.heard.IsZero() {
		f.logger.Info("a server says what tools it has", "server", w.server.Name, "tools", len(found))
	}
	w.says, w.heard, w.fault, w.garbled = says, time.Now(), "", false
	f.judge()
}

// trouble takes in why a server said nothing, or nothing that can be read. One that
// goes away after that has still said it last.
func (f *fleet) trouble(w *watched, err error) {
	unreadable := garbles(err)
	if fault := err.Error(); w.fault != fault {
		w.fault = fault
		message := "a server does not say what tools it has"
		if unreadable {
			message = "what a server says of its tools cannot be read"
		}
		f.logger.Warn(message, "server", w.server.Name, "cause", fault)
	}
	if unreadable && !w.garbled {
		w.garbled = true
		f.judge()
	}
}

// garbles tells an error of what a server said from that of a server that is away.
func garbles(err error) bool {
	var unreadable *engine.UnreadableError
	return errors.As(err, &unreadable)
}

// judge puts into quarantine what may not be called.
func (f *fleet) judge() {
	apart, held := map[string]bool{}, 0
	for _, w := range f.servers {
		var changed []string
		for name, fit := range w.fit() {
			if !fit {
				apart[name] = true
				held++
				changed = append(changed, name)
			}
		}
		if slices.Sort(changed); (w.garbled || !w.heard.IsZero()) && !slices.Equal(changed, w.told) {
			if w.told = changed; len(changed) > 0 {
				f.logger.Warn("tools in quarantine: their server does not say what was accepted of it", "server", w.server.Name, "tools", changed)
			} else {
				f.logger.Info("no tool in quarantine: the server says what was accepted of it", "server", w.server.Name)
			}
		}
		for _, name := range w.unknown() {
			// A server cannot take a tool away that others have.
			if _, ok := f.tools.Lookup(name); !ok {
				apart[name] = true
			}
		}
	}
	maps.Copy(apart, f.between)
	f.held, f.last = held, apart
	f.apart(apart)
}

// fit tells of every tool that was accepted, by its name in the registry, whether
// the server says of it what it said then. Of several versions all must be so.
func (w *watched) fit() map[string]bool {
	fit := map[string]bool{}
	for _, p := range w.pins {
		if !w.server.Allows(p.Name) {
			continue
		}
		name := w.server.ToolName(p.Name)
		same := !w.heard.IsZero() && !w.garbled && w.says.state(p) == pinSame
		if before, seen := fit[name]; seen {
			same = same && before
		}
		fit[name] = same
	}
	return fit
}

// unknown are the tools that may be accepted and were not, by their names in the
// registry; where another version of a tool was, it is that name, @ and the version.
func (w *watched) unknown() []string {
	pinned, exact := map[string]bool{}, map[versioned]bool{}
	for _, p := range w.pins {
		pinned[p.Name], exact[versioned{p.Name, p.Version}] = true, true
	}
	names := map[string]bool{} // of several versions, where none was accepted, one
	for of := range w.says {
		name := w.server.ToolName(of.name)
		switch {
		case exact[of] || !w.server.Allows(of.name) || !registry.ValidName(name):
		case pinned[of.name]:
			names[name+"@"+of.version] = true
		default:
			names[name] = true
		}
	}
	return slices.Collect(maps.Keys(names))
}

// The states of a tool that was accepted.
const (
	pinSame       = "accepted"
	pinGone       = "gone"
	pinChanged    = "changed"
	pinUnreadable = "unreadable"
)

// statement is what a server says of its tools: of each version the digest, which is
// empty where it cannot be called from here.
type statement map[versioned]string

type versioned struct{ name, version string }

func statementOf(offers []configs.DiscoveredTool) statement {
	says := make(statement, len(offers))
	for _, o := range offers {
		of := versioned{o.Name, o.Version}
		digest, err := o.Digest()
		if _, twice := says[of]; twice || err != nil || o.Unusable != "" {
			digest = ""
		}
		says[of] = digest
	}
	return says
}

// state compares what was accepted with what is said.
func (s statement) state(p configs.Pin) string {
	digest, has := s[versioned{p.Name, p.Version}]
	switch {
	case !has:
		return pinGone
	case digest == "" || digest != p.Digest:
		return pinChanged
	}
	return pinSame
}

// standings are how the servers are.
func (f *fleet) standings() []serverStanding {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]serverStanding, 0, len(f.servers))
	for _, w := range f.servers {
		s := serverStanding{Name: w.server.Name, Type: w.server.Type, Fault: w.fault, Unreadable: w.garbled, New: len(w.unknown())}
		if !w.heard.IsZero() {
			heard := w.heard
			s.Heard = &heard
		}
		for name, fit := range w.fit() {
			if fit {
				s.Tools++
			} else {
				s.Quarantined = append(s.Quarantined, name)
			}
		}
		slices.Sort(s.Quarantined)
		all = append(all, s)
	}
	return all
}

// quarantined counts the tools that were accepted and may not be called now.
func (f *fleet) quarantined() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held
}

// close stops asking.
func (f *fleet) close() {
	f.mu.Lock()
	f.closed = true
	for _, w := range f.servers {
		w.stop()
	}
	f.mu.Unlock()
	f.working.Wait()
}

// serverOf says to the engine where a server is.
func serverOf(s configs.ToolServer) engine.Server {
	return engine.Server{
		Name: s.Name, Type: s.Type, URL: s.URL, Command: s.Command, Folder: s.Dir, Env: s.Env,
		Credential: s.Credential.String(), Addresses: s.Addresses, Timeout: s.Timeout,
	}
}

func offersOf(found []engine.Definition) []configs.DiscoveredTool {
	offers := make([]configs.DiscoveredTool, len(found))
	for i, d := range found {
		offers[i] = configs.DiscoveredTool{
			Name: d.Name, Version: d.Version, Endpoint: d.Endpoint, Description: d.Description,
			InputSchema: d.InputSchema, OutputSchema: d.OutputSchema, Unusable: d.Unusable,
		}
	}
	return offers
}
