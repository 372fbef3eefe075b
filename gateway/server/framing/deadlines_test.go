package framing_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callgate/callgate/gateway/server/framing"
)

// The times of the servers of TestDeadlinesOfServer.
const (
	headTime  = 300 * time.Millisecond
	idleTime  = 600 * time.Millisecond
	bodyTime  = 450 * time.Millisecond
	writeTime = 350 * time.Millisecond
	drip      = 40 * time.Millisecond
)

// pipes is a listener within the process, so that a test has its own time.
type pipes struct {
	dialed chan net.Conn
	closed chan struct{}
	close  func()
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.dialed:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error { l.close(); return nil }

func (l *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// serve starts a server with the timeouts of the gateway's own but short ones.
func serve(t *testing.T, wrapped bool, h http.HandlerFunc) (*http.Server, *pipes) {
	t.Helper()
	closed := make(chan struct{})
	l := &pipes{make(chan net.Conn), closed, sync.OnceFunc(func() { close(closed) })}
	accepts := net.Listener(l)
	if wrapped {
		accepts = framing.NewListener(l)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: headTime, IdleTimeout: idleTime, WriteTimeout: time.Minute}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(accepts) }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
	return s, l
}

// dial connects to a server. Written bytes wait until the server reads them.
func dial(t *testing.T, to *pipes) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, far := net.Pipe()
	to.dialed <- far
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	return c, bufio.NewReader(c)
}

// send sends bytes that must arrive.
func send(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Error(err)
	}
}

// answer reads one answer, which must have a body.
func answer(t *testing.T, r *bufio.Reader, body string) {
	t.Helper()
	got, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Errorf("found %v, want the answer %q", err, body)
		return
	}
	defer got.Body.Close()
	if b, err := io.ReadAll(got.Body); err != nil || string(b) != body {
		t.Errorf("found %q and %v, want %q", b, err, body)
	}
}

// dripTo sends a byte now and then until the connection ends, and returns how long that took.
func dripTo(c net.Conn, r io.Reader) time.Duration {
	begun, ended := time.Now(), make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, r)
	}()
	for {
		select {
		case <-ended:
			return time.Since(begun)
		case <-time.After(drip):
			_, _ = io.WriteString(c, "a")
		}
	}
}

// TestDeadlinesOfServer: a server that accepts by this package ends slow clients when a server
// without it does, and loses no byte that came while it ended a read.
func TestDeadlinesOfServer(t *testing.T) {
	const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	hello := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }
	slow := func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(headTime + drip) // the deadline of the head is reached meanwhile
		fmt.Fprint(w, "hello")
	}
	// failed is how long a handler's work lasts until its deadline ends it.
	failed := func(t *testing.T, work func() error) time.Duration {
		begun := time.Now()
		err := work()
		var timeout net.Error
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() || !strings.HasSuffix(err.Error(), "i/o timeout") {
			t.Errorf("found %v", err)
		}
		return time.Since(begun)
	}
	for name, c := range map[string]struct {
		want time.Duration // 0: the client itself ends
		run  func(t *testing.T, wrapped bool) time.Duration
	}{
		"the first head drips": {headTime, func(t *testing.T, wrapped bool) time.Duration {
			_, server := serve(t, wrapped, hello)
			c, r := dial(t, server)
			send(t, c, "GET / HTTP/1.1\r\nX: ")
			return dripTo(c, r)
		}},
		"a later head drips": {headTime, func(t *testing.T, wrapped bool) time.Duration {
			_, server := serve(t, wrapped, hello)
			c, r := dial(t, server)
			for range 3 {
				send(t, c, get)
				answer(t, r, "hello")
				time.Sleep(headTime + drip)
			}
			send(t, c, "GET / HTTP/1.1\r\nX: ")
			return dripTo(c, r)
		}},
		"nothing comes": {headTime, func(t *testing.T, wrapped bool) time.Duration {
			_, server := serve(t, wrapped, hello)
			begun := time.Now()
			_, r := dial(t, server)
			_, _ = io.Copy(io.Discard, r)
			return time.Since(begun)
		}},
		"an idle connection": {idleTime, func(t *testing.T, wrapped bool) time.Duration {
			_, server := serve(t, wrapped, slow)
			c, r := dial(t, server)
			send(t, c, get+get)
			answer(t, r, "hello")
			answer(t, r, "hello")
			begun := time.Now()
			_, _ = io.Copy(io.Discard, r)
			return time.Since(begun)
		}},
		"a body drips": {bodyTime, func(t *testing.T, wrapped bool) time.Duration {
			took := make(chan time.Duration, 1)
			_, server := serve(t, wrapped, func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
				took <- failed(t, func() error { _, err := io.ReadAll(r.Body); return err })
			})
			c, r := dial(t, server)
			send(t, c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n")
			dripTo(c, r)
			return <-took
		}},
		"a deadline moves to an earlier time while a read waits": {bodyTime, func(t *testing.T, wrapped bool) time.Duration {
			took := make(chan time.Duration, 1)
			_, server := serve(t, wrapped, func(w http.ResponseWriter, r *http.Request) {
				begun, control := time.Now(), http.NewResponseController(w)
				_ = control.SetReadDeadline(begun.Add(time.Minute))
				time.AfterFunc(bodyTime/2, func() { _ = control.SetReadDeadline(begun.Add(bodyTime)) })
				took <- failed(t, func() error { _, err := io.ReadAll(r.Body); return err })
			})
			c, _ := dial(t, server)
			send(t, c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n")
			return <-took
		}},
		"an answer is not read": {writeTime, func(t *testing.T, wrapped bool) time.Duration {
			took := make(chan time.Duration, 1)
			_, server := serve(t, wrapped, func(w http.ResponseWriter, _ *http.Request) {
				piece, control := make([]byte, 64<<10), http.NewResponseController(w)
				var last time.Time
				failed(t, func() error {
					for { // the client stops to read within a piece
						time.Sleep(drip)
						last = time.Now()
						_ = control.SetWriteDeadline(last.Add(writeTime)) // of each piece
						if _, err := w.Write(piece); err != nil {
							return err
						}
					}
				})
				took <- time.Since(last)
			})
			c, r := dial(t, server)
			send(t, c, get)
			_, _ = io.CopyN(io.Discard, r, 20*(64<<10)) // which takes longer than a write may
			return <-took
		}},
		"what came meanwhile": {0, func(t *testing.T, wrapped bool) time.Duration {
			_, server := serve(t, wrapped, slow)
			c, r := dial(t, server)
			send(t, c, get)
			for range 3 { // always one byte, and then the others, while a handler runs
				time.Sleep(drip)
				send(t, c, get[:1])
				time.Sleep(drip)
				var others sync.WaitGroup
				others.Go(func() { send(t, c, get[1:]) }) // the server reads them behind the handler
				answer(t, r, "hello")
				others.Wait()
			}
			answer(t, r, "hello")
			return 0
		}},
		"a taken connection": {0, func(t *testing.T, wrapped bool) time.Duration {
			_, server := serve(t, wrapped, func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(headTime + drip)
				c, both, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				line, err := both.ReadString('\n')
				if err != nil {
					t.Error(err)
				}
				_, _ = io.WriteString(c, line)
			})
			c, r := dial(t, server)
			send(t, c, get+"p")
			time.Sleep(2*headTime + idleTime)
			send(t, c, "ing\n")
			if line, err := r.ReadString('\n'); err != nil || line != "ping\n" {
				t.Errorf("found %q and %v", line, err)
			}
			return 0
		}},
		"a client that leaves": {drip, func(t *testing.T, wrapped bool) time.Duration {
			took := make(chan time.Duration, 1)
			_, server := serve(t, wrapped, func(_ http.ResponseWriter, r *http.Request) {
				time.Sleep(headTime + drip)
				begun := time.Now()
				<-r.Context().Done()
				took <- time.Since(begun)
			})
			c, _ := dial(t, server)
			send(t, c, get)
			time.Sleep(headTime + 2*drip)
			c.Close()
			return <-took
		}},
		"a shutdown": {0, func(t *testing.T, wrapped bool) time.Duration {
			s, server := serve(t, wrapped, slow)
			var clients sync.WaitGroup
			for range 4 {
				c, r := dial(t, server)
				send(t, c, get)
				clients.Go(func() { answer(t, r, "hello") })
			}
			time.Sleep(drip)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if err := s.Shutdown(ctx); err != nil {
				t.Error(err)
			}
			clients.Wait()
			return 0
		}},
	} {
		for _, wrapped := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, wrapped %t", name, wrapped), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if got := c.run(t, wrapped); got != c.want {
						t.Errorf("it lasted %v, want %v", got, c.want)
					}
				})
			})
		}
	}
}
