package redisconn

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const (
	// maxDirect is the length of a value that is passed on as it comes.
	maxDirect   = 1 << 20
	maxBytes    = 1<<30 + 1<<20 // of one value: the longest result of a tool, and some more
	maxElements = 1 << 20       // of one reply, in all its lists
	maxDepth    = 16
	maxLine     = 64 << 10
	readSize    = 16 << 10
	minRoom     = 4 << 10 // room for what comes next
)

var errNoReply = errors.New("the server does not speak the protocol of Redis, or announces impossible lengths")

// dialer returns a function that opens bounded connections. Without a TLS
// configuration there is no TLS.
func dialer(timeout time.Duration, secure *tls.Config) func(ctx context.Context, network, address string) (net.Conn, error) {
	dial := (&net.Dialer{Timeout: timeout}).DialContext
	if secure != nil {
		dial = (&tls.Dialer{NetDialer: &net.Dialer{Timeout: timeout}, Config: secure}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return Bound(c), nil
	}
}

// Bound returns a connection whose replies are bounded. A Redis client allocates a value
// when its length is announced, before the value arrives, and the elements of a list
// likewise: one line of a lying server, or of another server at that address, could cost
// any amount of memory. Bound passes a long value on once all of it has arrived, so it
// costs no more memory than was sent; an impossible length breaks the connection. The bytes
// are unchanged. The protocol is RESP without its streamed forms, which Redis does not use.
func Bound(c net.Conn) net.Conn {
	b := &bounded{Conn: c}
	if raw, ok := c.(syscall.Conn); ok { // clients look whether an idle one was closed
		return checked{b, raw}
	}
	return b
}

type checked struct {
	*bounded
	syscall.Conn
}

// bounded reads replies ahead, and releases the bytes that may be passed on.
type bounded struct {
	net.Conn
	in   []byte // what has come
	from int    // before that it was passed on
	free int    // before that it may be
	seen int    // before that it was looked at

	left     int64   // what is still to come of a value, with the end of its line
	buffered bool    // it is passed on when all of it is there
	open     []int64 // the elements still to come of the lists that are open
	elements int64   // of this reply
	fault    error
}

func (b *bounded) Read(p []byte) (int, error) {
	for b.free == b.from {
		if b.fault != nil {
			return 0, b.fault
		}
		n, err := b.Conn.Read(b.room())
		b.in = b.in[:len(b.in)+n]
		b.fault = b.look()
		if n == 0 && err != nil {
			return 0, err
		}
	}
	n := copy(p, b.in[b.from:b.free])
	if b.from += n; b.from == len(b.in) {
		b.in, b.from, b.free, b.seen = b.in[:0], 0, 0, 0
		if cap(b.in) > 2*readSize {
			b.in = nil
		}
	}
	return n, nil
}

// room is where what comes next is read to.
func (b *bounded) room() []byte {
	if cap(b.in)-len(b.in) < minRoom {
		b.in = b.in[:copy(b.in, b.in[b.from:])]
		b.free, b.seen, b.from = b.free-b.from, b.seen-b.from, 0
		b.in = slices.Grow(b.in, readSize)
	}
	return b.in[len(b.in):cap(b.in)]
}

// look goes over what has come.
func (b *bounded) look() error {
	for b.seen < len(b.in) {
		rest := b.in[b.seen:]
		if b.left > 0 {
			n := min(b.left, int64(len(rest)))
			b.left -= n
			b.seen += int(n)
			if b.left == 0 {
				b.buffered = false
				b.ended()
			}
		} else {
			end := bytes.IndexByte(rest, '\n')
			if end < 0 && len(rest) <= maxLine {
				return nil
			}
			if end < 0 || end > maxLine {
				return errNoReply
			}
			if err := b.line(bytes.TrimSuffix(rest[:end], []byte{'\r'})); err != nil {
				return err
			}
			b.seen += end + 1
		}
		if !b.buffered {
			b.free = b.seen
		}
	}
	return nil
}

// line takes the first line of a value, or of a list.
func (b *bounded) line(line []byte) error {
	if len(line) == 0 {
		return errNoReply
	}
	switch line[0] {
	case '+', '-', ':', ',', '#', '_', '(':
		b.ended()
		return nil
	}
	n, err := strconv.ParseInt(string(line[1:]), 10, 64)
	if err != nil || n < -1 || n > maxBytes {
		return errNoReply
	}
	switch {
	case n == -1:
		b.ended()
	case line[0] == '$' || line[0] == '=' || line[0] == '!':
		b.left, b.buffered = n+int64(len("\r\n")), n > maxDirect
	case line[0] == '*' || line[0] == '~' || line[0] == '>':
		return b.list(n)
	case line[0] == '%':
		return b.list(2 * n)
	default:
		return errNoReply
	}
	return nil
}

func (b *bounded) list(n int64) error {
	if b.elements += n; b.elements > maxElements || len(b.open) >= maxDepth {
		return errNoReply
	}
	if n == 0 {
		b.ended()
		return nil
	}
	b.open = append(b.open, n)
	return nil
}

// ended counts an element, and each list that ends with it.
func (b *bounded) ended() {
	for len(b.open) > 0 {
		last := len(b.open) - 1
		if b.open[last]--; b.open[last] > 0 {
			return
		}
		b.open = b.open[:last]
	}
	b.elements = 0
}
