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

	"github.com/callgate/callgate/engine"
)

// Options are what a client needs of its surroundings.
type Options struct {
	// Version is that of the gateway, which servers are told.
	Version string
	// Outbound is what servers are reached with; nil reaches none.
	Outbound *engine.Outbound
	// ToolsChanged is told the name of a server that says its tools have changed, at most
	// once a second for each; nil is nobody. It must be quick.
	ToolsChanged func(server string)
}

const (
	maxLinks  = 256 // beyond this many servers, the one used longest ago goes
	idleTime  = 30 * time.Minute
	sweepTime = time.Minute
	bellTime  = time.Second
)

// Client runs the tools of servers that speak MCP. It is safe for concurrent use.
type Client struct {
	options Options
	ctx     context.Context
	cancel  context.CancelFunc
	bell    chan struct{}

	mu      sync.Mutex
	closed  bool
	links   map[string]*link
	leaving map[*link]bool  // they end when the last call that uses them has
	kept    map[string]bool // keys of the servers' places, as Keep was told; nil is all
	changed map[string]bool // servers that Changed is still to be told
	running sync.WaitGroup
}

// New returns a client. Close it to end its sessions, and the programs that it has
// started.
func New(options Options) *Client {
	c := &Client{options: options, bell: make(chan struct{}, 1), links: map[string]*link{}, leaving: map[*link]bool{}, changed: map[string]bool{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.spawn(c.tend)
	return c
}

// Close ends all sessions and programs, and waits for them. Calls in flight end as
// those of a server that went away.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	all := slices.AppendSeq(slices.Collect(maps.Values(c.links)), maps.Keys(c.leaving))
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

// tend tells of changes, and lets go of servers that nobody uses any longer.
func (c *Client) tend() {
	sweep := time.NewTicker(sweepTime)
	defer sweep.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-sweep.C:
			c.sweep(time.Now().Add(-idleTime))
		case <-c.bell:
			for _, server := range c.rung() {
				c.tell(server)
			}
			select {
			case <-c.ctx.Done():
				return
			case <-time.After(bellTime):
			}
		}
	}
}

// ring notes that a server's tools have changed. It never waits.
func (c *Client) ring(server string) {
	if c.options.ToolsChanged == nil || server == "" {
		return
	}
	c.mu.Lock()
	c.changed[server] = true
	c.mu.Unlock()
	select {
	case c.bell <- struct{}{}:
	default:
	}
}

func (c *Client) rung() []string {
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

func (c *Client) tell(server string) {
	// What it does is not ours, and must not end this.
	defer func() { _ = recover() }()
	c.options.ToolsChanged(server)
}

// RetainOnly ends the links to servers which are none of these: one was taken out of the
// configuration, or stands elsewhere now. Calls in flight end first; a link that a late
// one opens anew ends within a minute. Links to what has no name of a server stay.
func (c *Client) RetainOnly(servers []engine.Server) {
	kept := map[string]bool{}
	for _, s := range servers {
		if p, err := placeOfServer(s); err == nil {
			kept[p.key()] = true
		}
	}
	c.mu.Lock()
	c.kept = kept
	c.mu.Unlock()
	c.part(c.dropped)
}

// dropped tells, under the lock, of a link to a server that Keep was not told of.
func (c *Client) dropped(key string, l *link) bool {
	return c.kept != nil && l.place.server != "" && !c.kept[key]
}

// sweep ends the links that were not used since, or are to no server any more.
func (c *Client) sweep(since time.Time) {
	c.part(func(key string, l *link) bool { return l.usedBefore(since) || c.dropped(key, l) })
}

// part ends links, each as soon as no call uses it. It waits for nothing.
func (c *Client) part(from func(key string, l *link) bool) {
	var unused []*link
	c.mu.Lock()
	for key, l := range c.links {
		if from(key, l) && c.forget(key) {
			unused = append(unused, l)
		}
	}
	c.mu.Unlock()
	for _, l := range unused {
		l.close()
	}
}

// forget takes a link out, under the lock, and tells whether nobody uses it: then it
// is to be closed, and else when the last call has ended.
func (c *Client) forget(key string) (unused bool) {
	l := c.links[key]
	delete(c.links, key)
	if l.users > 0 {
		c.leaving[l] = true
	}
	return l.users == 0
}

// place says where a server is, and how it is reached.
type place struct {
	server     string // its name; may be empty
	target     *url.URL
	command    []string
	folder     string            // that the command is started in
	env        map[string]string // that the command is given, as it is configured
	variables  []string          // likewise, with what stood at their places
	credential string
	addresses  []string
}

// placeOfServer is the place of a server.
func placeOfServer(s engine.Server) (place, error) {
	return place{
		server: s.Name, command: s.Command, folder: s.Folder, env: s.Env, credential: s.Credential, addresses: s.Addresses,
	}.at(s.URL)
}

// placeOfRun is the place of a tool's server.
func placeOfRun(r engine.Run) (place, error) {
	return place{
		server: r.Server, command: r.Command, folder: r.Folder, env: r.Env, credential: r.Credential, addresses: r.Addresses,
	}.at(r.URL)
}

// at is the place at a URL, or without one that of its command. Its errors are for an
// operator.
func (p place) at(address string) (place, error) {
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
func (p *place) String() string {
	if p.target == nil {
		return fmt.Sprintf("the command %q", p.command[0])
	}
	return p.target.Scheme + "://" + p.target.Host
}

// key is what calls have in common that share a session.
func (p *place) key() string {
	parts := []string{p.server, p.credential, strings.Join(p.addresses, " "), ""}
	if p.target != nil {
		parts[3] = p.target.String()
	}
	for _, name := range slices.Sorted(maps.Keys(p.env)) {
		parts = append(parts, name+"="+p.env[name])
	}
	return strings.Join(append(append(parts, p.folder), p.command...), "\x00")
}

// link returns the link to a place, which must be released. It is nil once the client
// is closed. Where another value stands at the place of a variable than the link's
// program was given, the program ends with its last call, and there is a new link.
func (c *Client) link(p place) *link {
	key := p.key()
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	l, ok := c.links[key]
	var evicted *link
	if ok && !slices.Equal(l.place.variables, p.variables) {
		ok = false
		if c.forget(key) {
			evicted = l
		}
	}
	if !ok {
		if len(c.links) >= maxLinks {
			evicted = c.evict()
		}
		l = &link{client: c, place: p}
		c.links[key] = l
	}
	l.users++
	l.use()
	c.mu.Unlock()
	if evicted != nil {
		evicted.close()
	}
	return l
}

// release gives a link back.
func (c *Client) release(l *link) {
	if l == nil {
		return
	}
	c.mu.Lock()
	l.users--
	last := l.users == 0 && c.leaving[l]
	if last {
		delete(c.leaving, l)
	}
	c.mu.Unlock()
	if last {
		l.close()
	}
}

// evict forgets the link used longest ago, and returns it where it is to be closed.
func (c *Client) evict() *link {
	var oldest *link
	var at string
	for key, l := range c.links {
		if oldest == nil || l.usedBefore(oldest.lastUse()) {
			oldest, at = l, key
		}
	}
	if !c.forget(at) {
		return nil
	}
	return oldest
}
