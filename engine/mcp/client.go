package mcp

import (
	"context"
	"fmt"
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
	// Changed is told the name of a server that says its tools have changed, at most
	// once a second for each; nil is nobody. It must be quick.
	Changed func(server string)
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
	changed map[string]bool // servers that Changed is still to be told
	running sync.WaitGroup
}

// New returns a client. Close it to end its sessions, and the programs that it has
// started.
func New(options Options) *Client {
	c := &Client{options: options, bell: make(chan struct{}, 1), links: map[string]*link{}, changed: map[string]bool{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.spawn(c.tend)
	return c
}

// Close ends all sessions and programs, and waits for them. Calls in flight end as
// those of a server that went away.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	all := make([]*link, 0, len(c.links))
	for _, l := range c.links {
		all = append(all, l)
	}
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
	if c.options.Changed == nil || server == "" {
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
	c.options.Changed(server)
}

// sweep closes the links that were not used since.
func (c *Client) sweep(since time.Time) {
	c.mu.Lock()
	var idle []*link
	for key, l := range c.links {
		if l.usedBefore(since) {
			idle = append(idle, l)
			delete(c.links, key)
		}
	}
	c.mu.Unlock()
	for _, l := range idle {
		l.close()
	}
}

// place says where a server is, and how it is reached.
type place struct {
	server     string // its name; may be empty
	target     *url.URL
	command    []string
	credential string
	addresses  []string
}

// placeOf reads a place. Its errors are for an operator.
func placeOf(server, address string, command []string, credential string, addresses []string) (place, error) {
	p := place{server: server, command: command, credential: credential, addresses: addresses}
	if len(command) > 0 {
		switch {
		case address != "":
			return p, fmt.Errorf("it has both a URL and a command")
		case credential != "":
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

// at names the place for an operator.
func (p *place) at() string {
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
	return strings.Join(append(parts, p.command...), "\x00")
}

// link returns the link to a place. It is nil once the client is closed.
func (c *Client) link(p place) *link {
	key := p.key()
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	l, ok := c.links[key]
	var evicted *link
	if !ok {
		if len(c.links) >= maxLinks {
			evicted = c.evict()
		}
		l = &link{client: c, place: p}
		c.links[key] = l
	}
	l.use()
	c.mu.Unlock()
	if evicted != nil {
		evicted.close()
	}
	return l
}

// evict forgets the link used longest ago.
func (c *Client) evict() *link {
	var oldest *link
	var at string
	for key, l := range c.links {
		if oldest == nil || l.usedBefore(oldest.lastUse()) {
			oldest, at = l, key
		}
	}
	delete(c.links, at)
	return oldest
}
