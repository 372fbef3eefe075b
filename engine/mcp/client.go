package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/tool"
)

// Options are the settings of a Client. The zero value reaches no server by URL.
type Options struct {
	// Version is the version of the gateway, which is sent to servers.
	Version string
	// Logger is told of programs that end, or are ended, once they had a session; nil tells nobody.
	Logger *slog.Logger
	// Outbound sends the requests; nil reaches no server.
	Outbound *outbound.Client
	// ToolsChanged is called with the name of a server whose tools may have changed, at
	// most once a second for each server. announced is false where nothing says so, and the server could not have.
	// It must return quickly. It may be nil.
	ToolsChanged func(server string, announced bool)
}

const (
	maxSessions    = 256 // with one more server, the session used longest ago is closed
	idleTimeout    = 30 * time.Minute
	sweepInterval  = time.Minute
	notifyInterval = time.Second
)

// Client runs the tools of servers that speak MCP. It is safe for concurrent use.
type Client struct {
	options Options
	ctx     context.Context
	cancel  context.CancelFunc
	wake    chan struct{}

	mu         sync.Mutex
	closed     bool
	sessions   map[string]*sharedSession
	draining   map[*sharedSession]bool // closed by the last call that uses them
	configured map[string]bool         // keys of the endpoints that RetainOnly was given; nil is all
	changed    map[string]bool         // servers that ToolsChanged has not been called with yet, and whether they announced it
	running    sync.WaitGroup
}

// New returns a Client. Close it to end its sessions and the programs that it started.
func New(options Options) *Client {
	c := &Client{
		options: options, wake: make(chan struct{}, 1), sessions: map[string]*sharedSession{},
		draining: map[*sharedSession]bool{}, changed: map[string]bool{},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.spawn(c.maintain)
	return c
}

// Close ends all sessions and programs, and waits for them. Calls in flight end as if
// their server had gone away.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	all := slices.AppendSeq(slices.Collect(maps.Values(c.sessions)), maps.Keys(c.draining))
	c.mu.Unlock()
	c.cancel()
	for _, l := range all {
		l.close()
	}
	c.running.Wait()
}

// spawn runs a goroutine that Close waits for. It returns false if the client is closed.
func (c *Client) spawn(run func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.running.Go(run)
	return true
}

// maintain reports changed lists of tools, and closes sessions that are idle.
func (c *Client) maintain() {
	sweep := time.NewTicker(sweepInterval)
	defer sweep.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-sweep.C:
			c.sweep(time.Now().Add(-idleTimeout))
		case <-c.wake:
			for server, announced := range c.takeChanged() {
				callSafely(func() { c.options.ToolsChanged(server, announced) })
			}
			select {
			case <-c.ctx.Done():
				return
			case <-time.After(notifyInterval):
			}
		}
	}
}

// toolsChanged records that the list of a server's tools has changed, or may have if it was not announced. It never blocks.
func (c *Client) toolsChanged(server string, announced bool) {
	if c.options.ToolsChanged == nil || server == "" {
		return
	}
	c.mu.Lock()
	c.changed[server] = c.changed[server] || announced
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// takeChanged returns and clears the servers whose lists have changed.
func (c *Client) takeChanged() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer clear(c.changed)
	return maps.Clone(c.changed)
}

// RetainOnly closes the sessions with servers that are not in the list: they were removed
// from the configuration, or have another endpoint now. Calls in flight end first; a
// session that a late call opens is closed within a minute. Sessions with tools that
// belong to no server of the servers file stay.
func (c *Client) RetainOnly(servers []tool.Server) {
	kept := map[string]bool{}
	for _, s := range servers {
		if p, err := endpointOfServer(s); err == nil {
			kept[p.key()] = true
		}
	}
	c.mu.Lock()
	c.configured = kept
	c.mu.Unlock()
	c.closeMatching(c.unconfigured)
}

// unconfigured reports whether a session is with a server that RetainOnly was not given.
// The client must be locked.
func (c *Client) unconfigured(key string, l *sharedSession) bool {
	return c.configured != nil && l.endpoint.server != "" && !c.configured[key]
}

// sweep closes the sessions that were not used since a time, or whose server is not
// configured.
func (c *Client) sweep(since time.Time) {
	c.closeMatching(func(key string, l *sharedSession) bool { return l.usedBefore(since) || c.unconfigured(key, l) })
}

// closeMatching closes sessions, each as soon as no call uses it. It does not block.
func (c *Client) closeMatching(from func(key string, l *sharedSession) bool) {
	var unused []*sharedSession
	c.mu.Lock()
	for key, l := range c.sessions {
		if from(key, l) && c.remove(key) {
			unused = append(unused, l)
		}
	}
	c.mu.Unlock()
	for _, l := range unused {
		l.close()
	}
}

// remove takes a session out of the pool, and reports whether no call uses it: then the
// caller closes it, otherwise the last call does. The client must be locked.
func (c *Client) remove(key string) (unused bool) {
	l := c.sessions[key]
	delete(c.sessions, key)
	if l.calls > 0 {
		c.draining[l] = true
	}
	return l.calls == 0
}

// endpoint is the place of a server, and how to reach it.
type endpoint struct {
	server     string // its name; may be empty
	target     *url.URL
	command    []string
	folder     string            // the working directory of the command
	env        map[string]string // variables of the command, as they are configured
	variables  []string          // the same with the secrets that they refer to
	credential *tool.Credential
	addresses  []string
	startTime  time.Duration // for the first answer of the command
}

// endpointOfServer is the endpoint of a server.
func endpointOfServer(s tool.Server) (endpoint, error) {
	return endpoint{
		server: s.Name, command: s.Command, folder: s.Folder, env: s.Env, credential: s.Credential, addresses: s.Addresses,
		startTime: s.StartTime(),
	}.withURL(s.URL)
}

// endpointOfRun is the endpoint of a tool's server.
func endpointOfRun(r tool.Run) (endpoint, error) {
	s := tool.Server{Command: r.Command, StartTimeout: r.StartTimeout}
	return endpoint{
		startTime: s.StartTime(),
		server:    r.Server, command: r.Command, folder: r.Folder, env: r.Env, credential: r.Credential, addresses: r.Addresses,
	}.withURL(r.URL)
}

// withURL is the endpoint with a URL, or, if that is empty, with its command alone. Its
// errors are for the operator.
func (p endpoint) withURL(address string) (endpoint, error) {
	if len(p.command) > 0 {
		switch {
		case address != "":
			return p, fmt.Errorf("it has both a URL and a command")
		case p.credential != nil:
			return p, fmt.Errorf("it has a credential, which a command is not given")
		}
		return p, nil
	}
	target, err := url.Parse(address)
	if err != nil || target.Host == "" || target.User != nil || target.Fragment != "" ||
		target.Scheme != "http" && target.Scheme != "https" {
		return p, fmt.Errorf("its URL is not an absolute http or https URL without user info")
	}
	p.target = target
	return p, nil
}

// String names the endpoint for the operator.
func (p *endpoint) String() string {
	if p.target == nil {
		return fmt.Sprintf("the command %q", p.command[0])
	}
	return p.target.Scheme + "://" + p.target.Host
}

// key is equal for calls that share a session.
func (p *endpoint) key() string {
	parts := []string{p.server, p.credential.Key(), strings.Join(p.addresses, " "), ""}
	if p.target != nil {
		parts[3] = p.target.String()
	}
	for _, name := range slices.Sorted(maps.Keys(p.env)) {
		parts = append(parts, name+"="+p.env[name])
	}
	return strings.Join(append(append(parts, p.folder), p.command...), "\x00")
}

// acquire returns the shared session of an endpoint, which must be released. It is nil if
// the client is closed. If a secret of the environment has changed since its program was
// started, the program ends with its last call and a new one is started.
func (c *Client) acquire(p endpoint) *sharedSession {
	key := p.key()
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	l, ok := c.sessions[key]
	var evicted *sharedSession
	if ok && !slices.Equal(l.endpoint.variables, p.variables) {
		ok = false
		if c.remove(key) {
			evicted = l
		}
	}
	if !ok {
		if len(c.sessions) >= maxSessions {
			evicted = c.evict()
		}
		l = &sharedSession{client: c, endpoint: p, pauses: newPauses(firstBackoff, maxBackoff)}
		c.sessions[key] = l
	}
	l.calls++
	l.touch()
	c.mu.Unlock()
	if evicted != nil {
		evicted.close()
	}
	return l
}

// release returns a shared session after a call.
func (c *Client) release(l *sharedSession) {
	if l == nil {
		return
	}
	c.mu.Lock()
	l.calls--
	last := l.calls == 0 && c.draining[l]
	if last {
		delete(c.draining, l)
	}
	c.mu.Unlock()
	if last {
		l.close()
	}
}

// evict removes the session that was used longest ago, and returns it if it is to be
// closed.
func (c *Client) evict() *sharedSession {
	oldest := slices.MinFunc(slices.Collect(maps.Keys(c.sessions)), func(a, b string) int {
		return c.sessions[a].lastUse().Compare(c.sessions[b].lastUse())
	})
	l := c.sessions[oldest]
	if !c.remove(oldest) {
		return nil
	}
	return l
}
