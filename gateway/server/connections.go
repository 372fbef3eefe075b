package server

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
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
	waiting list.List // of net.Conn, the one that waits longest first
	open    map[net.Conn]*list.Element
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
	l := &ConnectionLimit{most: most, open: map[net.Conn]*list.Element{}}
	s.ConnState = l.changed
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	next := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connectionKey{}).(net.Conn); ok {
			l.answering(c)
		}
		next.ServeHTTP(w, r)
	})
	return l
}

// changed follows the state of a connection. One whose request head is arriving still
// waits: a client that sends it slowly can be closed, as an idle one can.
func (l *ConnectionLimit) changed(c net.Conn, state http.ConnState) {
	var longest net.Conn
	l.mu.Lock()
	switch state {
	case http.StateNew, http.StateIdle:
		if l.open[c] == nil {
			l.open[c] = l.waiting.PushBack(c)
		}
		if l.waiting.Len() > l.most {
			longest = l.forget(l.waiting.Front().Value.(net.Conn))
		}
	case http.StateClosed, http.StateHijacked:
		l.forget(c)
	}
	l.mu.Unlock()
	if longest != nil {
		_ = longest.Close()
	}
}

// answering is called when the head of a request was read.
func (l *ConnectionLimit) answering(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(c)
}

// forget takes a connection out of those that wait, under the lock.
func (l *ConnectionLimit) forget(c net.Conn) net.Conn {
	if at := l.open[c]; at != nil {
		l.waiting.Remove(at)
		delete(l.open, c)
	}
	return c
}

// Waiting is how many connections are open without a request that is being answered.
func (l *ConnectionLimit) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting.Len()
}
