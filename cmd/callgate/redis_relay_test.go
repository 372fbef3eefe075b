package main

import (
	"net"
	"sync"
	"testing"
	"time"
)

// relay stands before a redis-server and does harm. While deaf, what it says
// vanishes; while mute, so does what is said to it: the connections stay, as on a
// network that is cut. slowTo and slowFrom hold back each piece; what was held back
// arrives, even if who sent it has hung up since. cutNext cuts the connection
// instead of the next piece that the server says, and lie says something else
// instead.
type relay struct {
	l  net.Listener
	to string

	mu               sync.Mutex
	mute, deaf       bool
	slowTo, slowFrom time.Duration
	cutNext          bool
	lie              func([]byte) []byte
	open             map[*net.TCPConn]bool
}

func newRelay(t testing.TB, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{l: l, to: to, open: map[*net.TCPConn]bool{}}
	go r.serve()
	t.Cleanup(func() { l.Close(); r.cut() })
	return r
}

func (r *relay) address() string { return r.l.Addr().String() }

func (r *relay) port() int { return r.l.Addr().(*net.TCPAddr).Port }

func (r *relay) serve() {
	for {
		c, err := r.l.Accept()
		if err != nil {
			return
		}
		go func() {
			client := c.(*net.TCPConn)
			s, err := net.Dial("tcp", r.to)
			// A system may connect a port that nobody listens at with itself.
			if err == nil && s.LocalAddr().String() == s.RemoteAddr().String() {
				s.Close()
				err = net.ErrClosed
			}
			if err != nil {
				client.Close()
				return
			}
			server := s.(*net.TCPConn)
			r.mu.Lock()
			r.open[client], r.open[server] = true, true
			r.mu.Unlock()
			var both sync.WaitGroup
			both.Go(func() {
				r.pass(server, client, func(piece []byte) ([]byte, time.Duration) {
					if r.mute {
						return nil, 0
					}
					return piece, r.slowTo
				})
			})
			both.Go(func() {
				r.pass(client, server, func(piece []byte) ([]byte, time.Duration) {
					switch {
					case r.deaf:
						return nil, 0
					case r.cutNext:
						r.cutNext = false
						server.Close()
						return nil, 0
					case r.lie != nil:
						return r.lie(piece), r.slowFrom
					}
					return piece, r.slowFrom
				})
			})
			both.Wait()
			r.mu.Lock()
			delete(r.open, client)
			delete(r.open, server)
			r.mu.Unlock()
			client.Close()
			server.Close()
		}()
	}
}

// pass passes on what one says, until it has no more to say, or the other does not
// listen.
func (r *relay) pass(to, from *net.TCPConn, harm func(piece []byte) (left []byte, slow time.Duration)) {
	defer to.CloseWrite()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		r.mu.Lock()
		left, slow := harm(buffer[:n])
		r.mu.Unlock()
		if len(left) == 0 {
			continue
		}
		time.Sleep(slow)
		if _, err := to.Write(left); err != nil {
			from.CloseRead()
			return
		}
	}
}

// harm does some; heal undoes it, and cuts what it was done to: a connection that
// lost a piece is of no use.
func (r *relay) harm(do func(*relay)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do(r)
}

func (r *relay) heal() {
	r.mu.Lock()
	lossy := r.mute || r.deaf || r.lie != nil
	r.mute, r.deaf, r.slowTo, r.slowFrom, r.cutNext, r.lie = false, false, 0, 0, false, nil
	r.mu.Unlock()
	if lossy {
		r.cut()
	}
}

// cut closes all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		c.SetLinger(0)
		c.Close()
	}
	clear(r.open)
}
