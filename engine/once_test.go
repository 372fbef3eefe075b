package engine_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/refusal"
)

// closer is a server that ends its connections at every moment of an exchange. It counts
// how often it received each call, also in part, and answers a call with its id.
type closer struct {
	net.Listener
	mu       sync.Mutex
	received map[string]int
	moments  [len(moments)]int
	reused   int // requests on a connection that had carried another
	serving  sync.WaitGroup
}

// moments names when a connection ends. Each connection draws one for each request.
var moments = [...]string{
	"never", "never", "never", "after the answer", "reset after the answer", "a little after the answer",
	"at the first byte", "within the head", "after the request", "reset after the request",
	"within the answer's head", "within the answer's body", "never, with bytes after the answer",
	"never, with bytes a little after the answer", "never, with Connection: close",
}

const callIDHeader = "Callgate-Call-Id: "

func newCloser(t *testing.T, l net.Listener) *closer {
	t.Helper()
	s := &closer{Listener: l, received: map[string]int{}}
	s.serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.serving.Go(func() { s.serve(conn) })
		}
	})
	return s
}

// receive reads until the bytes end as wanted, or are as many as wanted.
func receive(conn net.Conn, read *bytes.Buffer, most int, end string) bool {
	b := make([]byte, 1)
	for read.Len() < most && (end == "" || !bytes.HasSuffix(read.Bytes(), []byte(end))) {
		if n, err := conn.Read(b); err != nil || n == 0 {
			return false
		}
		read.Write(b)
	}
	return true
}

func (s *closer) serve(conn net.Conn) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patient))
	for nth := 1; ; nth++ {
		at := rand.IntN(len(moments))
		kind := moments[at]
		var request bytes.Buffer
		if !receive(conn, &request, 1, "") {
			return
		}
		s.mu.Lock()
		s.moments[at]++
		if nth > 1 {
			s.reused++
		}
		s.mu.Unlock()
		if kind == "at the first byte" {
			return
		}
		// The id, once it is known: from here on the call was received.
		if !receive(conn, &request, 1<<20, callIDHeader) {
			return
		}
		start := request.Len()
		if !receive(conn, &request, 1<<20, "\r\n") {
			return
		}
		id := string(bytes.TrimSpace(request.Bytes()[start:]))
		s.mu.Lock()
		s.received[id]++
		s.mu.Unlock()
		if kind == "within the head" {
			return
		}
		if !receive(conn, &request, 1<<20, "}") {
			return
		}
		if end(conn, kind, id) {
			return
		}
	}
}

// end answers a request, and reports whether the connection ends by this.
func end(conn net.Conn, kind, id string) bool {
	reset := func() {
		if c, ok := conn.(*net.TCPConn); ok {
			c.SetLinger(0)
		}
	}
	answer := fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", page, len(id), id)
	switch kind {
	case "after the request":
		return true
	case "reset after the request":
		reset()
		return true
	case "within the answer's head":
		io.WriteString(conn, answer[:20])
		return true
	case "within the answer's body":
		io.WriteString(conn, answer[:len(answer)-1])
		return true
	case "never, with bytes after the answer":
		answer += answer
	case "never, with Connection: close":
		io.WriteString(conn, fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", closing, len(id), id))
		return true
	}
	io.WriteString(conn, answer)
	switch kind {
	case "after the answer":
		return true
	case "reset after the answer":
		reset()
		return true
	case "a little after the answer":
		time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
		return true
	case "never, with bytes a little after the answer":
		// For longer than another call takes to begin: a connection that it begins on
		// before these bytes arrive could not tell them from its own answer.
		time.Sleep(time.Duration(rand.IntN(20)) * time.Microsecond)
		io.WriteString(conn, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		return true
	}
	return false
}

// TestNothingIsSentTwice: a call of the effect once is received at most once, whenever its
// server ends the connection. A result is the call's own; a call that is reported as not
// sent was not received. `make once` makes more calls.
func TestNothingIsSentTwice(t *testing.T) {
	calls := 600
	if n, err := strconv.Atoi(os.Getenv("CALLGATE_ONCE_CALLS")); err == nil {
		calls = n
	}
	certified := httptest.NewUnstartedServer(http.NotFoundHandler())
	certified.StartTLS()
	defer certified.Close()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	for name, protocols := range map[string][]string{"http": nil, "https": {}, "https, of HTTP/2 too": {"h2", "http/1.1"}} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			url := "http://" + l.Addr().String() + "/"
			if protocols != nil {
				url = "https://" + l.Addr().String() + "/"
				l = tls.NewListener(l, &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: protocols})
			}
			server := newCloser(t, l)
			e := newEngine(t, engine.Options{Certificates: roots})
			var failed, next atomic.Int64
			outcomes := map[refusal.Code]int{}
			var calling sync.WaitGroup
			for worker := range 8 {
				calling.Go(func() {
					for n := next.Add(1); n <= int64(calls); n = next.Add(1) {
						call := loopback(url, "once")
						call.ID = fmt.Sprintf("call-%d", n)
						call.Tool = fmt.Sprintf("tool-%d-%d", worker, n/9) // no breaker opens
						result, err := e.Run(t.Context(), call)
						got := code(t, err)
						server.mu.Lock()
						received := server.received[call.ID]
						outcomes[got]++
						server.mu.Unlock()
						switch {
						case received > 1:
							t.Errorf("%s was received %d times", call.ID, received)
						case got == "" && (received != 1 || string(result.Body) != call.ID):
							t.Errorf("%s has the result %q, and was received %d times", call.ID, result.Body, received)
						case got != "" && got != refusal.OutcomeUnknown && (got != refusal.ToolUnavailable || received != 0):
							// A late 408 of the server may be taken for the answer.
							if got != refusal.ToolFailed {
								t.Errorf("%s: %s, and was received %d times: %v", call.ID, got, received, err)
							}
						}
						if got != "" {
							failed.Add(1)
						}
					}
				})
			}
			calling.Wait()
			e.Close()
			l.Close()
			server.serving.Wait()
			most := 0
			for id, n := range server.received {
				if most = max(most, n); n > 1 {
					t.Errorf("%s was received %d times", id, n)
				}
			}
			t.Logf("%d calls: %v; %d on a used connection; received at most %d times", calls, outcomes, server.reused, most)
			for i, n := range server.moments {
				if n == 0 {
					t.Errorf("no connection ended: %s", moments[i])
				}
			}
			if server.reused < calls/20 {
				t.Errorf("%d of %d calls were sent on a used connection, so this shows nothing", server.reused, calls)
			}
		})
	}
}

// TestUsedConnections: a call is sent on a connection that an earlier one used only if the
// server leaves it open, and has sent nothing since.
func TestUsedConnections(t *testing.T) {
	t.Parallel()
	const hi = "Content-Length: 2\r\n\r\nhi"
	for name, c := range map[string]struct {
		answer func(net.Conn)
		pause  time.Duration
		once   int // the number of the second request on its connection
		read   int
	}{
		"left open":               {say(page, hi), 0, 2, 2},
		"left open, in chunks":    {say(chunked, "2\r\nhi\r\n0\r\n\r\n"), 0, 2, 2},
		"left open, after hints":  {say("HTTP/1.1 103 Early Hints\r\n\r\n", page, hi), 0, 2, 2},
		"idle for a second":       {say(page, hi), time.Second, 1, 2},
		"to be closed":            {say(closing, hi), 0, 1, 1},
		"HTTP/1.0":                {say("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n", hi), 0, 1, 1},
		"closed":                  {func(conn net.Conn) { say(page, hi)(conn); conn.Close() }, 0, 1, 1},
		"reset":                   {func(conn net.Conn) { say(page, hi)(conn); reset(conn) }, 0, 1, 1},
		"more bytes":              {say(page, hi, page, hi), 0, 1, 1},
		"more bytes, a bit later": {func(conn net.Conn) { say(page, hi)(conn); time.Sleep(time.Millisecond); say(page, hi)(conn) }, 0, 1, 1},
		"one line end more":       {say(page, hi, "\r\n"), 0, 1, 1},
	} {
		for effect, want := range map[string]int{"once": c.once, "read": c.read} {
			t.Run(name+" "+effect, func(t *testing.T) {
				t.Parallel()
				for {
					nth := make(chan int, 2) // of each request, once the server has sent all of its answer
					w := newWire(t, func(conn net.Conn, n int) { c.answer(conn); nth <- n })
					e := newEngine(t, engine.Options{})
					call := func() int {
						result, err := e.Run(t.Context(), loopback(w.url, effect))
						if err != nil || string(result.Body) != "hi" || result.Attempts != 1 {
							t.Fatalf("%+v, %v", result, err)
						}
						return <-nth
					}
					begun := time.Now()
					call()
					time.Sleep(c.pause)
					got := call()
					if effect == "once" && want == 2 && time.Since(begun) > time.Second {
						continue // this machine was too slow: the connection may have been idle for too long
					}
					if got != want || w.hits.Load() != 2 {
						t.Errorf("the second call was request %d of its connection, of %d in all; want %d of 2", got, w.hits.Load(), want)
					}
					return
				}
			})
		}
	}
}

// TestEmptyAnswers: an answer without a body frees its connection at once, for one other
// call at a time. The race detector watches.
func TestEmptyAnswers(t *testing.T) {
	var connections sync.Map
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections.Store(r.RemoteAddr, true)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	e := newEngine(t, engine.Options{})
	var calling sync.WaitGroup
	for range 8 {
		calling.Go(func() {
			for range 200 {
				if result, got := run(t, e, loopback(server.URL, "once")); got != "" || len(result.Body) != 0 {
					t.Errorf("%s: %q", got, result.Body)
				}
			}
		})
	}
	calling.Wait()
	n := 0
	connections.Range(func(any, any) bool { n++; return true })
	if n > 8 {
		t.Errorf("%d connections for 8 callers", n)
	}
}

// TestPartOfARecord: a connection on which a part of a TLS record has arrived since the last
// answer carries no other call.
func TestPartOfARecord(t *testing.T) {
	t.Parallel()
	certified := httptest.NewUnstartedServer(http.NotFoundHandler())
	certified.StartTLS()
	defer certified.Close()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var connections atomic.Int64
	read, begun := make(chan struct{}), make(chan struct{})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			go func() {
				defer conn.Close()
				secured := tls.Server(conn, &tls.Config{Certificates: certified.TLS.Certificates})
				var request bytes.Buffer
				for receive(secured, &request, 1<<20, "}") {
					request.Reset()
					io.WriteString(secured, page+"Content-Length: 2\r\n\r\nhi")
					<-read
					io.WriteString(conn, "\x17\x03\x03") // the begin of a record
					begun <- struct{}{}
				}
			}()
		}
	}()
	e := newEngine(t, engine.Options{Certificates: roots})
	for _, effect := range []string{"once", "read", "once"} {
		if result, got := run(t, e, loopback("https://"+l.Addr().String()+"/", effect)); got != "" || string(result.Body) != "hi" {
			t.Fatalf("%s: %q, %q", effect, got, result.Body)
		}
		read <- struct{}{}
		<-begun
	}
	if n := connections.Load(); n != 3 {
		t.Errorf("%d connections for 3 calls", n)
	}
}
