//go:build unix

package outbound

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// prober reads from a connection without waiting.
type prober struct {
	system syscall.RawConn
	into   []byte
	n      int
	err    error
	read   func(descriptor uintptr) bool // made once: a closure for each probe would be an allocation
}

func newProber(conn net.Conn) *prober {
	p := &prober{}
	if c, ok := conn.(syscall.Conn); ok {
		p.system, _ = c.SyscallConn()
	}
	p.read = func(descriptor uintptr) bool {
		p.n, p.err = syscall.Read(int(descriptor), p.into)
		return true
	}
	return p
}

// readNow reads what has arrived. It fails with os.ErrDeadlineExceeded, which TLS takes
// for a temporary error, if nothing has arrived and the connection is open.
func (p *prober) readNow(b []byte) (int, error) {
	if p.system == nil {
		return 0, errors.ErrUnsupported
	}
	p.into = b
	err := p.system.Read(p.read)
	p.into = nil
	switch {
	case err != nil:
		return 0, net.ErrClosed
	case errors.Is(p.err, syscall.EAGAIN):
		return 0, os.ErrDeadlineExceeded
	case p.err != nil:
		return 0, p.err
	case p.n <= 0:
		return 0, io.EOF
	}
	return p.n, nil
}
