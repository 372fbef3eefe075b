package capture

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// patience is how long something is waited for that will happen.
const patience = time.Minute

// captured is a proxy before an upstream, until the test stops it.
type captured struct {
	t      *testing.T
	url    string
	folder string
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	lines []string
	sum   Summary
	err   error
}

func start(t *testing.T, upstream string, change func(*Options)) *captured {
	t.Helper()
	u, err := CheckUpstream(upstream, false)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := &captured{t: t, url: "http://" + listener.Addr().String(), folder: t.TempDir(), cancel: cancel, done: make(chan struct{})}
	o := Options{Upstream: u, Folder: c.folder, Log: func(line string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.lines = append(c.lines, line)
	}}
	if change != nil {
		change(&o)
	}
	go func() {
		defer close(c.done)
		c.sum, c.err = Serve(ctx, listener, o)
	}()
	t.Cleanup(func() { c.stop() })
	return c
}

// stop ends the proxy and returns its summary.
func (c *captured) stop() Summary {
	c.cancel()
	return c.wait()
}

// wait waits for the end of the proxy.
func (c *captured) wait() Summary {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(patience):
		c.t.Fatal("the proxy does not end")
	}
	if c.err != nil {
		c.t.Error(c.err)
	}
	return c.sum
}

// log is what the proxy said.
func (c *captured) log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.lines, "\n")
}

// file is a file of the folder.
func (c *captured) file(name string) string {
	c.t.Helper()
	path := filepath.Join(c.folder, name)
	info, err := os.Stat(path)
	if err != nil {
		c.t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		c.t.Errorf("%s has the mode %v", name, info.Mode())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(data)
}

// client has connections of its own, so that none is left behind.
func client(t *testing.T) *http.Client {
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// post sends a body and reads the answer.
func (c *captured) post(path, body string, header ...string) (status int, answer string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	response, err := client(c.t).Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, string(data)
}

// upstream is a server that answers by a function.
func upstream(t *testing.T, serve http.HandlerFunc) string {
	s := httptest.NewServer(serve)
	t.Cleanup(s.Close)
	return s.URL
}

func discard(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, "ok")
}

const chatTool = `{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}`

// TestPassesUnchanged: the upstream gets what the application sent, the application what the upstream did.
func TestPassesUnchanged(t *testing.T) {
	arrived := make(chan string, 1)
	c := start(t, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		arrived <- fmt.Sprintf("%s %s %s %s %q %q %v %s", r.Method, r.RequestURI, r.Header.Get("Authorization"), r.Header.Get("X-Forwarded-For"),
			r.Header.Get("User-Agent"), r.Header.Get("Accept-Encoding"), r.TransferEncoding, body)
		w.Header().Set("X-Request-Id", "r1")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusTeapot)
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, "answer")
		_ = z.Close()
	})+"/base", nil)
	body := ` {"model":"m", "tools":[` + chatTool + `]}`
	status, answer := c.post("/v1/chat/completions?a=1;b=%20&a=2", body, "Authorization", "Bearer sk-secret-1234", "X-Forwarded-For", "10.0.0.1", "User-Agent", "app/1", "Accept-Encoding", "gzip, zstd")
	if got, want := <-arrived, `POST /base/v1/chat/completions?a=1;b=%20&a=2 Bearer sk-secret-1234 10.0.0.1 "app/1" "gzip, zstd" [] `+body; got != want {
		t.Errorf("arrived  %s\nexpected %s", got, want)
	}
	z, err := gzip.NewReader(strings.NewReader(answer))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != "answer" || status != http.StatusTeapot {
		t.Errorf("answer %q of status %d, %v", text, status, err)
	}
	s := c.stop()
	if s.Requests != 1 || s.Skipped != 0 || len(s.Files) != 1 || s.Files[0].Tools != 1 || s.BodyFiles != 0 {
		t.Errorf("the summary is %+v", s)
	}
	if got := c.file("openai.json"); got != "{\"tools\":[\n"+chatTool+"\n]}\n" {
		t.Errorf("recorded %s", got)
	}
	if entries, err := os.ReadDir(c.folder); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// TestStreams: each piece of a stream arrives before the next is sent.
func TestStreams(t *testing.T) {
	next := make(chan struct{})
	c := start(t, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 5 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	}), nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/v1/messages", strings.NewReader(`{"tools":[{"name":"a","input_schema":{"type":"object"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for i := range 5 {
		if !lines.Scan() || lines.Text() != fmt.Sprintf("data: %d", i) || !lines.Scan() {
			t.Fatalf("piece %d is %q, %v", i, lines.Text(), lines.Err())
		}
		next <- struct{}{}
	}
	if lines.Scan() {
		t.Errorf("found %q after the end", lines.Text())
	}
	if s := c.stop(); len(s.Files) != 1 || s.Files[0].API != "anthropic" {
		t.Errorf("the summary is %+v", s)
	}
}

// TestCancelledClient: the upstream learns that the client has gone, and the request is recorded nevertheless.
func TestCancelledClient(t *testing.T) {
	gone := make(chan struct{})
	c := start(t, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	}), func(o *Options) { o.Requests = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/v1/responses", strings.NewReader(`{"stream":true,"tools":[{"type":"function","name":"a"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := response.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-gone:
	case <-time.After(patience):
		t.Fatal("the upstream does not learn that the client has gone")
	}
	if s := c.wait(); s.Requests != 1 || len(s.Files) != 1 {
		t.Errorf("the summary is %+v; the log is %s", s, c.log())
	}
}

// TestLargeBodies: what is too large to be recorded passes all the same.
func TestLargeBodies(t *testing.T) {
	digests := make(chan string, 1)
	c := start(t, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		n, _ := io.Copy(h, r.Body)
		digests <- fmt.Sprintf("%d %x", n, h.Sum(nil))
	}), nil)
	for _, size := range []int{5 << 20, maxBody + 1<<20} {
		body := `{"messages":"` + strings.Repeat("x", size) + `","tools":[` + chatTool + `]}`
		for _, reader := range []io.Reader{strings.NewReader(body), io.MultiReader(strings.NewReader(body))} { // the second is chunked
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/chat/completions", reader)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client(t).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if got, want := <-digests, fmt.Sprintf("%d %x", len(body), sha256.Sum256([]byte(body))); got != want {
				t.Errorf("arrived %s; expected %s", got, want)
			}
		}
	}
	if s := c.stop(); s.Requests != 4 || s.Skipped != 2 {
		t.Errorf("the summary is %+v", s)
	}
	if strings.Count(c.log(), "its body is larger than 16 MiB") != 2 {
		t.Errorf("the log is %s", c.log())
	}
}

// TestRecords: equal definitions are recorded once, others of the same name as conflicts, credentials never.
func TestRecords(t *testing.T) {
	c := start(t, upstream(t, discard), func(o *Options) { o.Bodies = true })
	secret := []string{"Authorization", "Bearer sk-secret-1234"}
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	fmt.Fprint(z, `{"tools":[{"type":"function","function":{"name":"zipped"}}]}`)
	_ = z.Close()
	for _, r := range []struct {
		path, body string
		header     []string
	}{
		{path: "/v1/chat/completions", body: `{"tools":[` + chatTool + `]}`, header: secret},
		{path: "/v1/chat/completions", body: `{"tools":[{"function":{"parameters":{"properties":{"city":{"type":"string"}},"type":"object"},"name":"get_weather"},"type":"function"}]}`},
		{path: "/v1/chat/completions", body: `{"tools":[{"type":"function","function":{"name":"get_weather"}}]}`},
		{path: "/v1/chat/completions", body: compressed.String(), header: []string{"Content-Encoding", "gzip"}},
		{path: "/v1/chat/completions", body: `{"messages":[]}`},
		{path: "/v1/responses", body: `{"tools":[{"type":"mcp","server_label":"gh","server_url":"https://u:p@x.example","authorization":"tok-secret","headers":{"A":"hdr-secret"}},{"type":"web_search"},{"type":"remote","name":"far","authorization":"tok-secret","headers":{"A":"hdr-secret"}}],
			"input":[{"type":"additional_tools","tools":[{"type":"function","name":"late"}]},{"role":"user","content":"hi"}]}`},
		{path: "/v1/messages", body: `{"mcp_servers":[{"authorization_token":"tok-secret"}],"tools":[{"name":"a","input_schema":{"type":"object"}}]}`, header: []string{"X-Api-Key", "sk-ant-secret"}},
	} {
		if status, answer := c.post(r.path, r.body, r.header...); status != http.StatusOK || answer != "ok" {
			t.Errorf("%s: %d %s", r.body, status, answer)
		}
	}
	for body, why := range map[string]string{
		`{"messages":"my key is sk-secret-\u00312\u00334","tools":[]}`: "its body holds a credential of its headers or its URL",
		`{"tools":`:     "its body is no strict JSON object",
		`{"tools":{}}`:  "its tools are no list",
		`{"tools":[7]}`: "one of its tools is no object",
		`[1]`:           "its body is no strict JSON object",
	} {
		c.post("/v1/chat/completions", body, secret...)
		if !strings.Contains(c.log(), why) {
			t.Errorf("%s: %q is not in the log:\n%s", body, why, c.log())
		}
	}
	for _, from := range [][]string{
		{"/v1/chat/completions", "Api-Key", "own-secret-1"}, {"/v1/chat/completions", "X-Company-Token", "own-secret-1"},
		{"/v1/chat/completions", "Cookie", "a=b; session=own-secret-1"}, {"/v1/chat/completions?api_key=own-secret-1"},
	} {
		c.post(from[0], `{"messages":"own-secret-1","tools":[]}`, from[1:]...)
	}
	c.post("/v1/chat/completions", "x", "Content-Encoding", "gzip")
	c.post("/v1/chat/completions", "x", "Content-Encoding", "zstd")
	for _, why := range []string{"is not gzip", "compressed by something else"} {
		if !strings.Contains(c.log(), why) {
			t.Errorf("%q is not in the log", why)
		}
	}
	s := c.stop()
	if len(s.Files) != 3 || s.Files[0].Tools != 2 || s.Files[0].Conflicts != 1 || s.Files[2].Tools != 4 || s.Skipped != 11 || s.BodyFiles != 7 {
		t.Errorf("the summary is %+v", s)
	}
	if got := c.file("openai.json"); !strings.Contains(got, chatTool) || !strings.Contains(got, `"zipped"`) || strings.Count(got, "get_weather") != 1 {
		t.Errorf("openai.json is %s", got)
	}
	if got := c.file("openai.conflicts.json"); got != "{\"tools\":[\n"+`{"type":"function","function":{"name":"get_weather"}}`+"\n]}\n" {
		t.Errorf("openai.conflicts.json is %s", got)
	}
	if got := c.file("responses.json"); !strings.Contains(got, `{"type":"mcp","server_label":"gh"},`) || !strings.Contains(got, `"late"`) {
		t.Errorf("responses.json is %s", got)
	}
	if got := c.file("bodies/0006-responses.json"); !strings.Contains(got, `{"role":"user","content":"hi"}`) {
		t.Errorf("the body is %s", got)
	}
	err := filepath.WalkDir(c.folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, word := range []string{"secret", "u:p@"} {
			if bytes.Contains(data, []byte(word)) {
				t.Errorf("%s has a credential: %s", path, data)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestForeignRequests: pages in a browser make up no tools, and names that lead to this machine are not its own.
func TestForeignRequests(t *testing.T) {
	arrived := make(chan struct{}, 10)
	c := start(t, upstream(t, func(http.ResponseWriter, *http.Request) { arrived <- struct{}{} }), nil)
	for _, r := range []struct {
		name, value string
		status      int
	}{
		{"Origin", "https://evil.example", http.StatusForbidden},
		{"Origin", "null", http.StatusForbidden},
		{"Host", "evil.example:8089", http.StatusForbidden},
		{"Origin", "http://localhost:3000", http.StatusOK},
		{"Host", "LOCALHOST:1", http.StatusOK},
		{"Host", "[::1]", http.StatusOK},
		{"Host", "::1", http.StatusForbidden},
		{"Host", "[localhost]:80", http.StatusForbidden},
		{"Host", "localhost:80:90", http.StatusForbidden},
	} {
		if status, answer := c.post("/v1/chat/completions", `{"tools":[]}`, r.name, r.value); status != r.status {
			t.Errorf("%s: %s is answered %d %s", r.name, r.value, status, answer)
		}
	}
	if len(arrived) != 3 {
		t.Errorf("%d requests arrived; expected 3", len(arrived))
	}
}

// TestUnreachable: an upstream that does not answer is said in the words of its clients.
func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	c := start(t, server.URL, nil)
	status, answer := c.post("/v1/chat/completions", `{"tools":[`+chatTool+`]}`)
	if status != http.StatusBadGateway || !strings.Contains(answer, `"message":"callgate capture: no answer of the upstream: connection refused"`) {
		t.Errorf("answered %d %s", status, answer)
	}
}

// TestRequestsEnd: the proxy ends after the last request that is wanted, and counts those to models alone.
func TestRequestsEnd(t *testing.T) {
	c := start(t, upstream(t, discard), func(o *Options) { o.Requests = 2 })
	for _, path := range []string{"/v1/models", "/v1/embeddings", "/v1/messages", "/v1/messages/count_tokens"} {
		if status, _ := c.post(path, `{"tools":[{"name":"a"}]}`); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
	if s := c.wait(); s.Requests != 2 || len(s.Files) != 1 {
		t.Errorf("the summary is %+v", s)
	}
}

// TestStopsInFlight: a signal ends requests that do not end by themselves.
func TestStopsInFlight(t *testing.T) {
	begun := make(chan struct{})
	c := start(t, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		close(begun)
		<-r.Context().Done()
	}), func(o *Options) { o.stopTimeout = time.Millisecond })
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/v1/messages", strings.NewReader(`{"tools":[{"name":"a"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	<-begun
	if s := c.stop(); s.Requests != 1 || len(s.Files) != 1 {
		t.Errorf("the summary is %+v", s)
	}
}

func TestCheckUpstream(t *testing.T) {
	for text, ok := range map[string]bool{
		"https://api.example": true, "https://api.example/v1": true, "http://127.0.0.1:1": true, "http://localhost:1/v1": true,
		"http://api.example": false, "api.example": false, "ftp://x": false, "https://u:p@x": false, "https://x?k=1": false, "": false,
	} {
		if _, err := CheckUpstream(text, false); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	if u, err := CheckUpstream("http://api.example", true); err != nil || u.Host != "api.example" {
		t.Errorf("insecure: %v, %v", u, err)
	}
}

// TestMemory: the copies of bodies are bounded together, and given back.
func TestMemory(t *testing.T) {
	var r recorder
	r.memory.Store(maxMemory - 10)
	body := &copiedBody{ReadCloser: io.NopCloser(strings.NewReader(strings.Repeat("x", 20))), memory: &r.memory, length: 20}
	if _, err := io.ReadAll(body); err != nil {
		t.Fatal(err)
	}
	if _, problem := body.take(); problem != "too much is recorded at the same time" {
		t.Errorf("the problem is %q", problem)
	}
	body.release()
	r.memory.Store(0)
	body = &copiedBody{ReadCloser: io.NopCloser(strings.NewReader("12345")), memory: &r.memory, length: -1}
	_, _ = body.Read(make([]byte, 3))
	if _, problem := body.take(); problem != "its body was not read to the end" {
		t.Errorf("the problem is %q", problem)
	}
	_, _ = io.ReadAll(body)
	if body.release(); r.memory.Load() != 0 {
		t.Errorf("%d bytes are still counted", r.memory.Load())
	}
}

// TestTooManyTools: what would grow without end is not recorded.
func TestTooManyTools(t *testing.T) {
	var said []string
	r := newRecorder(Options{Folder: t.TempDir(), Log: func(line string) { said = append(said, line) }})
	r.tools = maxTools
	r.record(&exchange{number: 1, api: "openai"}, []byte(`{"tools":[`+chatTool+`]}`), "")
	if len(said) != 1 || !strings.Contains(said[0], "there are too many tools") {
		t.Errorf("said %q", said)
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add([]byte(`{"tools":[` + chatTool + `,{"type":"mcp","authorization":"x"}],"input":[{"type":"additional_tools","tools":[{}]}]}`))
	f.Add([]byte(`{"tools":[null],"input":""}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := readRequest(data)
		if err != nil {
			return
		}
		again, err := readRequest(r.body)
		if err != nil || len(again.tools) != len(r.tools) {
			t.Fatalf("%s does not read back: %v", r.body, err)
		}
		for i := range r.tools {
			if again.tools[i].canonical != r.tools[i].canonical {
				t.Fatalf("tool %d has changed", i)
			}
		}
	})
}
