package server

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"strings"
)

// StrictListener wraps a listener so that no request reaches its server of which two
// readers could see another end. net/http reads such heads in one of the ways
// there are; whoever forwarded them may have read them in another (RFC 9112,
// sections 5.2, 6.1, 6.3 and 11.2). These are at fault:
//
//	Content-Length beside Transfer-Encoding
//	Content-Length twice, or anything but digits
//	Transfer-Encoding in a request that is not of HTTP/1.1
//	a header line that is folded
//
// A head at fault is spoiled behind the line that shows it, so that net/http
// refuses it as it refuses every head that it cannot read: with a bare 400, and
// the connection ends. A request with Transfer-Encoding is not followed by
// another one: the Door closes the connection behind it.
func StrictListener(l net.Listener) net.Listener { return strictListener{l} }

type strictListener struct{ net.Listener }

func (f strictListener) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// conn is a connection whose heads are looked at as they are read. net/http
// reads from one goroutine at a time.
type conn struct {
	net.Conn
	framing framing
	spoiled bool
	spoil   []byte // what is read in place of what came, before the end
}

// spoiler is a line that no head can hold, and the end of the head.
const spoiler = "\x00\r\n\r\n"

func (c *conn) Read(p []byte) (int, error) {
	if c.spoiled {
		n := copy(p, c.spoil)
		if c.spoil = c.spoil[n:]; n == 0 && len(p) > 0 {
			return 0, io.EOF
		}
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if sound := c.framing.take(p[:n]); sound < n {
		told := copy(p[sound:], spoiler)
		c.spoiled, c.spoil = true, []byte(spoiler[told:])
		return sound + told, nil
	}
	return n, err
}

// CloseWrite lets net/http end a connection so that its last answer is heard.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// framing follows the heads of one connection. The zero value is before the
// first.
type framing struct {
	body   uint64 // bytes to come before the next head
	inHead bool   // behind the request line
	line   []byte // what is needed of the line so far
	long   bool   // the line is longer than that
	length string // of the body, as it stands in the head
	coded  bool   // there was a Transfer-Encoding
	modern bool   // the request is of HTTP/1.1
	done   bool   // no further head is looked at
}

// maxLine is how much of a line is kept: of a header the beginning, of the
// request line the end.
const maxLine = 128

// take follows the bytes that were read. It returns how many of them are sound:
// fewer than all where the line that ends there shows a fault.
func (f *framing) take(p []byte) int {
	for at := 0; at < len(p) && !f.done; {
		if f.body > 0 {
			n := min(f.body, uint64(len(p)-at))
			f.body -= n
			at += int(n)
			continue
		}
		end := bytes.IndexByte(p[at:], '\n')
		if end < 0 {
			f.keep(p[at:])
			break
		}
		f.keep(p[at : at+end])
		at += end + 1
		if !f.end() {
			f.done = true
			return at - 1 // its line feed is left out, so that it is never whole
		}
	}
	return len(p)
}

func (f *framing) keep(piece []byte) {
	f.line = append(f.line, piece...)
	if over := len(f.line) - maxLine; over > 0 {
		f.long = true
		if f.inHead {
			f.line = f.line[:maxLine]
		} else {
			f.line = append(f.line[:0], f.line[over:]...)
		}
	}
}

// end looks at a line that has ended. It is false where the line is at fault.
func (f *framing) end() bool {
	line, long := strings.TrimSuffix(string(f.line), "\r"), f.long
	f.line, f.long = f.line[:0], false
	switch {
	case line == "" && !f.inHead: // before a request line, where net/http may pass over it
		return true
	case line == "":
		f.done = f.coded
		if f.length != "" {
			f.body, _ = strconv.ParseUint(f.length, 10, 63) // it was looked at
		}
		f.inHead, f.length, f.coded = false, "", false
		return true
	case !f.inHead:
		f.inHead, f.modern = true, strings.HasSuffix(line, " HTTP/1.1")
		return true
	case line[0] == ' ' || line[0] == '\t':
		return false
	}
	name, value, _ := strings.Cut(line, ":")
	switch {
	case strings.EqualFold(name, "Content-Length"):
		value = strings.Trim(value, " \t")
		_, err := strconv.ParseUint(value, 10, 63)
		sound := err == nil && !long && f.length == "" && !f.coded
		f.length = value
		return sound
	case strings.EqualFold(name, "Transfer-Encoding"):
		f.coded = true
		return f.modern && f.length == ""
	}
	return true
}
