package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/internal/testkit/leaks"
	"github.com/callgate/callgate/internal/testkit/parallel"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

func TestMain(m *testing.M) {
	parallel.Waiting()
	leaks.Main(m)
}

// patient is a timeout that no test is meant to reach.
const patient = 30 * time.Second

func newEngine(t testing.TB, options engine.Options) *engine.Engine {
	t.Helper()
	e := engine.New(options)
	t.Cleanup(e.Close)
	return e
}

// loopback is a call of a tool that may be on 127.0.0.1 only.
func loopback(url, effect string) tool.Call {
	return tool.Call{
		Tool: "sample", Version: "1.0.0", Effect: effect, ID: "call-1",
		Arguments: []byte(`{"a":1}`),
		Run:       tool.Run{Type: "http", URL: url, Timeout: patient, MaxResultBytes: 1 << 20, Addresses: []string{"127.0.0.1/32"}},
	}
}

// code is the code of a refusal, "" for none. An error of another type fails.
func code(t testing.TB, err error) refusal.Code {
	t.Helper()
	if err == nil {
		return ""
	}
	var refused *refusal.Error
	if !errors.As(err, &refused) {
		t.Fatalf("the error is a %T, not a refusal: %v", err, err)
	}
	return refused.Code
}

func run(t testing.TB, e *engine.Engine, call tool.Call) (tool.Result, refusal.Code) {
	t.Helper()
	result, err := e.Run(context.Background(), call)
	return result, code(t, err)
}

// canary counts the requests that it gets. It must get none.
type canary struct {
	*httptest.Server
	hits atomic.Int64
}

func newCanary(t testing.TB) *canary {
	t.Helper()
	c := &canary{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c.hits.Add(1)
		io.WriteString(w, "canary")
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *canary) port() string { return c.Listener.Addr().String()[len("127.0.0.1:"):] }

// wire is a server below HTTP: each request, once read, is answered by a
// function that writes what it likes. nth counts the requests of one connection.
type wire struct {
	url  string
	hits atomic.Int64
}

func newWire(t testing.TB, answer func(conn net.Conn, nth int)) *wire {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{url: "http://" + l.Addr().String() + "/"}
	var served sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			served.Go(func() {
				defer conn.Close()
				reader := bufio.NewReader(conn)
				for nth := 1; ; nth++ {
					request, err := http.ReadRequest(reader)
					if err != nil {
						return
					}
					if _, err := io.Copy(io.Discard, request.Body); err != nil {
						return
					}
					w.hits.Add(1)
					answer(conn, nth)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for conn := range open {
			conn.Close()
		}
		mu.Unlock()
		served.Wait()
	})
	return w
}

// rows reads a table of testdata: the fields of each line that is no comment.
func rows(t testing.TB, name string, fields int) [][]string {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for line := range bytes.Lines(raw) {
		text := strings.TrimSpace(string(line))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		row := strings.Fields(text)
		if len(row) != fields {
			t.Fatalf("%s: found %q, expected %d fields", name, text, fields)
		}
		all = append(all, row)
	}
	if len(all) == 0 {
		t.Fatalf("%s holds no cases", name)
	}
	return all
}
