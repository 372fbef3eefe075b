package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/deadline"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/internal/testkit/leaks"
	"github.com/callgate/callgate/refusal"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// patient is a time that no test is meant to reach.
const patient = 30 * time.Second

// soon is a bound that a test means to reach.
const soon = 50 * time.Millisecond

func newClient(t testing.TB, o Options) *Client {
	t.Helper()
	if o.ReadSecret == nil { // env:TEXT leads to the text itself
		o.ReadSecret = func(_ context.Context, reference string) (string, error) {
			return strings.TrimPrefix(reference, "env:"), nil
		}
	}
	c := NewClient(o)
	t.Cleanup(c.Close)
	t.Cleanup(func() { // every exchange has ended by now
		if !reflect.ValueOf(c.alarms).Elem().FieldByName("first").IsNil() {
			t.Error("an alarm is left")
		}
	})
	return c
}

// definition is one that has no patience to lose and tries once.
func definition(url string) Definition {
	d := Defaults()
	d.Name, d.BaseURL, d.Models = "sample", url, []Model{{ID: "m"}}
	d.Timeouts = Timeouts{Connect: patient, Response: patient, Idle: patient, Total: 2 * patient}
	d.Retries = 0
	return d
}

func routeTo(t testing.TB, d Definition) *Route {
	t.Helper()
	s, err := New([]Definition{d})
	if err != nil {
		t.Fatal(err)
	}
	route, ok := s.Lookup("m")
	if !ok {
		t.Fatal("the model has no route")
	}
	return route
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

// serve is a provider that answers each request by a function.
func serve(t testing.TB, answer http.HandlerFunc) (url string, hits *atomic.Int64) {
	t.Helper()
	hits = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		hits.Add(1)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, hits
}

// wire is a provider below HTTP: each request, once read, is answered by a
// function that writes what it likes and returns to close the connection.
func wire(t testing.TB, answer func(conn net.Conn)) (url string, hits *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hits = &atomic.Int64{}
	var (
		served sync.WaitGroup
		mu     sync.Mutex
		open   = map[net.Conn]bool{}
	)
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
				request, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				if _, err := io.Copy(io.Discard, request.Body); err != nil {
					return
				}
				hits.Add(1)
				answer(conn)
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
	return "http://" + l.Addr().String(), hits
}

// untilGone waits for the peer to close the connection.
func untilGone(conn net.Conn) {
	_, _ = io.Copy(io.Discard, conn)
}

const (
	jsonHead   = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	chunked    = "Transfer-Encoding: chunked\r\n\r\n"

	good      = `{"id":"c1","object":"chat.completion","created":7,"model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`
	textEvent = "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n"
	callEvent = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\n\n"
	endEvent  = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	doneEvent = "data: [DONE]\n\n"
)

// chunkOf frames bytes as one chunk of HTTP.
func chunkOf(s string) string {
	const digits = "0123456789abcdef"
	n := len(s)
	size := ""
	for ; n > 0; n >>= 4 {
		size = string(digits[n&15]) + size
	}
	return size + "\r\n" + s + "\r\n"
}

// post asks for a whole answer.
func post(ctx context.Context, c *Client, route *Route, body []byte) (*Reply, error) {
	return c.Post(ctx, route, Request{Endpoint: ChatCompletions, Body: body})
}

// openEvents asks for a stream.
func openEvents(ctx context.Context, c *Client, route *Route, body []byte) (*EventStream, error) {
	return c.Open(ctx, route, Request{Endpoint: ChatCompletions, Body: body})
}

// drain reads a stream to its end: that is [DONE], the end of its body, or silence after a finish_reason.
func drain(e *EventStream) (events []string, err error) {
	next := e.Next
	for {
		_, data, err := next()
		switch {
		case err == io.EOF:
			return events, nil
		case err != nil:
			return events, err
		case IsDone(data):
			return events, e.End(nil)
		case bytes.Contains(data, []byte(`"finish_reason":"stop"`)):
			next = e.NextIfAny
		}
		events = append(events, string(data))
	}
}

// stream asks for a stream and reads it to its end.
func stream(t testing.TB, d Definition) ([]string, error) {
	t.Helper()
	return streamBy(t, newClient(t, Options{}), d)
}

func streamBy(t testing.TB, c *Client, d Definition) ([]string, error) {
	t.Helper()
	e, err := openEvents(context.Background(), c, routeTo(t, d), []byte(`{}`))
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return drain(e)
}

func complete(t testing.TB, d Definition) (*Reply, error) {
	t.Helper()
	return post(context.Background(), newClient(t, Options{}), routeTo(t, d), []byte(`{}`))
}

// offline reads the bytes of a stream as from a connection, cut as reads say.
func offline(from io.Reader) *EventStream {
	d := Defaults()
	a := &exchange{}
	a.begin(context.Background(), deadline.NewAlarms(), time.Hour)
	a.body = boundedBody{ReadCloser: io.NopCloser(from), timeouts: &a.phaseTimer, idle: patient, remaining: d.MaxStream}
	return &EventStream{
		upstream:  "sample",
		exchange:  a,
		scanner:   sse.Reader{Source: &a.body, MaxBytes: d.MaxEvent, Last: IsDone},
		remaining: d.MaxEvents,
	}
}

func mustContain(t testing.TB, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("%q is not in: %v", part, err)
	}
}

// quiet takes what servers say of clients that leave.
var quiet = log.New(io.Discard, "", 0)
