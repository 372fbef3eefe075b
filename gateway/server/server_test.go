package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/testkit/leaks"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/telemetry"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	leaks.Main(m)
}

// refuseAs writes refusals with a word before them, so that tests can tell whose
// they are.
func refuseAs(term string) func(*gin.Context, *refusal.Error) {
	return func(c *gin.Context, refused *refusal.Error) {
		server.LogRefusal(c, refused)
		server.RefusalHeaders(c, refused)
		c.String(refused.Status(), "%s %s: %s", term, refused.Code, refused.Message)
		c.Abort()
	}
}

// echo answers with what it was asked.
func echo(c *gin.Context, a server.Request) {
	c.Header("Seen-Trace", a.TraceID)
	c.Header("Seen-Caller", a.CallerAddress)
	c.Header("Seen-Credential", a.Credential)
	c.String(http.StatusOK, "%s/%s/%s %s %s %q %s %s", a.Agent, a.Workspace, a.Project, a.ID, a.Thread, a.Body, a.Media, c.GetHeader("Callgate-Mode"))
}

func fixed(n int) func() int { return func() int { return n } }

// byWord identifies everybody by the credential as it stands, or else the address, but
// for one who is not known.
func byWord(_ context.Context, r *gateway.Request) (string, error) {
	switch r.Credential {
	case "unknown":
		return "", refusal.New(refusal.Unauthenticated, "This needs a credential that is known here.")
	case "":
		return r.CallerAddress, nil
	}
	return r.Credential, nil
}

// serverOf is a server with a route of each kind.
func serverOf(log io.Writer, change func(*server.Options), more ...server.Route) *server.Server {
	o := server.Options{Metrics: telemetry.New(), Log: slog.New(slog.NewJSONHandler(log, nil)), Refuse: refuseAs("door"), Identify: byWord}
	if change != nil {
		change(&o)
	}
	d := server.New(o)
	for _, r := range append(more,
		server.Route{Method: http.MethodPost, Path: "/talk", Serve: echo, MaxBody: fixed(200_000), Refuse: refuseAs("talk"), ExtraHeaders: []string{"Callgate-Mode"}},
		server.Route{Method: http.MethodPost, Path: "/say", Serve: echo, MaxBody: fixed(10), MediaTypes: []string{"text/plain"}, ExpectedMedia: "text/plain, as it is"},
		server.Route{Method: http.MethodGet, Path: "/look/:id", Serve: echo},
	) {
		d.Mount(r)
	}
	return d
}

func ask(d http.Handler, method, path string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, body)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

func TestRoutes(t *testing.T) {
	d := serverOf(io.Discard, nil)
	const jsonType, text = "application/json", "text/plain"
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		answer             string
	}{
		"a body": {"POST", "/talk", "hi", []string{"Content-Type", "application/json; charset=UTF-8", "Callgate-Agent", "A", "Callgate-Workspace", "w", "Callgate-Project", "p", "Callgate-Id", "1", "Callgate-Thread", "t", "Callgate-Mode", "m", "Callgate-User", "u"},
			200, `A/w/p 1 t "hi" application/json m`},
		"UTF-8 by another name":     {"POST", "/say", "hi", []string{"Content-Type", `text/plain; charset="Utf8"`}, 200, `"hi"`},
		"no body is read":           {"GET", "/look/1", "hi", nil, 200, `//   ""`},
		"no such path":              {"GET", "/nothing", "", nil, 404, "door not_found"},
		"a slash too many":          {"POST", "/talk/", "", nil, 404, "door not_found"},
		"an encoded path":           {"POST", "/t%61lk", "", nil, 404, "talk not_found"},
		"a wrong method":            {"PUT", "/talk", "", nil, 405, "talk method_not_allowed"},
		"that, elsewhere":           {"PUT", "/say", "", nil, 405, "door method_not_allowed"},
		"that, with a name":         {"PUT", "/look/1", "", nil, 405, "door method_not_allowed"},
		"a query":                   {"POST", "/talk?x", "hi", []string{"Content-Type", jsonType}, 400, "talk bad_request: The path has a query"},
		"a header of another route": {"POST", "/say", "hi", []string{"Content-Type", text, "Callgate-Mode", "m"}, 400, "door bad_request: There is a header"},
		"a misspelt header":         {"GET", "/look/1", "", []string{"Callgate-Agnet", "A"}, 400, "expected one of Callgate-Agent, Callgate-Workspace, Callgate-Project, Callgate-Id, Callgate-Thread, Callgate-Thread-Ancestors, Callgate-User."},
		"a header with underscores": {"GET", "/look/1", "", []string{"Callgate_Agent", "A"}, 400, "door bad_request: There is a header Callgate-... that means nothing here"},
		"mixed, in any case":        {"GET", "/look/1", "", []string{"callgate_Call-id", "A"}, 400, "door bad_request: There is a header Callgate-"},
		"a key with an underscore":  {"GET", "/look/1", "", []string{"Idempotency_Key", "A"}, 400, "door bad_request: There is a header Idempotency_key; expected Idempotency-Key."},
		"another's underscore":      {"GET", "/look/1", "", []string{"X_Callgate_Agent", "A"}, 200, "//"},
		"a header twice":            {"POST", "/talk", "hi", []string{"Content-Type", jsonType, "Callgate-Mode", "m", "Callgate-Mode", "m"}, 400, "The header Callgate-Mode stands more than once"},
		"who, twice":                {"GET", "/look/1", "", []string{"Callgate-Agent", "A", "Callgate-Agent", "A"}, 400, "The header Callgate-Agent stands more than once"},
		"credentials twice":         {"GET", "/look/1", "", []string{"Authorization", "Bearer a", "Authorization", "Bearer a"}, 400, "The header Authorization stands more than once"},
		"another credential":        {"GET", "/look/1", "", []string{"Authorization", "Basic a"}, 401, "door unauthenticated"},
		"a header of other bytes":   {"GET", "/look/1", "", []string{"Callgate-Agent", "\xff"}, 400, "The header Callgate-Agent is not UTF-8"},
		"a header that is long":     {"POST", "/talk", "hi", []string{"Content-Type", jsonType, "Callgate-Mode", strings.Repeat("m", 1025)}, 400, "The header Callgate-Mode is not UTF-8, or longer than 1024 bytes."},
		"what we answer with":       {"GET", "/look/1", "", []string{"Callgate-Call-Id", "call_1"}, 200, ""},
		"no type":                   {"POST", "/talk", "hi", nil, 415, "talk unsupported_media_type: The Content-Type must be application/json, in UTF-8."},
		"another type":              {"POST", "/talk", "hi", []string{"Content-Type", text}, 415, "talk unsupported_media_type"},
		"that, elsewhere again":     {"POST", "/say", "hi", []string{"Content-Type", jsonType}, 415, "The Content-Type must be text/plain, as it is, in UTF-8."},
		"another charset":           {"POST", "/say", "hi", []string{"Content-Type", "text/plain; charset=latin1"}, 415, "door unsupported_media_type"},
		"encoded":                   {"POST", "/say", "hi", []string{"Content-Type", text, "Content-Encoding", "gzip"}, 415, "The Content-Encoding must be identity."},
		"as long as may be":         {"POST", "/say", "0123456789", []string{"Content-Type", text}, 200, `"0123456789"`},
		"too long":                  {"POST", "/say", "0123456789x", []string{"Content-Type", text}, 413, "door request_too_large: The body is longer than 10 bytes."},
	} {
		w := ask(d, c.method, c.path, strings.NewReader(c.body), c.headers...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.answer) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if closes := w.Header().Get("Connection") == "close"; closes != (name == "too long") {
			t.Errorf("%s: the answer has the header Connection: %q", name, w.Header().Get("Connection"))
		}
	}
	// A length that is not stated is counted.
	long := struct{ io.Reader }{strings.NewReader("0123456789x")}
	if w := ask(d, "POST", "/say", long, "Content-Type", text); w.Code != 413 {
		t.Errorf("too long, of no stated length: %d %s", w.Code, w.Body)
	}
	r := httptest.NewRequest("POST", "/say", strings.NewReader("hi"))
	r.Header.Set("Content-Type", text)
	r.TransferEncoding = []string{"chunked"}
	w := httptest.NewRecorder()
	if d.ServeHTTP(w, r); w.Code != 200 || w.Header().Get("Connection") != "close" {
		t.Errorf("in chunks: %d %v", w.Code, w.Header())
	}
}

// TestOpenRoutesAdmitFirst: who is not admitted where nobody need say who asks is told
// that alone, whatever is wrong with the head; elsewhere a wrong head comes first.
func TestOpenRoutesAdmitFirst(t *testing.T) {
	admit := func(c *gin.Context) *refusal.Error {
		if c.Param("name") == "good" {
			return nil
		}
		return refusal.New(refusal.NotFound, "Nobody is here.")
	}
	d := serverOf(io.Discard, nil,
		server.Route{Method: http.MethodPost, Path: "/open/:name", Public: true, Admit: admit, MaxBody: fixed(10), Serve: echo},
		server.Route{Method: http.MethodPost, Path: "/other/:name", Admit: admit, MaxBody: fixed(10), Serve: echo})
	for path, headers := range map[string][]string{
		"?x=1": nil, "": {"Callgate-Agnet", "A"}, "?": {"Callgate-Thread", "a", "Callgate-Thread", "b"}, "?y": {"Callgate-Agent", "\xff"},
	} {
		if w := ask(d, "POST", "/open/bad"+path, strings.NewReader("longer than ten"), headers...); w.Code != 404 || !strings.Contains(w.Body.String(), "Nobody is here.") {
			t.Errorf("%q %q: %d %s", path, headers, w.Code, w.Body)
		}
		for _, known := range []string{"/open/good", "/other/bad"} {
			if w := ask(d, "POST", known+path, strings.NewReader("hi"), append(headers, "Content-Type", "application/json")...); w.Code != 400 {
				t.Errorf("%s%s %q: %d %s", known, path, headers, w.Code, w.Body)
			}
		}
	}
	if w := ask(d, "POST", "/open/good", strings.NewReader("hi"), "Content-Type", "application/json", "Authorization", "Basic x"); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestTrace: a good traceparent is continued, any other starts a new trace.
func TestTrace(t *testing.T) {
	var log bytes.Buffer
	d := serverOf(&log, nil)
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	form := regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-0[01]$`)
	seen := map[string]bool{}
	for header, continued := range map[string]bool{
		"00-" + trace + "-" + span + "-01": true, "00-" + trace + "-" + span + "-00": true,
		"": false, "x": false, "00-" + trace + "-" + span: false, "01-" + trace + "-" + span + "-01": false, "ff-" + trace + "-" + span + "-01": false,
		"00-" + strings.ToUpper(trace) + "-" + span + "-01": false, "00-" + strings.Repeat("0", 32) + "-" + span + "-01": false,
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01": false, "00-" + trace + "-" + span + "-01-x": false, " 00-" + trace + "-" + span + "-1": false,
		"00-" + trace[:31] + "g-" + span + "-01": false, strings.Repeat("0", 5000): false,
	} {
		w := ask(d, http.MethodGet, "/look/1", nil, "traceparent", header)
		m := form.FindStringSubmatch(w.Header().Get("Traceparent"))
		if w.Code != 200 || m == nil {
			t.Errorf("%.80q: %d %v", header, w.Code, w.Header())
			continue
		}
		if w.Header().Get("Seen-Trace") != m[1] {
			t.Errorf("%.80q: the face is told of the trace %q", header, w.Header().Get("Seen-Trace"))
		}
		if (m[1] == trace) != continued || m[2] == span || seen[m[2]] {
			t.Errorf("%.80q is continued as %s", header, m[0])
		}
		seen[m[2]] = true
		if !strings.Contains(log.String(), m[1]) {
			t.Errorf("%.80q: the log does not tell the trace %s", header, m[1])
		}
	}
}

// TestCaller: a caller is an address, or an IPv6 network of 64 bits, and what it
// proves itself with.
func TestCaller(t *testing.T) {
	d := serverOf(io.Discard, nil)
	for address, want := range map[string]string{
		"192.0.2.1:1234": "192.0.2.1", "192.0.2.1:4321": "192.0.2.1", "[::ffff:192.0.2.1]:1": "192.0.2.1", "192.0.2.1": "192.0.2.1",
		"[2001:db8::1]:1": "2001:db8::/64", "[2001:db8:0:0:ffff::2]:2": "2001:db8::/64", "[2001:db8:0:1::1]:1": "2001:db8:0:1::/64", "[fe80::1%eth0]:1": "fe80::/64",
		"": "unknown", "@": "unknown",
	} {
		r := httptest.NewRequest(http.MethodGet, "/look/1", nil)
		r.RemoteAddr = address
		r.Header.Set("Authorization", "Bearer secret")
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		if got := w.Header().Get("Seen-Caller"); got != want || w.Header().Get("Seen-Credential") != "secret" {
			t.Errorf("%q is the caller %q with the credential %q; want %q", address, got, w.Header().Get("Seen-Credential"), want)
		}
	}
}

func TestDrain(t *testing.T) {
	d := serverOf(io.Discard, nil)
	ready := func() int { return ask(d, http.MethodGet, "/readyz", nil).Code }
	if ready() != 200 || d.Draining() {
		t.Error("not ready at first")
	}
	d.Drain()
	d.Drain()
	if w := ask(d, http.MethodGet, "/look/1", nil); ready() != 503 || w.Code != 200 || !d.Draining() {
		t.Errorf("while it drains: ready %d, a request %d", ready(), w.Code)
	}
}

// slowBody is a body that says when all but its end was read, and ends when it is
// told to.
type slowBody struct {
	io.Reader
	waits, end chan struct{}
}

func (b *slowBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil {
		close(b.waits)
		<-b.end
	}
	return n, err
}

// TestHeldBodies: bodies that have not ended count among those that are held, so
// memory is bounded however many there are.
func TestHeldBodies(t *testing.T) {
	d := serverOf(io.Discard, func(o *server.Options) { o.MaxBodyBytes = 200_000 })
	say := func(body io.Reader) *httptest.ResponseRecorder {
		return ask(d, http.MethodPost, "/talk", body, "Content-Type", "application/json")
	}
	// Another holds half of it all the while.
	others := &slowBody{Reader: strings.NewReader(strings.Repeat("x", 100_000)), waits: make(chan struct{}), end: make(chan struct{})}
	theirs := make(chan *httptest.ResponseRecorder)
	go func() {
		theirs <- ask(d, http.MethodPost, "/talk", others, "Content-Type", "application/json", "Authorization", "Bearer other")
	}()
	<-others.waits
	defer func() {
		close(others.end)
		if w := <-theirs; w.Code != 200 {
			t.Errorf("the other's: %d %s", w.Code, w.Body)
		}
	}()
	slow := &slowBody{Reader: strings.NewReader(strings.Repeat("x", 90_000)), waits: make(chan struct{}), end: make(chan struct{})}
	answer := make(chan *httptest.ResponseRecorder)
	go func() { answer <- say(slow) }()
	<-slow.waits
	if w := say(strings.NewReader(strings.Repeat("x", 50_000))); w.Code != 503 || !strings.HasPrefix(w.Body.String(), "talk overloaded") || w.Header().Get("Retry-After") == "" || w.Header().Get("Connection") != "close" {
		t.Errorf("beyond what may be held: %d %s", w.Code, w.Body)
	}
	if w := say(strings.NewReader(strings.Repeat("x", 5_000))); w.Code != 200 {
		t.Errorf("within it: %d %s", w.Code, w.Body)
	}
	close(slow.end)
	if w := <-answer; w.Code != 200 {
		t.Errorf("the long one: %d %s", w.Code, w.Body)
	}
	for range 5 { // what was answered is held no longer
		if w := say(strings.NewReader(strings.Repeat("x", 60_000))); w.Code != 200 {
			t.Errorf("then: %d %s", w.Code, w.Body)
		}
	}
}

// TestInFlight: what is beyond the bound is refused, and health is not.
func TestInFlight(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	d := serverOf(io.Discard, func(o *server.Options) { o.MaxInFlight = 1 }, server.Route{Method: http.MethodGet, Path: "/wait", Serve: func(*gin.Context, server.Request) {
		inside <- struct{}{}
		<-leave
	}})
	done := make(chan int)
	go func() { done <- ask(d, http.MethodGet, "/wait", nil).Code }()
	<-inside
	if w := ask(d, http.MethodPost, "/talk", strings.NewReader("hi"), "Content-Type", "application/json"); w.Code != 503 || !strings.HasPrefix(w.Body.String(), "talk overloaded") || w.Header().Get("Retry-After") != "1" {
		t.Errorf("beyond the bound: %d %s", w.Code, w.Body)
	}
	if w := ask(d, http.MethodGet, "/healthz", nil); w.Code != 200 || d.InFlight() != 1 {
		t.Errorf("health is %d while %d are in flight", w.Code, d.InFlight())
	}
	close(leave)
	if code := <-done; code != 200 || d.InFlight() != 0 {
		t.Errorf("then: %d, %d in flight", code, d.InFlight())
	}
}

// TestPanics: what breaks off is a refusal of its face; where its answer had
// begun, the connection is cut, and the log tells neither what it was holding nor
// where it stood.
func TestPanics(t *testing.T) {
	var log bytes.Buffer
	d := serverOf(&log, nil,
		server.Route{Method: http.MethodGet, Path: "/before", Refuse: refuseAs("before"), Serve: func(*gin.Context, server.Request) { panic("secret") }},
		server.Route{Method: http.MethodGet, Path: "/within", Serve: func(c *gin.Context, _ server.Request) {
			c.String(http.StatusOK, "half")
			c.Writer.Flush()
			panic(errors.New("secret"))
		}})
	server := httptest.NewServer(d)
	defer server.Close()
	for range 2 {
		r, err := server.Client().Get(server.URL + "/before")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != 500 || !strings.HasPrefix(string(body), "before internal") || strings.Contains(string(body), "secret") {
			t.Errorf("before the answer: %d %s %v", r.StatusCode, body, err)
		}
		r, err = server.Client().Get(server.URL + "/within")
		if err != nil {
			t.Fatal(err)
		}
		body, err = io.ReadAll(r.Body)
		r.Body.Close()
		if !errors.Is(err, io.ErrUnexpectedEOF) || string(body) != "half" {
			t.Errorf("within the answer: %q %v", body, err)
		}
	}
	server.Close() // every line is written
	if lines := log.String(); d.InFlight() != 0 || strings.Count(lines, `"code":"internal"`) != 4 || strings.Count(lines, `"level":"ERROR"`) != 4 || strings.Contains(lines, "secret") || strings.Contains(lines, ".go:") {
		t.Errorf("%d in flight; the log: %s", d.InFlight(), lines)
	}
}

// TestBodyTime: a body that drips is refused in time, and the time of a body is
// not that of its answer.
func TestBodyTime(t *testing.T) {
	for long := 250 * time.Millisecond; !bodyTime(t, long); long *= 2 {
		if long > time.Minute {
			t.Fatal("a body of two bytes does not arrive in time")
		}
	}
}

// bodyTime returns false where everything is so slow that a body which was sent at
// once has not arrived in time.
func bodyTime(t *testing.T, bodyTime time.Duration) bool {
	left := make(chan bool, 1)
	d := serverOf(io.Discard, func(o *server.Options) { o.BodyTimeout = bodyTime }, server.Route{Method: http.MethodPost, Path: "/long", MaxBody: fixed(100), Serve: func(c *gin.Context, _ server.Request) {
		select {
		case <-c.Request.Context().Done():
			left <- true
		case <-time.After(bodyTime + bodyTime/5):
			left <- false
		}
	}})
	server := httptest.NewServer(d)
	defer server.Close()
	type answer struct {
		status int
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		r, err := server.Client().Post(server.URL+"/long", "application/json", strings.NewReader("hi"))
		if err != nil {
			answered <- answer{err: err}
			return
		}
		r.Body.Close()
		answered <- answer{status: r.StatusCode}
	}()
	in, out := io.Pipe()
	defer out.Close()
	r, err := server.Client().Post(server.URL+"/talk", "application/json", in)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(r.Body)
	r.Body.Close()
	if r.StatusCode != 400 || !strings.Contains(string(body), "did not arrive in time") {
		t.Errorf("a body that does not end: %d %s", r.StatusCode, body)
	}
	long := <-answered
	if long.status == http.StatusBadRequest {
		return false
	}
	if long.err != nil || <-left {
		t.Errorf("an answer that takes longer than a body may was taken for one that nobody waits for: %d %v", long.status, long.err)
	}
	return true
}

// TestLine: a request has one line, with its refusal and without its words.
func TestLine(t *testing.T) {
	for name, c := range map[string]struct {
		method, path string
		refused      *refusal.Error
		want         []string
	}{
		"no route": {"SECRET", "/secret", nil, []string{`"level":"INFO","msg":"request","method":"other","route":"none","status":404`, `"code":"not_found"`}},
		"fine":     {"GET", "/x", nil, []string{`"level":"INFO","msg":"request","method":"GET","route":"/x","status":200`, `"call_id":"call_1"`}},
		"refused":  {"GET", "/x", refusal.New(refusal.BadRequest, "secret"), []string{`"level":"INFO"`, `"stage":"request","code":"bad_request"`}},
		"broken":   {"GET", "/x", refusal.New(refusal.UpstreamUnavailable, "secret").WithCause(errors.New("the cause")), []string{`"level":"ERROR"`, `"status":200`, `"code":"upstream_unavailable","cause":"the cause"`}},
	} {
		var log bytes.Buffer
		d := serverOf(&log, nil, server.Route{Method: http.MethodGet, Path: "/x", Serve: func(g *gin.Context, _ server.Request) {
			g.Header(server.HeaderCallID, "call_1")
			g.String(http.StatusOK, "streamed")
			server.LogRefusal(g, c.refused)
		}})
		ask(d, c.method, c.path, nil)
		line := log.String()
		for _, want := range c.want {
			if !strings.Contains(line, want) {
				t.Errorf("%s: %s", name, line)
			}
		}
		if strings.Count(line, "\n") != 1 || strings.Contains(strings.ToLower(line), "secret") {
			t.Errorf("%s: %s", name, line)
		}
	}
}
