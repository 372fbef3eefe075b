package mcp_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/tool"
)

// TestMCH01OneEndpoint also shows MCL02: the older revisions allow 405 for what no
// session is there for.
func TestMCH01OneEndpointMCL02(t *testing.T) {
	h := open(t, plan{})
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut, http.MethodHead, http.MethodOptions} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/mcp", nil))
		if w.Code != http.StatusMethodNotAllowed || !strings.Contains(w.Body.String(), `"code":"method_not_allowed"`) {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
	if r := h.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Accept", "text/event-stream"); r.status != 200 {
		t.Errorf("%d %s", r.status, r.raw)
	}
}

// TestMCH02Origin, which is MCL05 as well: a page that may not ask is refused, and so
// is a name that was led to this machine.
func TestMCH02OriginAndHost(t *testing.T) {
	h := open(t, plan{origins: []string{"https://app.example.com", "http://intern.example:8080"}})
	for _, c := range []struct {
		headers []string
		want    int
	}{
		{nil, 200},
		{[]string{"Origin", "http://127.0.0.1:8080"}, 200},
		{[]string{"Origin", "http://localhost:6274"}, 200},
		{[]string{"Origin", "http://[::1]:8080", "Host", "[::1]:8080"}, 200},
		{[]string{"Origin", "https://app.example.com"}, 200},
		{[]string{"Origin", "https://app.example.com", "Host", "app.example.com"}, 200},
		{[]string{"Host", "localhost"}, 200},
		{[]string{"Host", "intern.example:8080"}, 200},
		{[]string{"Origin", "http://evil.example.com"}, 403},
		{[]string{"Origin", "null"}, 403},
		{[]string{"Origin", ""}, 403},
		{[]string{"Origin", "file://"}, 403},
		{[]string{"Origin", "http://127.0.0.1.evil.example.com"}, 403},
		{[]string{"Origin", "http://localhost.evil.example.com:8080"}, 403},
		{[]string{"Origin", "http://user@localhost"}, 403},
		{[]string{"Origin", "http://localhost/x"}, 403},
		{[]string{"Origin", "HTTP://LOCALHOST"}, 403},
		{[]string{"Origin", "http://127.1"}, 403},
		{[]string{"Origin", "http://2130706433"}, 403},
		{[]string{"Origin", "https://app.example.com.evil.org"}, 403},
		{[]string{"Origin", "http://app.example.com"}, 403},
		{[]string{"Origin", "https://app.example.com:8443"}, 403},
		{[]string{"Origin", "http://localhost, http://evil.example.com"}, 403},
		{[]string{"Origin", "http://localhost", "Origin", "http://evil.example.com"}, 403},
		{[]string{"Host", "evil.example.com"}, 403},
		{[]string{"Host", "evil.example.com:8080", "Origin", "http://127.0.0.1:8080"}, 403},
		{[]string{"Host", "127.0.0.1.evil.example.com"}, 403},
		{[]string{"Host", "127.0.0.1@evil.example.com"}, 403},
		{[]string{"Host", "intern.example"}, 403},
		{[]string{"Host", ""}, 403},
		{[]string{"Host", "10.0.0.1"}, 403},
	} {
		for _, message := range []string{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_now"}}`, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`} {
			before := len(h.ledger.lines())
			r := h.post(t, message, c.headers...)
			if r.status != c.want || c.want == 403 && (r.Error.Code != 403 || r.code() != "bad_request" || len(h.ledger.lines()) != before) {
				t.Errorf("%q: %d %s", c.headers, r.status, r.raw)
			}
		}
	}
}

// TestMCH02Elsewhere: what comes from another machine may have any Host, and no
// Origin but those that are configured.
func TestMCH02Elsewhere(t *testing.T) {
	h := open(t, plan{origins: []string{"https://app.example.com"}})
	for origin, want := range map[string]int{"": 200, "https://app.example.com": 200, "http://localhost:8080": 403, "https://gateway.example.com": 403} {
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		r.Host = "gateway.example.com"
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 8080})))
		r.Header.Set("Content-Type", "application/json")
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%q: %d %s", origin, w.Code, w.Body)
		}
	}
}

func TestMCH03Accept(t *testing.T) {
	h := open(t, plan{})
	send := func(accept ...string) int {
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		r.Header["Content-Type"], r.Header["Accept"] = []string{"application/json"}, accept
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for accept, want := range map[string]int{
		"application/json, text/event-stream": 200, "text/event-stream;q=0.5, APPLICATION/JSON;q=0.1": 200, "*/*": 200, "application/*": 200,
		"text/event-stream": 400, "": 400, "application/json-seq": 400,
		"application/json;q=0, */*": 400, "*/*, application/json; Q=0.000": 400, "*/*;q=0": 400, "application/*;q=0., */*": 400,
		"application/json;q=0.001": 200, "*/*;q=0, application/*": 200, "application/json;q=0, application/json": 200, "application/json;v=0": 200,
	} {
		if got := send(accept); got != want {
			t.Errorf("%q: %d, want %d", accept, got, want)
		}
	}
	if got := send(); got != 200 {
		t.Errorf("no Accept: %d", got)
	}
	if got := send("text/event-stream", "application/json"); got != 200 {
		t.Errorf("two lines: %d", got)
	}
}

// TestMCH04Answers: a request is answered with one object, a notification with
// nothing.
func TestMCH04Answers(t *testing.T) {
	h := open(t, plan{})
	if r := h.ask(t, "tools/list", ""); r.header.Get("Content-Type") != "application/json" || r.header.Get("Cache-Control") != "no-store" || strings.Count(r.raw, "\n") != 1 {
		t.Errorf("%v %q", r.header, r.raw)
	}
	for _, method := range []string{"notifications/initialized", "notifications/cancelled", "notifications/roots/list_changed", "notifications/unknown", "tools/call"} {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"name":"time_now"}}`, method)
		headers := modern(method, "")
		if method == "tools/call" {
			headers = modern(method, "time_now")
		}
		for _, headers := range [][]string{nil, headers} {
			if r := h.post(t, body, headers...); r.status != http.StatusAccepted || r.raw != "" {
				t.Errorf("%s: %d %s", method, r.status, r.raw)
			}
		}
	}
	if lines := h.ledger.lines(); len(lines) != 0 {
		t.Errorf("a notification was judged: %q", lines)
	}
}

func TestMCH05Headers(t *testing.T) {
	h := open(t, plan{})
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"web_search","arguments":{"query":"x"},` + meta26 + `}}`
	const read = `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:b",` + meta26 + `}}`
	for _, c := range []struct {
		body    string
		headers string
		want    int
	}{
		{call, "Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/call Mcp-Name=web_search", 0},
		{call, "mcp-protocol-version=2026-07-28 MCP-METHOD=tools/call mCP-nAME=web_search", 0},
		{call, "Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/call", -32020},
		{call, "Mcp-Protocol-Version=2026-07-28 Mcp-Name=web_search", -32020},
		{call, "Mcp-Method=tools/call Mcp-Name=web_search", -32020},
		{call, "Mcp-Protocol-Version=2025-11-25 Mcp-Method=tools/call Mcp-Name=web_search", -32020},
		{call, "Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/list Mcp-Name=web_search", -32020},
		{call, "Mcp-Protocol-Version=2026-07-28 Mcp-Method=TOOLS/CALL Mcp-Name=web_search", -32020},
		{call, "Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/call Mcp-Name=Web.Search", -32020},
		{call, "Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/call Mcp-Name=time_now", -32020},
		{call, "Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/call Mcp-Name=web_search Mcp-Name=web_search", -32020},
		{call, "Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/call Mcp-Method=tools/list Mcp-Name=web_search", -32020},
		{call, "Mcp-Protocol-Version=2026-07-28 Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/call Mcp-Name=web_search", -32020},
		{call, "", -32020},
		{read, "Mcp-Protocol-Version=2026-07-28 Mcp-Method=resources/read Mcp-Name=a:b", -32602},
		{read, "Mcp-Protocol-Version=2026-07-28 Mcp-Method=resources/read Mcp-Name=a:c", -32020},
		{read, "Mcp-Protocol-Version=2026-07-28 Mcp-Method=resources/read", -32020},
	} {
		var headers []string
		for _, field := range strings.Fields(c.headers) {
			name, value, _ := strings.Cut(field, "=")
			headers = append(headers, name, value)
		}
		before := len(h.ledger.lines())
		r := h.post(t, c.body, headers...)
		if r.Error.Code != c.want || c.want == -32020 && (r.status != http.StatusBadRequest || r.ID != 1.0 || len(h.ledger.lines()) != before) {
			t.Errorf("%s: %d %s", c.headers, r.status, r.raw)
		}
	}
}

// TestMCH06Values: what no header can hold stands in base64, and only between both of
// its marks.
func TestMCH06Values(t *testing.T) {
	h := open(t, plan{})
	sealed := func(s string) string { return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?=" }
	for _, c := range []struct {
		name, header string
		match        bool
	}{
		{"web_search", sealed("web_search"), true},
		{"wéb", sealed("wéb"), true},
		{"web_search", "=?base64?d2ViX3NlYXJjaA?=", false}, // without its padding
		{"web_search", "=?base64?d2Vi!!!LnNl?=", false},
		{"web", "=?base64?d2Vi!!?=", false}, // a good beginning is not the value
		{"web_search", "=?base64?d2ViX3NlYXJjaA==!!?=", false},
		{"web_search", sealed("web_find"), false},
		{"d2ViX3NlYXJjaA==", "d2ViX3NlYXJjaA==", true},
		{"=?base64?d2Vi", "=?base64?d2Vi", true},
		{"d2Vi?=", "d2Vi?=", true},
		{"=?BASE64?d2Vi?=", "=?BASE64?d2Vi?=", true},
		{"=?base64?d2Vi?=", "=?base64?d2Vi?=", false}, // it says web
		{"=?base64?d2Vi?=", sealed("=?base64?d2Vi?="), true},
		{"", "=?base64??=", true},
		{" x", " x", false},
		{" x", sealed(" x"), true},
	} {
		name, _ := json.Marshal(c.name)
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%s,%s}}`, name, meta26)
		headers := modern("tools/call", "")
		// Over a connection, since the space around a value is the transport's.
		r := overConnection(t, h, body, append(headers, "Mcp-Name", c.header)...)
		if got := !strings.Contains(r, "-32020"); got != c.match {
			t.Errorf("%q %q: %s", c.name, c.header, r)
		}
	}
}

// overConnection sends a request through a server, and returns its answer whole.
func overConnection(t *testing.T, h http.Handler, body string, headers ...string) string {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	head := "POST /mcp HTTP/1.1\r\nHost: " + s.Listener.Addr().String() + "\r\nConnection: close\r\nContent-Type: application/json\r\n"
	for i := 0; i < len(headers); i += 2 {
		head += headers[i] + ": " + headers[i+1] + "\r\n"
	}
	if _, err := fmt.Fprintf(c, "%sContent-Length: %d\r\n\r\n%s", head, len(body), body); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var b strings.Builder
	if _, err := bufio.NewReader(r.Body).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// repeating is a registry with arguments that headers repeat.
const repeating = `tools:
  - name: repeats
    input_schema:
      type: object
      properties:
        region: {type: string, x-mcp-header: Region}
        count: {type: integer, x-mcp-header: Count}
        dry: {type: boolean, x-mcp-header: Dry-Run}
        deep: {type: object, properties: {id: {type: string, x-mcp-header: Deep-Id}}}
    run: {type: demo}
  - name: spoiled
    input_schema:
      type: object
      properties:
        a: {type: string, x-mcp-header: Same}
        b: {type: string, x-mcp-header: same}
    run: {type: demo}
# end
`

func TestMCH07RepeatedArguments(t *testing.T) {
	h := open(t, plan{files: map[string]string{
		"tools/core.yaml": repeating,
		"policy.csv":      "p, Analyst, acme/alpha, *, , allow\n# end\n",
	}})
	for _, c := range []struct {
		arguments, headers string
		match              bool
	}{
		{`{}`, ``, true},
		{`{"region":"eu"}`, `Mcp-Param-Region=eu`, true},
		{`{"region":"eu"}`, `mcp-param-region=eu`, true},
		{`{"region":"eu"}`, `Mcp-Param-Region==?base64?ZXU=?=`, true},
		{`{"region":"eu"}`, ``, false},
		{`{"region":"eu"}`, `Mcp-Param-Region=us`, false},
		{`{"region":"eu"}`, `Mcp-Param-Region=EU`, false},
		{`{"region":"eu"}`, `Mcp-Param-Region==?base64?ZXU?=`, false},
		{`{"region":"eu"}`, `Mcp-Param-Region=eu Mcp-Param-Region=eu`, false},
		{`{"region":null}`, ``, true}, // the schema refuses it
		{`{}`, `Mcp-Param-Region=eu`, false},
		{`{"region":""}`, `Mcp-Param-Region=`, true},
		{`{"region":"eu"}`, `Mcp-Param-Region=eu Mcp-Param-Other=1`, true},
		{`{"count":5}`, `Mcp-Param-Count=5`, true},
		{`{"count":5.0}`, `Mcp-Param-Count=5`, true},
		{`{"count":9007199254740993}`, `Mcp-Param-Count=9007199254740993`, true},
		{`{"count":9007199254740993}`, `Mcp-Param-Count=9007199254740992`, false},
		{`{"count":5}`, `Mcp-Param-Count=05`, false},
		{`{"count":5}`, `Mcp-Param-Count=five`, false},
		{`{"count":5}`, `Mcp-Param-Count=5/1`, false},
		{`{"count":5}`, ``, false},
		{`{"count":"5"}`, ``, true}, // of another type: the schema refuses it
		{`{"dry":true}`, `Mcp-Param-Dry-Run=true`, true},
		{`{"dry":true}`, `Mcp-Param-Dry-Run=True`, false},
		{`{"deep":{"id":"x"}}`, `Mcp-Param-Deep-Id=x`, true},
		{`{"deep":{"id":"x"}}`, `Mcp-Param-Deep-Id=y`, false},
		{`{"region":"eu","region":"us"}`, `Mcp-Param-Region=eu`, true}, // no arguments at all: the kernel refuses them
	} {
		headers := []string{"Mcp-Name", "repeats"}
		for _, field := range strings.Fields(c.headers) {
			name, value, _ := strings.Cut(field, "=")
			headers = append(headers, name, value)
		}
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"repeats","arguments":%s,%s}}`, c.arguments, meta26)
		r := h.post(t, body, append(modern("tools/call", ""), headers...)...)
		if got := r.Error.Code != -32020; got != c.match || !got && r.status != http.StatusBadRequest {
			t.Errorf("%s %s: %d %s", c.arguments, c.headers, r.status, r.raw)
		}
	}
	// A tool whose extension is not the protocol's is called without it; an older revision
	// knows none; and an agent that may not use a tool learns nothing of it.
	if r := h.call(t, "spoiled", `{"a":"x"}`); r.Result.IsError || r.status != 200 {
		t.Errorf("%s", r.raw)
	}
	if r := h.old(t, "tools/call", `"name":"repeats","arguments":{"region":"eu"}`); r.Result.IsError || r.status != 200 {
		t.Errorf("%s", r.raw)
	}
	if r := h.call(t, "repeats", `{"region":"eu"}`, "Callgate-Agent", "Intern"); r.code() != "permission_denied" {
		t.Errorf("%s", r.raw)
	}
	// The extension is shown to clients.
	if r := h.ask(t, "tools/list", ""); !strings.Contains(r.raw, `"x-mcp-header":"Region"`) {
		t.Errorf("%s", r.raw)
	}
}

// TestMCH11Disconnect: a client that disconnects gets no answer, and a dispatched call runs
// to its end.
func TestMCH11Disconnect(t *testing.T) {
	started, proceed := make(chan struct{}), make(chan struct{})
	h := open(t, plan{engine: func(tool.Call) (tool.Result, error) {
		close(started)
		<-proceed
		return tool.Result{Body: []byte(`{"done":true}`), JSON: true}, nil
	}})
	s := httptest.NewServer(h)
	defer s.Close()
	ctx, disconnect := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_now"}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	left := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			resp.Body.Close()
		}
		left <- err
	}()
	<-started
	disconnect()
	if err := <-left; err == nil {
		t.Error("a client that left was answered")
	}
	close(proceed)
	settle(t, h)
	if got := fmt.Sprint(h.ledger.lines()); got != "[decision call tool_call outcome call tool_call result]" {
		t.Errorf("%s", got)
	}
	http.DefaultClient.CloseIdleConnections()
}

// settle waits until every outcome is written.
func settle(t *testing.T, h *fixture) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for len(h.ledger.lines()) < 2 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := h.kernel.Kernel.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestMCH12NoSessions: of 2026-07-28 what names a session is passed over, and none is
// given, as none is where no conversation begins.
func TestMCH12NoSessions(t *testing.T) {
	h := open(t, plan{})
	for _, name := range []string{"Mcp-Session-Id", "Last-Event-Id"} {
		if r := h.ask(t, "tools/list", "", name, "1"); r.status != 200 || r.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %d %v", name, r.status, r.header)
		}
	}
	for _, r := range []reply{h.old(t, "tools/list", ""), h.old(t, "initialize", ``), h.ask(t, "initialize", `"protocolVersion":"2025-11-25"`)} {
		if r.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%v %s", r.header, r.raw)
		}
	}
}

// keys knows two principals.
type keys struct{}

func (keys) Authenticate(credential string) *identity.Principal {
	switch credential {
	case "one":
		return &identity.Principal{Name: "one", Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}}
	case "both":
		return &identity.Principal{Name: "both", Agents: []string{"Analyst", "Intern"}, Workspace: "acme", Projects: []string{"alpha"}}
	}
	return nil
}

// TestIdentity: every request says who asks, and what refuses the request is told by
// HTTP.
func TestIdentity(t *testing.T) {
	h := open(t, plan{state: func(s *gateway.Config, _ *calls.Deps) { s.Identity = keys{} }})
	for _, c := range []struct {
		headers []string
		status  int
		code    string
	}{
		{nil, 401, "unauthenticated"},
		{[]string{"Authorization", "Bearer wrong"}, 401, "unauthenticated"},
		{[]string{"Authorization", "Basic one"}, 401, "unauthenticated"},
		{[]string{"Authorization", "Bearer one", "Authorization", "Bearer one"}, 400, "bad_request"},
		{[]string{"Authorization", "Bearer one", "Callgate-Agent", "Intern"}, 403, "agent_mismatch"},
		{[]string{"Authorization", "Bearer one", "Callgate-Agent", "Nobody"}, 403, "agent_unknown"},
		{[]string{"Authorization", "Bearer one"}, 200, ""},
		{[]string{"Authorization", "Bearer both", "Callgate-Agent", "Analyst"}, 200, ""},
	} {
		for _, message := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_now"}}`, `{`,
		} {
			r := h.post(t, message, c.headers...)
			if message == `{` && c.status == 200 {
				continue // identity comes first; then the body is read
			}
			if r.status != c.status || r.code() != c.code || c.status != 200 && c.status != 400 && r.Error.Code != c.status {
				t.Errorf("%q %s: %d %s", c.headers, message, r.status, r.raw)
			}
			if got := r.header.Get("Www-Authenticate"); (got == "Bearer") != (c.status == 401) {
				t.Errorf("%q: WWW-Authenticate %q", c.headers, got)
			}
		}
	}
	// A principal with several agents must state one, where it matters.
	for _, message := range []string{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_now"}}`} {
		if r := h.post(t, message, "Authorization", "Bearer both"); r.status != 403 || r.code() != "agent_required" || !strings.Contains(r.raw, "in the header Callgate-Agent, ") {
			t.Errorf("%s: %d %s", message, r.status, r.raw)
		}
	}
	if r := h.post(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Authorization", "Bearer both"); r.status != 200 {
		t.Errorf("%d %s", r.status, r.raw)
	}
}

// TestCallerRate: what comes too often is told by HTTP, and when to come back.
func TestCallerRate(t *testing.T) {
	rate, err := ratelimit.ParseRate("1/h")
	if err != nil {
		t.Fatal(err)
	}
	h := open(t, plan{state: func(s *gateway.Config, _ *calls.Deps) {
		s.Limits = &ratelimit.Limits{Replicas: 1, Caller: &ratelimit.Budget{Rate: rate, Burst: 2}}
	}})
	for i := range 4 {
		r := h.old(t, "tools/call", `"name":"time_now"`)
		if i < 2 && (r.status != 200 || r.Result.IsError) {
			t.Errorf("call %d took more than its share: %d %s", i, r.status, r.raw)
		}
		if i >= 2 && (r.status != 429 || r.Error.Code != 429 || r.code() != "caller_rate_limited" || r.header.Get("Retry-After") == "") {
			t.Errorf("%d: %d %v %s", i, r.status, r.header, r.raw)
		}
	}
}
