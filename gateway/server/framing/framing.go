package framing

import (
	"bytes"
	"io"
	"net"
	"strconv"

	"github.com/callgate/callgate/internal/deadline"
)

// NewListener wraps a listener of an HTTP server. See the comment of the package.
func NewListener(l net.Listener) net.Listener { return listener{l, deadline.NewAlarms()} }

type listener struct {
	net.Listener
	deadlines *deadline.Alarms
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: deadline.NewConn(c, l.deadlines), accepted: c}, nil
}

// conn is a connection whose heads are checked as net/http reads them, from one goroutine at a
// time.
type conn struct {
	*deadline.Conn // an HTTP server moves its deadlines nine times a request
	accepted       net.Conn
	heads          scanner
	poisoned       bool
	rest           []byte // of the poison, to be read before the end

	buffered *[]byte // between Hold and Release
	writeErr error   // of bytes that were held
}

// poison is a line that no head can hold, and the end of the head.
const poison = "\x00\r\n\r\n"

func (c *conn) Read(p []byte) (int, error) {
	if c.poisoned {
		n := copy(p, c.rest)
		if c.rest = c.rest[n:]; n == 0 && len(p) > 0 {
			return 0, io.EOF
		}
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if valid := c.heads.scan(p[:n]); valid < n {
		written := copy(p[valid:], poison)
		c.poisoned, c.rest = true, []byte(poison[written:])
		return valid + written, nil
	}
	return n, err
}

// CloseWrite lets net/http end a connection so that the client still receives the last
// answer.
func (c *conn) CloseWrite() error {
	if w, ok := c.accepted.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// scanner follows the heads of one connection. The zero value is before the
// first.
type scanner struct {
	body      uint64 // bytes to come before the next head
	inHead    bool   // behind the request line
	line      []byte // what is needed of the line so far
	long      bool   // the line is longer than that
	length    uint64 // of the body, as the head states it
	hasLength bool
	hasCoding bool // there was a Transfer-Encoding
	http11    bool // the request is of HTTP/1.1
	done      bool // no further head is checked
}

// maxLine is how much of a line is kept: of a header the beginning, of the
// request line the end.
const maxLine = 128

// scan follows the bytes that were read. It returns how many of them are valid: fewer than all
// if a line at fault ends there.
func (s *scanner) scan(p []byte) int {
	for at := 0; at < len(p) && !s.done; {
		if s.body > 0 {
			n := min(s.body, uint64(len(p)-at))
			s.body -= n
			at += int(n)
			continue
		}
		end := bytes.IndexByte(p[at:], '\n')
		if end < 0 {
			s.keepLine(p[at:])
			break
		}
		s.keepLine(p[at : at+end])
		at += end + 1
		if !s.endLine() {
			s.done = true
			return at - 1 // its line feed is left out, so that it is never whole
		}
	}
	return len(p)
}

func (s *scanner) keepLine(piece []byte) {
	s.line = append(s.line, piece...)
	if over := len(s.line) - maxLine; over > 0 {
		s.long = true
		if s.inHead {
			s.line = s.line[:maxLine]
		} else {
			s.line = append(s.line[:0], s.line[over:]...)
		}
	}
}

// endLine checks a line that has ended. It is false if the line is at fault.
func (s *scanner) endLine() bool {
	line, long := bytes.TrimSuffix(s.line, []byte("\r")), s.long
	s.line, s.long = s.line[:0], false // line is read before more is kept
	switch {
	case len(line) == 0 && !s.inHead: // before a request line, where net/http may pass over it
		return true
	case len(line) == 0:
		s.done = s.hasCoding
		s.body = s.length
		s.inHead, s.length, s.hasLength, s.hasCoding = false, 0, false, false
		return true
	case !s.inHead:
		s.inHead, s.http11 = true, bytes.HasSuffix(line, []byte(" HTTP/1.1"))
		return true
	case line[0] == ' ' || line[0] == '\t':
		return false
	}
	name, rest, _ := bytes.Cut(line, []byte(":"))
	switch {
	case bytes.EqualFold(name, []byte("Content-Length")):
		length, err := strconv.ParseUint(string(bytes.Trim(rest, " \t")), 10, 63)
		valid := err == nil && !long && !s.hasLength && !s.hasCoding
		s.length, s.hasLength = length, true
		return valid
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		s.hasCoding = true
		return s.http11 && !s.hasLength
	}
	return true
}
