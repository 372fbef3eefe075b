package redisconn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// wire is a connection that says something, and then hangs up.
type wire struct {
	net.Conn
	io.Reader
}

func (w wire) Read(p []byte) (int, error) { return w.Reader.Read(p) }

func hears(r io.Reader) ([]byte, error) { return io.ReadAll(Bound(wire{Reader: r})) }

func value(n int) string { return "$" + strconv.Itoa(n) + "\r\n" + strings.Repeat("v", n) + "\r\n" }

// TestRepliesPass: whatever Redis says arrives as it was said, however it is cut.
func TestRepliesPass(t *testing.T) {
	output := []byte("+OK\r\n-ERR no\r\n:1\r\n$-1\r\n*-1\r\n*0\r\n" + value(0) + value(5) + value(maxDirect) + value(maxDirect+1) + value(3*maxDirect) +
		"*3\r\n:1\r\n*2\r\n" + value(3) + "$-1\r\n*0\r\n%1\r\n+a\r\n~1\r\n_\r\n>1\r\n#t\r\n,1.5\r\n(123\r\n=5\r\ntxt:a\r\n!3\r\nERR\r\n" +
		strings.Repeat("*100\r\n"+strings.Repeat(":1\r\n", 100), 20_000) + "+PONG\r\n")
	for name, cut := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "with the end": iotest.DataErrReader,
	} {
		if got, err := hears(cut(bytes.NewReader(output))); err != nil || !bytes.Equal(got, output) {
			t.Errorf("%s: %d of %d bytes arrive, %v", name, len(got), len(output), err)
		}
	}
	short := output[:200]
	if got, err := hears(iotest.OneByteReader(bytes.NewReader(short))); err != nil || !bytes.HasPrefix(short, got) || len(got) < 60 {
		t.Errorf("byte by byte: %q arrives of %q, %v", got, short, err)
	}
}

// TestLies: what says impossible lengths is broken off before it is maxDirect.
func TestLies(t *testing.T) {
	for name, lie := range map[string]string{
		"too long":         "$9223372036854775805\r\n",
		"longer than that": "$99999999999999999999999\r\n",
		"below nothing":    "$-2\r\n",
		"too many":         "*9223372036854775805\r\n",
		"many":             "*" + strconv.Itoa(maxElements+1) + "\r\n",
		"many in maps":     "%" + strconv.Itoa(maxElements/2+1) + "\r\n",
		"many in all":      strings.Repeat("*"+strconv.Itoa(maxElements/8)+"\r\n", 9),
		"deep":             strings.Repeat("*1\r\n", maxDepth+1),
		"an endless line":  "+" + strings.Repeat("x", maxLine+1),
		"a long line":      "+" + strings.Repeat("x", maxLine+1) + "\r\n",
		"no number":        "$x\r\n",
		"streamed":         "$?\r\n",
		"no type":          "HTTP/1.1 400 Bad Request\r\n",
		"an empty line":    "\r\n",
		"an attribute":     "|1\r\n",
		"noise":            "\x00\xff\r\n",
	} {
		got, err := hears(strings.NewReader("+OK\r\n" + lie + "+OK\r\n"))
		if !errors.Is(err, errNoReply) || !strings.HasPrefix("+OK\r\n"+lie, string(got)) || len(got) >= len("+OK\r\n"+lie) {
			t.Errorf("%s: %.40q arrives, %v", name, got, err)
		}
	}
}

// TestALengthIsNotBelieved: a length costs nothing before its value has come.
func TestALengthIsNotBelieved(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := hears(strings.NewReader("+OK\r\n$" + strconv.Itoa(maxBytes) + "\r\nsome of it"))
	runtime.ReadMemStats(&after)
	if err != nil || string(got) != "+OK\r\n" {
		t.Errorf("%q arrives, %v", got, err)
	}
	if cost := after.TotalAlloc - before.TotalAlloc; cost > 8<<20 {
		t.Errorf("it has cost %d bytes", cost)
	}
}

// TestRepliesCostLittle: what is read and passed on needs no memory of its own.
func TestRepliesCostLittle(t *testing.T) {
	output := []byte("*3\r\n" + value(2) + value(26) + value(100))
	second := bytes.NewReader(nil)
	c := Bound(wire{Reader: second})
	p := make([]byte, 4096)
	if n := testing.AllocsPerRun(100, func() {
		second.Reset(output)
		if n, err := c.Read(p); n != len(output) || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}); n > 0 {
		t.Errorf("a reply costs %v allocations", n)
	}
}

// TestDialer: connections that are dialled are bounded, and can be looked at.
func TestDialer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		io.WriteString(c, "+OK\r\n$99999999999999\r\n")
	}()
	c, err := dialer(time.Minute, nil)(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, ok := c.(checked); !ok {
		t.Error("whether it was closed cannot be looked at")
	}
	if got, err := io.ReadAll(c); !errors.Is(err, errNoReply) || string(got) != "+OK\r\n" {
		t.Errorf("%q arrives, %v", got, err)
	}
	l.Close()
	if _, err := dialer(time.Minute, nil)(t.Context(), "tcp", l.Addr().String()); err == nil {
		t.Error("connected to nobody")
	}
}

// FuzzBound: nothing is changed, and what passes whole passes in pieces.
func FuzzBound(f *testing.F) {
	for _, seed := range []string{"+OK\r\n", "$3\r\nabc\r\n", "*2\r\n:1\r\n$-1\r\n", "%1\r\n+a\r\n*0\r\n", "*1\r\n*1\r\n*1\r\n", "$1048577\r\nx", "\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		whole, err := hears(bytes.NewReader(output))
		if !bytes.HasPrefix(output, whole) {
			t.Fatalf("%q became %q", output, whole)
		}
		pieces, other := hears(iotest.OneByteReader(bytes.NewReader(output)))
		if !bytes.Equal(whole, pieces) || errors.Is(err, errNoReply) != errors.Is(other, errNoReply) {
			t.Fatalf("%q: %q and %v whole, %q and %v in pieces", output, whole, err, pieces, other)
		}
	})
}
