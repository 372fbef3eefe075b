// Package lossy is a proxy between a client and a server of a test that damages their
// traffic.
package lossy

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Faults are the faults injected into each piece of traffic. The zero value injects none.
type Faults struct {
	// The connections stay open, as on a partitioned network.
	DropRequests, DropReplies bool
	// DelayRequests and DelayReplies hold back each piece. A delayed piece arrives even if
	// its sender has disconnected since.
	DelayRequests, DelayReplies time.Duration
	// HoldRequests, if it is not nil, delays requests to the server in the same way until
	// it is closed.
	HoldRequests <-chan struct{}
	// CutNextReply cuts the connection instead of passing on the next piece of a reply.
	CutNextReply bool
	// RewriteReply returns the reply to send instead.
	RewriteReply func([]byte) []byte
}

// Proxy is one that listens on loopback. Its methods may be called at any time.
type Proxy struct {
	l net.Listener

	mu   sync.Mutex
	to   string
	harm Faults
	open map[*net.TCPConn]bool
}

// New is a proxy to an address, which does no harm yet. It ends with the test.
func New(t testing.TB, to string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{l: l, to: to, open: map[*net.TCPConn]bool{}}
	go p.serve()
	t.Cleanup(func() {
		_ = l.Close()
		p.Cut()
	})
	return p
}

// Address is where the proxy listens.
func (p *Proxy) Address() string { return p.l.Addr().String() }

// Port is that of the address.
func (p *Proxy) Port() int { return p.l.Addr().(*net.TCPAddr).Port }

// Set changes the harm that is done from now on.
func (p *Proxy) Set(change func(*Faults)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.harm)
}

// Retarget leads new connections to another address.
func (p *Proxy) Retarget(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = to
}

// Clear removes all faults and closes the affected connections: a connection that lost a
// piece cannot be used.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.harm.DropRequests || p.harm.DropReplies || p.harm.RewriteReply != nil {
		p.cut()
	}
	p.harm = Faults{}
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

func (p *Proxy) cut() {
	for c := range p.open {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
	clear(p.open)
}

func (p *Proxy) serve() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		go p.join(c.(*net.TCPConn))
	}
}

// join forwards in both directions until both sides have ended.
func (p *Proxy) join(client *net.TCPConn) {
	defer func() { _ = client.Close() }()
	p.mu.Lock()
	to := p.to
	p.mu.Unlock()
	s, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	server := s.(*net.TCPConn)
	defer func() { _ = server.Close() }()
	// A system may connect a port without a listener to itself.
	if server.LocalAddr().String() == server.RemoteAddr().String() {
		return
	}
	p.mu.Lock()
	p.open[client], p.open[server] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.pass(server, client, p.toServer) })
	both.Go(func() { p.pass(client, server, p.fromServer) })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, client)
	delete(p.open, server)
}

// passage is the fate of a piece.
type passage struct {
	piece []byte // empty: it vanishes
	slow  time.Duration
	late  <-chan struct{}
	cut   bool
}

func (p *Proxy) toServer(piece []byte) passage {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.harm.DropRequests {
		return passage{}
	}
	return passage{piece: piece, slow: p.harm.DelayRequests, late: p.harm.HoldRequests}
}

func (p *Proxy) fromServer(piece []byte) passage {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.harm.CutNextReply:
		p.harm.CutNextReply = false
		return passage{cut: true}
	case p.harm.DropReplies:
		return passage{}
	case p.harm.RewriteReply != nil:
		piece = p.harm.RewriteReply(piece)
	}
	return passage{piece: piece, slow: p.harm.DelayReplies}
}

// pass forwards from one side to the other until the one ends or the other no longer reads.
func (p *Proxy) pass(to, from *net.TCPConn, of func([]byte) passage) {
	defer func() { _ = to.CloseWrite() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		next := of(buffer[:n])
		if next.cut {
			_ = from.Close()
			return
		}
		if len(next.piece) == 0 {
			continue
		}
		if next.late != nil {
			<-next.late
		}
		time.Sleep(next.slow)
		if _, err := to.Write(next.piece); err != nil {
			_ = from.CloseRead()
			return
		}
	}
}
