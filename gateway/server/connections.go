package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/gin-gonic/gin"
)

// ConnectionLimit bounds how many connections of an HTTP server may be open without a
// request that is being answered. Any client can open a connection, and none of the other
// bounds counts one before its head has been read: without this bound an unknown client
// could take all the memory and file descriptors that connections need. Beyond it the
// connection that has waited longest is closed; clients open another. It is safe for
// concurrent use.
type ConnectionLimit struct {
	most int

	mu      sync.Mutex
	open    map[net.Conn]*connection
	waiting connection // the ring of those that wait begins and ends here; the longest first
	count   int        // of those that wait
}

// connection is an open connection. It is in the ring while it waits.
type connection struct {
	net.Conn
	next, previous *connection // nil while it does not wait

	strangers atomic.Int32 // requests without an identified caller, since the last with one
}

// mostOfStrangers is how many requests in a row one connection may send without saying who asks: a
// client could else send them in a pipeline, as fast as they are refused. The last one's answer
// closes the connection.
const mostOfStrangers = 100

// isTooStrange reports whether the request that is about to be answered is the last one for
// which the connection is kept. It is false for no connection.
func (c *connection) isTooStrange() bool { return c != nil && c.strangers.Load() >= mostOfStrangers-1 }

// count counts a request that was answered.
func (c *connection) count(identified bool) {
	switch {
	case c == nil:
	case identified:
		c.strangers.Store(0)
	default:
		c.strangers.Add(1)
	}
}

// connectionOf returns the connection of a request; nil where the server does not know it.
func connectionOf(r *http.Request) *connection {
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	return c
}

// The connections that a listener lets wait: mostWaiting, and no more than a quarter of
// the descriptors that the process may have, since there may be two listeners, and stores,
// logs and tools need the rest.
const (
	mostWaiting  = 2048
	leastWaiting = 16
)

// MaxWaitingConnections is how many connections one listener of this process lets wait.
func MaxWaitingConnections() int {
	limit, ok := descriptorLimit()
	if !ok {
		return mostWaiting
	}
	return waitingFor(limit)
}

// waitingFor is how many connections may wait under a limit of descriptors.
func waitingFor(descriptors uint64) int {
	return int(max(leastWaiting, min(mostWaiting, descriptors/4)))
}

// connectionKey is under what the context of a request holds its connection.
type connectionKey struct{}

// LimitConnections bounds the connections of a server that is not serving yet.
func LimitConnections(s *http.Server, most int) *ConnectionLimit {
	l := &ConnectionLimit{most: most, open: map[net.Conn]*connection{}}
	l.waiting.next, l.waiting.previous = &l.waiting, &l.waiting
	s.ConnState = l.changed
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		opened := &connection{Conn: c}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open[c] = opened
		return context.WithValue(ctx, connectionKey{}, opened)
	}
	next := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := connectionOf(r); c != nil {
			l.mu.Lock()
			l.leave(c) // the head of a request was read
			l.mu.Unlock()
		}
		next.ServeHTTP(w, r)
	})
	return l
}

// Gatherer is a connection that sends at once what was written between Hold and Release.
type Gatherer interface {
	Hold()
	Release()
}

// GathererOf is the connection of a request; nil where it cannot gather.
func GathererOf(c *gin.Context) Gatherer {
	if open := connectionOf(c.Request); open != nil {
		if g, ok := open.Conn.(Gatherer); ok {
			return g
		}
	}
	return nil
}

// changed follows the state of a connection. One whose request head is arriving still
// waits: a client that sends it slowly can be closed, as an idle one can.
func (l *ConnectionLimit) changed(c net.Conn, state http.ConnState) {
	if state == http.StateActive {
		return
	}
	var longest *connection
	l.mu.Lock()
	at := l.open[c]
	switch state {
	case http.StateNew, http.StateIdle:
		l.enter(at)
		if l.count > l.most {
			longest = l.waiting.next
			l.leave(longest)
		}
	case http.StateClosed, http.StateHijacked:
		l.leave(at)
		delete(l.open, c)
	}
	l.mu.Unlock()
	if longest != nil {
		_ = longest.Close()
	}
}

// enter adds a connection to those that wait, under the lock.
func (l *ConnectionLimit) enter(c *connection) {
	if c == nil || c.next != nil {
		return
	}
	last := l.waiting.previous
	c.previous, c.next = last, &l.waiting
	last.next, l.waiting.previous = c, c
	l.count++
}

// leave takes a connection out of those that wait, under the lock.
func (l *ConnectionLimit) leave(c *connection) {
	if c == nil || c.next == nil {
		return
	}
	c.previous.next, c.next.previous = c.next, c.previous
	c.previous, c.next = nil, nil
	l.count--
}
