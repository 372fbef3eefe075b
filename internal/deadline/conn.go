package deadline

import (
	"errors"
	"net"
	"sync"
	"time"
)

// Conn is a connection whose deadlines cost little to move. Servers move them with each request,
// nearly always to a later time, and nearly never reach one, while each move of a deadline of
// package net changes a timer of the runtime, and may wake a thread for that. The deadlines of many
// Conns share one timer, and the connection gets one only once it is reached.
type Conn struct {
	net.Conn
	alarms      *Alarms
	read, write limit
}

// NewConn returns a connection with deadlines of its own. Nothing else may set those of conn, and
// conn must go on after it has reached one, as TCP does, and TLS does not after a write.
func NewConn(conn net.Conn, alarms *Alarms) *Conn {
	c := &Conn{Conn: conn, alarms: alarms}
	c.read.alarm.Call = func() { c.read.ring(alarms, conn.SetReadDeadline) }
	c.write.alarm.Call = func() { c.write.ring(alarms, conn.SetWriteDeadline) }
	alarms.Add(&c.read.alarm)
	alarms.Add(&c.write.alarm)
	return c
}

// limit is a deadline in one direction.
type limit struct {
	alarm Alarm

	mu      sync.Mutex
	at      time.Duration // by the alarms; 0: there is none to come
	reached bool          // the connection has one, which has passed
}

// passed is a deadline that has passed.
var passed = time.Unix(1, 0)

// move moves a deadline. set sets that of the connection.
func (l *limit) move(alarms *Alarms, to time.Time, set func(time.Time) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at = 0; !to.IsZero() {
		at := alarms.At(to)
		if at <= alarms.Now() {
			l.reached = true
			return set(passed)
		}
		l.at = at
		alarms.Set(&l.alarm, at)
	}
	if l.reached {
		l.reached = false
		return set(time.Time{})
	}
	return nil
}

// ring ends the reads, or the writes, of a connection whose deadline has come and was not moved.
func (l *limit) ring(alarms *Alarms, set func(time.Time) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at != 0 && l.at <= alarms.Now() {
		l.reached = true
		_ = set(passed) // a connection that is closed has none
	}
}

// SetReadDeadline is like that of net.Conn.
func (c *Conn) SetReadDeadline(at time.Time) error {
	return c.read.move(c.alarms, at, c.Conn.SetReadDeadline)
}

// SetWriteDeadline is like that of net.Conn.
func (c *Conn) SetWriteDeadline(at time.Time) error {
	return c.write.move(c.alarms, at, c.Conn.SetWriteDeadline)
}

// SetDeadline is like that of net.Conn.
func (c *Conn) SetDeadline(at time.Time) error {
	return errors.Join(c.SetReadDeadline(at), c.SetWriteDeadline(at))
}

// Close is like that of net.Conn.
func (c *Conn) Close() error {
	c.alarms.Remove(&c.read.alarm)
	c.alarms.Remove(&c.write.alarm)
	return c.Conn.Close()
}
