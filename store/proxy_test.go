package store_test

import (
	"net"
	"sync"
	"testing"
	"time"
)

// proxy stands between a gateway and Redis and does harm. While dropUp or
// dropDown is set, bytes towards Redis or from it vanish and the connection
// stays: a half-open network. delay holds back each piece from Redis, and
// rewrite changes it; cutNext cuts the connection instead of the next piece. What is
// said to Redis while there is a late arrives when that is closed, whether who sent it
// has hung up or not.
type proxy struct {
	to string
	l  net.Listener

	mu               sync.Mutex
	dropUp, dropDown bool
	cutNext          bool
	delay            time.Duration
	rewrite          func([]byte) []byte
	late             chan struct{}
	conns            map[net.Conn]bool
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{to: to, l: l, conns: map[net.Conn]bool{}}
	go p.serve()
	t.Cleanup(func() { _ = l.Close(); p.cut() })
	return p
}

func (p *proxy) address() string { return p.l.Addr().String() }

func (p *proxy) serve() {
	for {
		down, err := p.l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		to := p.to
		p.mu.Unlock()
		up, err := net.Dial("tcp", to)
		if err != nil {
			_ = down.Close()
			continue
		}
		p.set(func() { p.conns[down], p.conns[up] = true, true })
		go p.pump(up, down, func() bool { return p.dropUp }, false)
		go p.pump(down, up, func() bool { return p.dropDown }, true)
	}
}

func (p *proxy) pump(to, from net.Conn, drop func() bool, fromRedis bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		dropped, delay, rewrite, late, cut := drop(), p.delay, p.rewrite, p.late, p.cutNext && fromRedis
		p.cutNext = p.cutNext && !cut
		p.mu.Unlock()
		if cut {
			return
		}
		if dropped {
			continue
		}
		piece := buf[:n]
		if late != nil && !fromRedis {
			<-late
		}
		if fromRedis {
			time.Sleep(delay)
			if rewrite != nil {
				piece = rewrite(piece)
			}
		}
		if _, err := to.Write(piece); err != nil {
			return
		}
	}
}

func (p *proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// heal undoes all harm. Connections that lost bytes are cut, as a network does.
func (p *proxy) heal() {
	p.set(func() { p.dropUp, p.dropDown, p.delay, p.rewrite = false, false, 0, nil })
	p.cut()
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}
