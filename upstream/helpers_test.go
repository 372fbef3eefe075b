package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/deadline"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/internal/testkit/leaks"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream/chat"
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
	// secondEvent begins another choice.
	secondEvent = "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"hi\"}}]}\n\n"
	endEvent    = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	doneEvent   = "data: [DONE]\n\n"
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

// kept is a chunk that outlives the next one.
func kept(c *chat.Chunk) *chat.Chunk {
	k := *c
	k.Choices, k.Extra = slices.Clone(c.Choices), slices.Clone(c.Extra)
	for i := range k.Choices {
		if text := k.Choices[i].Delta.Content; text != nil {
			output := *text
			k.Choices[i].Delta.Content = &output
		}
	}
	return &k
}

// drain reads a stream to its end.
func drain(e *Events) (chunks []*chat.Chunk, completion *chat.Completion, err error) {
	var a Assembler
	for {
		chunk, err := e.Next()
		if err == io.EOF {
			completion, err = a.Complete()
			return chunks, completion, err
		}
		if err != nil {
			return chunks, nil, err
		}
		chunks = append(chunks, kept(chunk))
		if err := a.Add(chunk); err != nil {
			return chunks, nil, err
		}
	}
}

// stream asks for a stream and reads it to its end.
func stream(t testing.TB, d Definition) ([]*chat.Chunk, *chat.Completion, error) {
	t.Helper()
	return streamBy(t, newClient(t, Options{}), d)
}

func streamBy(t testing.TB, c *Client, d Definition) ([]*chat.Chunk, *chat.Completion, error) {
	t.Helper()
	e, err := c.Stream(context.Background(), routeTo(t, d), []byte(`{}`))
	if err != nil {
		return nil, nil, err
	}
	defer e.Close()
	return drain(e)
}

func complete(t testing.TB, d Definition) (*chat.Completion, error) {
	t.Helper()
	return newClient(t, Options{}).Complete(context.Background(), routeTo(t, d), []byte(`{}`))
}

// offline reads the bytes of a stream as from a connection, cut as reads say.
func offline(from io.Reader) *Events {
	d := Defaults()
	b := &boundedBody{ReadCloser: io.NopCloser(from), timeouts: newPhaseTimer(context.Background(), deadline.NewAlarms(), time.Hour), idle: patient, remaining: d.MaxStream}
	return &Events{reader: &chat.Reader{}, stream: &EventStream{
		upstream:  "sample",
		response:  &response{timeouts: b.timeouts, body: b},
		scanner:   sse.Reader{Source: b, MaxBytes: d.MaxEvent, Last: isDone},
		remaining: d.MaxEvents,
	}}
}

func mustContain(t testing.TB, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("%q is not in: %v", part, err)
	}
}

// quiet takes what servers say of clients that leave.
var quiet = log.New(io.Discard, "", 0)

// scanned are the events of a stream.
func scanned(from io.Reader) (all []string) {
	r := sse.Reader{Source: from, MaxBytes: 1 << 20, Last: isDone}
	for {
		name, data, err := r.Next()
		if err != nil {
			return append(all, err.Error())
		}
		all = append(all, fmt.Sprintf("%s=%s", name, data))
	}
}

// pieces reads in the lengths of a list, the rest at once.
type pieces struct {
	b   []byte
	cut []int
}

func (p *pieces) Read(into []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := len(p.b)
	if len(p.cut) > 0 {
		n, p.cut = min(n, p.cut[0]), p.cut[1:]
	}
	n = copy(into, p.b[:n])
	p.b = p.b[n:]
	return n, nil
}
