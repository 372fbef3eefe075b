package deadline

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// Conn is a connection whose deadlines cost little to move. Servers move them with each request,
// nearly always to a later time, and nearly never reach one, while each move of a deadline of
// package net changes a timer of the runtime, and may wake a thread for that. A Conn sets the
// deadline of the connection only to a time before the one that is set. Where that ends a read
// or a write too early, it sets the later one, and continues.
type Conn struct {
	net.Conn
	read, write limit
}

// NewConn returns a connection with deadlines of its own. Nothing else may set those of conn, and
// conn must go on after it has reached one, as TCP does, and TLS does not after a write.
func NewConn(conn net.Conn) *Conn { return &Conn{Conn: conn} }

// limit is a deadline in one direction; a zero time is none.
type limit struct {
	mu     sync.Mutex
	wanted time.Time
	set    time.Time // on the connection, never after wanted
}

// move moves a deadline. set sets that of the connection.
func (l *limit) move(to time.Time, set func(time.Time) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted = to
	// After a time long ago, by which net/http ends a read that waits, the next read would fail
	// once before it continues.
	if to.IsZero() || !l.set.IsZero() && !to.Before(l.set) && l.set.Unix() > 1 {
		return nil
	}
	l.set = to
	return set(to)
}

// early reports whether an error is that of a deadline that has moved since, and sets the
// deadline where it has moved to.
func (l *limit) early(err error, set func(time.Time) error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.wanted.IsZero() && !time.Now().Before(l.wanted) {
		return false
	}
	l.set = l.wanted
	return set(l.wanted) == nil
}

// Read is like that of net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err == nil || n > 0 || !c.read.early(err, c.Conn.SetReadDeadline) {
			return n, err
		}
	}
}

// Write is like that of net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	written := 0
	for {
		n, err := c.Conn.Write(b[written:])
		written += n
		if err == nil || !c.write.early(err, c.Conn.SetWriteDeadline) {
			return written, err
		}
	}
}

// SetReadDeadline is like that of net.Conn.
func (c *Conn) SetReadDeadline(at time.Time) error {
	return c.read.move(at, c.Conn.SetReadDeadline)
}

// SetWriteDeadline is like that of net.Conn.
func (c *Conn) SetWriteDeadline(at time.Time) error {
	return c.write.move(at, c.Conn.SetWriteDeadline)
}

// SetDeadline is like that of net.Conn.
func (c *Conn) SetDeadline(at time.Time) error {
	return errors.Join(c.SetReadDeadline(at), c.SetWriteDeadline(at))
}
