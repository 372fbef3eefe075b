package mcp

import "time"

// Age makes all sessions look as if they had been quiet, and the links unused.
func (c *Client) Age(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.links {
		l.used.Add(-int64(by))
		l.mu.Lock()
		if l.current != nil {
			l.current.used.Add(-int64(by))
		}
		l.mu.Unlock()
	}
}

// Sweep closes what was not used for long.
func (c *Client) Sweep() { c.sweep(time.Now().Add(-idleTime)) }

// Links counts them.
func (c *Client) Links() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.links)
}

// IDOf is the id that a glance finds.
func IDOf(parts ...[]byte) (int64, bool) {
	var g glance
	for _, p := range parts {
		g.see(p)
	}
	return g.id()
}

// MaxTools bounds a list.
const MaxTools = maxTools
