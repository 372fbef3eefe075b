package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/tool"
)

// scripted says what a recorded server replies, by method. The first request of a method
// gets the first reply, and so on; the last reply repeats. A reply is one of
//
//	hang, close, accept, stream   nothing; the end; 202; a stream without events
//	status N                      a status of HTTP
//	result JSON, error JSON       a response; ID in it is the id of the request
//	line TEXT                     the text, with ID alike
//
// or several lines of the last three kinds, which over HTTP are events of a stream. A
// method without replies is accepted.
type scripted struct {
	Replies map[string][]string
	Session string // of initialize, over HTTP
	next    map[string]int
}

// reply returns the lines that answer the next request of a method.
func (s *scripted) reply(method, id string) []string {
	all := s.Replies[method]
	if len(all) == 0 {
		return []string{"accept"}
	}
	if s.next == nil {
		s.next = map[string]int{}
	}
	n := s.next[method]
	s.next[method]++
	var lines []string
	for line := range strings.SplitSeq(all[min(n, len(all)-1)], "\n") {
		kind, rest, _ := strings.Cut(line, " ")
		rest = strings.ReplaceAll(rest, "ID", id)
		switch kind {
		case "result", "error":
			line = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"%s":%s}`, id, kind, rest)
		case "line":
			line = rest
		}
		lines = append(lines, line)
	}
	return lines
}

// methodOf returns the method and the id of a message.
func methodOf(message []byte) (method, id string) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.Unmarshal(message, &m)
	if m.Method == "" {
		m.Method = "reply"
	}
	return m.Method, string(m.ID)
}

// recordedConn keeps the bytes that came on a connection.
type recordedConn struct {
	net.Conn
	mu   sync.Mutex
	came bytes.Buffer
}

func (c *recordedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.came.Write(p[:n])
	return n, err
}

// take returns the bytes that came since it was called last.
func (c *recordedConn) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.came.Reset()
	return c.came.String()
}

type recordedListener struct{ net.Listener }

func (l recordedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &recordedConn{Conn: c}, err
}

type connKey struct{}

// recording is what one server is sent, and what the callers are told.
type recording struct {
	*fixture
	t      *testing.T
	server tool.Server
	stdio  bool

	mu      sync.Mutex
	file    string // where a program keeps what it is sent
	read    int    // bytes of the file that were read
	count   int
	text    strings.Builder
	unasked []string // messages that come at a time of their own
}

// record starts a server, and a client of it.
func record(t *testing.T, s *scripted, stdio, listens bool) *recording {
	r := &recording{t: t, stdio: stdio, server: tool.Server{Name: "s", Type: "mcp", Timeout: patient}}
	var changed func(string, bool)
	if listens {
		changed = func(string, bool) {}
	}
	r.fixture = newFixture(t, engine.Options{ReadSecret: func(context.Context, string) (string, error) { return "token-1", nil }}, changed)
	if stdio {
		r.file = filepath.Join(t.TempDir(), "sent")
		output, _ := json.Marshal(s)
		r.server.Command = program(t, "recorded", r.file, string(output))
		return r
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.serve(s, w, q) }))
	server.Listener = recordedListener{server.Listener}
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, c)
	}
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	r.server.URL, r.server.Addresses, r.server.Credential = server.URL, loopback, tool.Bearer("env:TOKEN")
	return r
}

// serve is the server over HTTP.
func (r *recording) serve(s *scripted, w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return
	}
	method, id := methodOf(body)
	if len(body) == 0 {
		method = q.Method
	}
	r.mu.Lock()
	head, body2, _ := strings.Cut(q.Context().Value(connKey{}).(*recordedConn).take(), "\r\n\r\n")
	if strings.ContainsAny(strings.ReplaceAll(head, "\r\n", ""), "\r\n") || body2 != string(body) {
		r.t.Errorf("a head that is not lines: %q", head)
	}
	r.add(method, strings.ReplaceAll(head, "\r\n", "\n")+"\n\n"+visible(body2))
	lines := s.reply(method, id)
	r.mu.Unlock()
	if method == "initialize" && s.Session != "" {
		w.Header().Set("Mcp-Session-Id", s.Session)
	}
	switch kind, rest, _ := strings.Cut(lines[0], " "); {
	case kind == "hang":
		<-q.Context().Done()
	case kind == "close":
		panic(http.ErrAbortHandler)
	case kind == "accept":
		w.WriteHeader(http.StatusAccepted)
	case kind == "status":
		code, _ := strconv.Atoi(rest)
		w.WriteHeader(code)
	case kind == "stream" || len(lines) > 1:
		w.Header().Set("Content-Type", "text/event-stream")
		for _, line := range lines {
			if line != "stream" {
				fmt.Fprintf(w, "data: %s\n\n", line)
			}
			w.(http.Flusher).Flush()
		}
		if kind == "stream" {
			<-q.Context().Done()
		}
	default:
		raw(w, lines[0])
	}
}

// serveRecorded is the server that is a program.
func serveRecorded(file, output string) int {
	var s scripted
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil || json.Unmarshal([]byte(output), &s) != nil {
		return 1
	}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return 0
		}
		if _, err := f.Write(line); err != nil {
			return 1
		}
		for _, reply := range s.reply(methodOf(line)) {
			switch reply {
			case "close":
				return 0
			case "hang", "accept", "stream":
			default:
				fmt.Println(reply)
			}
		}
	}
}

// visible is a text as it is, or quoted if it holds control characters.
func visible(s string) string {
	if strings.ContainsFunc(s, func(c rune) bool { return c < ' ' }) {
		return strconv.Quote(s)
	}
	return s
}

// The parts of a recording that differ from run to run.
var (
	progressToken = regexp.MustCompile(`(progressToken\\?":\\?")[A-Z2-7]{26}`)
	serverHost    = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)
)

// add records a message. The recording must be locked.
func (r *recording) add(method, raw string) {
	raw = progressToken.ReplaceAllString(serverHost.ReplaceAllString(raw, "HOST"), "${1}TOKEN")
	r.count++
	switch {
	case method == "GET", method == "DELETE", method == "subscriptions/listen", method == "notifications/cancelled", method == "reply", strings.Contains(raw, `"id":"alive"`):
		r.unasked = append(r.unasked, raw)
		return
	}
	fmt.Fprintf(&r.text, "== %s\n%s\n", method, raw)
}

// drain records what a program has been sent meanwhile. The recording must be locked.
func (r *recording) drain() {
	if !r.stdio {
		return
	}
	all, _ := os.ReadFile(r.file)
	for {
		line, _, whole := strings.Cut(string(all[r.read:]), "\n")
		if !whole {
			return
		}
		r.read += len(line) + 1
		method, _ := methodOf([]byte(line))
		r.add(method, visible(line))
	}
}

// until waits until a number of messages has come.
func (r *recording) until(n int) {
	r.t.Helper()
	eventually(r.t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.drain()
		return r.count >= n
	})
}

// note records what a caller is told.
func (r *recording) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drain()
	line := serverHost.ReplaceAllString(fmt.Sprintf(format, args...), "HOST")
	line = strings.ReplaceAll(line, os.Args[0], "PROGRAM")
	fmt.Fprintf(&r.text, "-- %s\n", line)
}

// list asks for the tools of the server.
func (r *recording) list() {
	found, err := r.Discover(r.t.Context(), r.server)
	var names []string
	for _, d := range found {
		names = append(names, d.Name)
	}
	r.note("tools: %q, %v", names, err)
}

// call calls a tool, as it is changed.
func (r *recording) call(change func(c *tool.Call)) {
	r.callWith(r.t.Context(), change)
}

func (r *recording) callWith(ctx context.Context, change func(c *tool.Call)) {
	c := call(r.server.URL, "echo", "once")
	c.Run.Command, c.Run.Addresses, c.Run.Credential = r.server.Command, r.server.Addresses, r.server.Credential
	if change != nil {
		change(&c)
	}
	result, err := r.Run(ctx, c)
	if code := code(r.t, err); code != "" {
		r.note("%s after %d attempts: %v", code, result.Attempts, err)
		return
	}
	r.note("%s after %d attempts", result.Body, result.Attempts)
}

// end closes the client, and returns the recording.
func (r *recording) end() string {
	r.client.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drain()
	slices.Sort(r.unasked)
	for _, message := range r.unasked {
		fmt.Fprintf(&r.text, "== at any time\n%s\n", message)
	}
	return r.text.String()
}
