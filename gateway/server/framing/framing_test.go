package framing_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/callgate/callgate/gateway/server/framing"
)

// wire is a connection whose peer has said everything already.
type wire struct {
	net.Conn
	io.Reader
}

func (w wire) Read(p []byte) (int, error) { return w.Reader.Read(p) }

// once is a listener with one connection.
type once struct {
	net.Listener
	c net.Conn
}

func (o once) Accept() (net.Conn, error) { return o.c, nil }

// listened reads what a server would read of a connection.
func listened(t testing.TB, r io.Reader) string {
	t.Helper()
	c, err := framing.NewListener(once{c: wire{Reader: r}}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	valid = []string{
		"",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"\r\n\nGET / HTTP/1.1\nHost: x\n\n",
		"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n\r\n POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: \t40 \r\n\r\nContent-Length: 1\r\nTransfer-Encoding: 1\r\n",
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"GET /" + strings.Repeat("a", 500) + " HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET / HTTP/1.0\r\nContent-Length: 1\r\nX-Content-Length: 2\r\nContent-Lengthy: 3\r\n\r\n ",
	}
	faulty = []string{
		"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\nX: y\r\nCONTENT-LENGTH: 3\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\nContent-Length: 3\nTransfer-Encoding: chunked\n\n0\n\n",
		"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nhiPOST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
		"POST / HTTP/1.1\r\nContent-Length: 3, 3\r\n\r\nabc",
		"POST / HTTP/1.1\r\nContent-Length:\r\n\r\nabc",
		"POST / HTTP/1.1\r\nContent-Length: 3\r\r\n\r\nabc",
		"POST / HTTP/1.1\r\nContent-Length:" + strings.Repeat(" ", 500) + "3\r\n\r\nabc",
		"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST /" + strings.Repeat("a", 500) + " HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nX: a\r\n b\r\n\r\n",
		"POST / HTTP/1.1\r\n\tX: a\r\n\r\n",
	}
)

// requests reads requests until one cannot be read.
func requests(s string) (n int, err error) {
	r := bufio.NewReader(strings.NewReader(s))
	for {
		request, e := http.ReadRequest(r)
		if e != nil {
			return n, e
		}
		n++
		io.Copy(io.Discard, request.Body)
	}
}

// TestListener: what is sound arrives as it came, and a server cannot read what is
// at fault; however the bytes arrive.
func TestListener(t *testing.T) {
	ways := map[string]func(string) io.Reader{
		"at once":   func(s string) io.Reader { return strings.NewReader(s) },
		"by byte":   func(s string) io.Reader { return iotest.OneByteReader(strings.NewReader(s)) },
		"by halves": func(s string) io.Reader { return iotest.HalfReader(strings.NewReader(s)) },
		"with end":  func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s)) },
	}
	for name, way := range ways {
		for _, s := range valid {
			if got := listened(t, way(s)); got != s {
				t.Errorf("%s: %q arrives as %q", name, s, got)
			}
		}
		for _, s := range faulty {
			got := listened(t, way(s))
			whole, _ := requests(s[:strings.LastIndex(s, "POST")])
			if n, err := requests(got); n != whole || err == io.EOF || err == io.ErrUnexpectedEOF {
				t.Errorf("%s: %q arrives as %q, of which %d requests can be read: %v", name, s, got, n, err)
			}
		}
	}
}

var lengthLine = regexp.MustCompile(`(?im)^content-length:`)

// FuzzListener: no request that a server reads has both lengths or two of one,
// wherever the bytes are cut.
func FuzzListener(f *testing.F) {
	for _, s := range append(append([]string(nil), valid...), faulty...) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := listened(t, bytes.NewReader(data))
		if by := listened(t, iotest.OneByteReader(bytes.NewReader(data))); by != got {
			t.Fatalf("%q arrives as %q or as %q", data, got, by)
		}
		rest := got
		for {
			r := strings.NewReader(rest)
			in := bufio.NewReaderSize(r, 16)
			for { // as net/http does behind a POST
				if b, err := in.Peek(1); err != nil || b[0] != '\r' && b[0] != '\n' {
					break
				}
				in.Discard(1)
			}
			start := len(rest) - r.Len() - in.Buffered()
			request, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			head := rest[start : len(rest)-r.Len()-in.Buffered()]
			lengths := len(lengthLine.FindAllString(head, -1))
			if coded := len(request.TransferEncoding) > 0; lengths > 1 || coded && lengths > 0 {
				t.Fatalf("a server reads %q", head)
			} else if coded {
				return // the connection ends behind it
			}
			if _, err := io.Copy(io.Discard, request.Body); err != nil {
				return
			}
			rest = rest[len(rest)-r.Len()-in.Buffered():]
		}
	})
}

// TestNetHTTPAccepts: net/http alone accepts each kind of head for which this package exists.
// Where it no longer does, the check can go.
func TestNetHTTPAccepts(t *testing.T) {
	for kind, head := range map[string]string{
		"a length beside a coding": "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two lengths":              "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
		"a coding in HTTP/1.0":     "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"a folded line":            "POST / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n",
	} {
		if _, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head))); err != nil {
			t.Errorf("%s: net/http refuses it: %v", kind, err)
		}
		if n, err := requests(listened(t, strings.NewReader(head))); n > 0 || err == nil {
			t.Errorf("%s: a server reads it", kind)
		}
	}
}

// again is a peer that sends the same bytes with each read.
type again struct{ request []byte }

func (a again) Read(p []byte) (int, error) { return copy(p, a.request), nil }

// TestHeadsAllocateNothing: following the heads of a connection costs a request no memory.
func TestHeadsAllocateNothing(t *testing.T) {
	request := []byte("POST /v1/calls HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789")
	c, err := framing.NewListener(once{c: wire{Reader: again{request}}}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 4096)
	if n := testing.AllocsPerRun(100, func() {
		if n, err := c.Read(p); n != len(request) || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
