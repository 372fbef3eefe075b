package mcp

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callgate/callgate/engine/outbound"
	"github.com/callgate/callgate/tool"
)

// Options are what a client needs of its surroundings.
type Options struct {
	// Version is that of the gateway, which servers are told.
	Version string
	// Outbound is what servers are reached with; nil reaches none.
	Outbound *outbound.Client
	// ToolsChanged is told the name of a server that says its tools have changed, at most
	// once a second for each; nil is nobody. It must be quick.
	ToolsChanged func(server string)
}

const (
	maxSessions    = 256 // beyond this many servers, the one used longest ago goes
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
	draining   map[*sharedSession]bool // they end when the last call that uses them has
	configured map[string]bool         // keys of the servers' places, as Keep was told; nil is all
	changed    map[string]bool         // servers that Changed is still to be told
	running    sync.WaitGroup
}

// New returns a client. Close it to end its sessions, and the programs that it has
// started.
func New(options Options) *Client {
	c := &Client{options: options, wake: make(chan struct{}, 1), sessions: map[string]*sharedSession{}, draining: map[*sharedSession]bool{}, changed: map[string]bool{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.spawn(c.maintain)
	return c
}

// Close ends all sessions and programs, and waits for them. Calls in flight end as
// those of a server that went away.
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

// spawn runs what Close waits for, unless the client is closed.
func (c *Client) spawn(run func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.running.Go(run)
	return true
}

// maintain tells of changes, and lets go of servers that nobody uses any longer.
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
			for _, server := range c.takeChanged() {
				c.reportChanged(server)
			}
			select {
			case <-c.ctx.Done():
				return
			case <-time.After(notifyInterval):
			}
		}
	}
}

// toolsChanged notes that a server's tools have changed. It never waits.
func (c *Client) toolsChanged(server string) {
	if c.options.ToolsChanged == nil || server == "" {
		return
	}
	c.mu.Lock()
	c.changed[server] = true
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Client) takeChanged() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for server := range c.changed {
		all = append(all, server)
	}
	clear(c.changed)
	slices.Sort(all)
	return all
}

func (c *Client) reportChanged(server string) {
	// What it does is not ours, and must not end this.
	defer func() { _ = recover() }()
	c.options.ToolsChanged(server)
}

// RetainOnly ends the links to servers which are none of these: one was taken out of the
// configuration, or stands elsewhere now. Calls in flight end first; a link that a late
// one opens anew ends within a minute. Links to what has no name of a server stay.
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

// unconfigured tells, under the lock, of a link to a server that Keep was not told of.
func (c *Client) unconfigured(key string, l *sharedSession) bool {
	return c.configured != nil && l.endpoint.server != "" && !c.configured[key]
}

// sweep ends the links that were not used since, or are to no server any more.
func (c *Client) sweep(since time.Time) {
	c.closeMatching(func(key string, l *sharedSession) bool { return l.usedBefore(since) || c.unconfigured(key, l) })
}

// closeMatching ends links, each as soon as no call uses it. It waits for nothing.
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

// remove takes a link out, under the lock, and tells whether nobody uses it: then it
// is to be closed, and else when the last call has ended.
func (c *Client) remove(key string) (unused bool) {
	l := c.sessions[key]
	delete(c.sessions, key)
	if l.calls > 0 {
		c.draining[l] = true
	}
	return l.calls == 0
}

// endpoint says where a server is, and how it is reached.
type endpoint struct {
	server     string // its name; may be empty
	target     *url.URL
	command    []string
	folder     string            // that the command is started in
	env        map[string]string // that the command is given, as it is configured
	variables  []string          // likewise, with what stood at their places
	credential string
	addresses  []string
}

// endpointOfServer is the place of a server.
func endpointOfServer(s tool.Server) (endpoint, error) {
	return endpoint{
		server: s.Name, command: s.Command, folder: s.Folder, env: s.Env, credential: s.Credential, addresses: s.Addresses,
	}.withURL(s.URL)
}

// endpointOfRun is the place of a tool's server.
func endpointOfRun(r tool.Run) (endpoint, error) {
	return endpoint{
		server: r.Server, command: r.Command, folder: r.Folder, env: r.Env, credential: r.Credential, addresses: r.Addresses,
	}.withURL(r.URL)
}

// withURL is the place at a URL, or without one that of its command. Its errors are for an
// operator.
func (p endpoint) withURL(address string) (endpoint, error) {
	if len(p.command) > 0 {
		switch {
		case address != "":
			return p, fmt.Errorf("it has both a URL and a command")
		case p.credential != "":
			return p, fmt.Errorf("it has a credential, which a command is not given")
		}
		return p, nil
	}
	target, err := url.Parse(address)
	if err != nil || target.Host == "" || target.User != nil || target.Fragment != "" || target.Scheme != "http" && target.Scheme != "https" {
		return p, fmt.Errorf("its URL is not an absolute http or https URL without user info")
	}
	p.target = target
	return p, nil
}

// String names the place for an operator.
func (p *endpoint) String() string {
	if p.target == nil {
		return fmt.Sprintf("the command %q", p.command[0])
	}
	return p.target.Scheme + "://" + p.target.Host
}

// key is what calls have in common that share a session.
func (p *endpoint) key() string {
	parts := []string{p.server, p.credential, strings.Join(p.addresses, " "), ""}
	if p.target != nil {
		parts[3] = p.target.String()
	}
	for _, name := range slices.Sorted(maps.Keys(p.env)) {
		parts = append(parts, name+"="+p.env[name])
	}
	return strings.Join(append(append(parts, p.folder), p.command...), "\x00")
}

// acquire returns the link to a place, which must be released. It is nil once the client
// is closed. Where another value stands at the place of a variable than the link's
// program was given, the program ends with its last call, and there is a new link.
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

// release gives a link back.
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

// evict forgets the link used longest ago, and returns it where it is to be closed.
func (c *Client) evict() *sharedSession {
	var oldest *sharedSession
	var at string
	for key, l := range c.sessions {
		if oldest == nil || l.usedBefore(oldest.lastUse()) {
			oldest, at = l, key
		}
	}
	if !c.remove(at) {
		return nil
	}
	return oldest
}
