package mcp

import (
	"time"

	"github.com/callgate/callgate/tool"
)

// Age makes all sessions look as if they had been quiet and unused.
func (c *Client) Age(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.sessions {
		l.used.Add(-int64(by))
		l.mu.Lock()
		if l.current != nil {
			l.current.used.Add(-int64(by))
		}
		l.mu.Unlock()
	}
}

// Sweep closes what was not used for long.
func (c *Client) Sweep() { c.sweep(time.Now().Add(-idleTimeout)) }

// Links counts them.
func (c *Client) Links() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions)
}

// IDOf is the id that an idScanner finds.
func IDOf(parts ...[]byte) (int64, bool) {
	var g idScanner
	for _, p := range parts {
		g.scan(p)
	}
	return g.id()
}

// MaxTools bounds a list.
const MaxTools = maxTools

// Report makes one report within an attempt, and one as it comes to an attempt that has
// ended meanwhile.
func Report(tell func(tool.Progress)) {
	l := newListener(tool.Call{Progress: tell})
	token, _ := l.begin()
	l.onProgress(progressReport{tool.Progress{Done: 1}, token})
	l.end()
	l.onProgress(progressReport{tool.Progress{Done: 2}, token})
}

// Log makes one log within an attempt, and one as it comes to an attempt that has ended
// meanwhile.
func Log(tell func(tool.Log)) {
	l := newListener(tool.Call{Log: tell, LogLevel: "debug"})
	l.begin()
	l.onLog(tool.Log{Level: "info", Data: []byte("1")})
	l.end()
	l.onLog(tool.Log{Level: "info", Data: []byte("2")})
}
