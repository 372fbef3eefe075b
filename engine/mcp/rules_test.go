package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

func discover(t testing.TB, h *fixture, f *fake) ([]tool.Definition, error) {
	t.Helper()
	return h.Discover(t.Context(), tool.Server{Name: "s", Type: "mcp", URL: f.url, Addresses: loopback, Timeout: patient})
}

func must(t testing.TB, h *fixture, c tool.Call) tool.Result {
	t.Helper()
	result, refused := h.run(t, c)
	if refused != nil {
		t.Fatal(refused)
	}
	return result
}

// MCP-02, from the client's side: every request of a modern session says its version
// and the capabilities, of which there are none.
func TestMCP02EveryRequestSaysItsVersion(t *testing.T) {
	f := newFake(t, false, answering(text("hi")))
	must(t, newFixture(t, engine.Options{}, nil), call(f.url, "echo", "once"))
	for _, method := range []string{"server/discover", "tools/list", "tools/call"} {
		_, body := f.last(t, method)
		var m struct {
			Params struct {
				Meta map[string]json.RawMessage `json:"_meta"`
			}
		}
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatal(err)
		}
		meta := m.Params.Meta
		if string(meta["io.modelcontextprotocol/protocolVersion"]) != `"2026-07-28"` || string(meta["io.modelcontextprotocol/clientCapabilities"]) != "{}" ||
			string(meta["io.modelcontextprotocol/clientInfo"]) != `{"name":"callgate","version":"1.2.3"}` {
			t.Errorf("%s: %s", method, body)
		}
	}
}

// MCP-06, from the client's side: a result without a type is complete, and one of a
// type that is not known is none.
func TestMCP06ResultTypes(t *testing.T) {
	for kind, want := range map[string]refusal.Code{`"resultType":"complete",`: "", ``: "", `"resultType":"partial",`: refusal.ToolFailed, `"resultType":null,`: ""} {
		f := newFake(t, false, answering(`{`+kind+`"content":[{"type":"text","text":"hi"}]}`))
		_, refused := newFixture(t, engine.Options{}, nil).run(t, call(f.url, "echo", "once"))
		if got := refusal.Code(""); refused != nil && refused.Code != want || refused == nil && got != want {
			t.Errorf("%s: %v", kind, refused)
		}
	}
}

// MCP-20: input is asked for of a client that can give none, so the call fails and
// is not sent again.
func TestMCP20InputIsNotGiven(t *testing.T) {
	f := newFake(t, false, answering(`{"resultType":"input_required","inputRequests":{},"requestState":"x"}`))
	_, refused := newFixture(t, engine.Options{}, nil).run(t, call(f.url, "echo", "read"))
	if refused == nil || refused.Code != refusal.ToolFailed || f.count("tools/call") != 1 {
		t.Errorf("%v after %d calls", refused, f.count("tools/call"))
	}
}

// MCP-24: what a server says of its tools' effects is not even read.
func TestMCP24AnnotationsGrantNothing(t *testing.T) {
	f := newFake(t, false, cut)
	f.tools = `[{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"idempotentHint":true,"destructiveHint":false}}]`
	h := newFixture(t, engine.Options{}, nil)
	found, err := discover(t, h, f)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if b, _ := json.Marshal(found[0]); strings.Contains(string(b), "Hint") {
		t.Errorf("the definition holds the hints: %s", b)
	}
	_, refused := h.run(t, call(f.url, "echo", "once"))
	if refused == nil || refused.Code != refusal.OutcomeUnknown || f.count("tools/call") != 1 {
		t.Errorf("a tool that says it only reads was sent its call %d times: %v", f.count("tools/call"), refused)
	}
}

// MCP-16: schemas come as the server wrote them.
func TestMCP16SchemasAreTheServersBytes(t *testing.T) {
	const schema = `{ "type":"object","$schema":"https://json-schema.org/draft/2020-12/schema", "properties":{"b":{"maximum":9007199254740993.10},"a":{"const":1e2}},"$defs":{"x":{"$anchor":"y"}},"if":{},"additionalProperties":false}`
	f := newFake(t, false, nil)
	f.tools = `[{"name":"echo","title":"T","description":"D\u200b","inputSchema":` + schema + `,"outputSchema":` + schema + `},{"name":"b","inputSchema":true,"outputSchema":null}]`
	found, err := discover(t, newFixture(t, engine.Options{}, nil), f)
	if err != nil || len(found) != 2 {
		t.Fatal(found, err)
	}
	d := found[0]
	if string(d.InputSchema) != schema || string(d.OutputSchema) != schema || d.Name != "echo" || d.Title != "T" || d.Description != "D\u200b" || d.Version != "" || d.Unusable != "" {
		t.Errorf("found %+v", d)
	}
	if d := found[1]; string(d.InputSchema) != "true" || d.OutputSchema != nil {
		t.Errorf("found %+v", d)
	}
}

// MCP-09: pages are put together, cursors are given back as they came.
func TestMCP09Pages(t *testing.T) {
	const cursor = "ü \\\" opaque="
	quoted, _ := json.Marshal(cursor)
	f := newFake(t, false, nil)
	f.page = func(at string) string {
		switch at {
		case "":
			return `{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":` + string(quoted) + `}`
		case cursor:
			return `{"tools":[{"name":"b","inputSchema":{}}],"nextCursor":null}`
		}
		return `{"tools":"no such cursor"}`
	}
	h := newFixture(t, engine.Options{}, nil)
	for range 2 { // nothing of a list is kept for the next
		found, err := discover(t, h, f)
		if err != nil || len(found) != 2 || found[0].Name != "a" || found[1].Name != "b" {
			t.Errorf("found %v: %v", found, err)
		}
	}
}

// A list that cannot be read whole is no list.
func TestListsThatAreNone(t *testing.T) {
	t.Parallel()
	page := 0
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"name":"t%d","inputSchema":{}}`, i)
		}
		return `{"tools":[` + b.String()[1:] + `]}`
	}
	fixed := func(s string) func(string) string { return func(string) string { return s } }
	for name, c := range map[string]struct {
		page func(string) string
		want string
	}{
		"no object":         {fixed(`[]`), "cannot be read"},
		"no tools":          {fixed(`{}`), "cannot be read"},
		"tools null":        {fixed(`{"tools":null}`), "cannot be read"},
		"unfinished":        {fixed(`{"tools":[],"resultType":"task"}`), "cannot be read"},
		"a name twice":      {fixed(`{"tools":[{"name":"a","name":"b","inputSchema":{}}]}`), "not strict JSON"},
		"a number, cursor":  {fixed(`{"tools":[],"nextCursor":7}`), "cannot be read"},
		"a long cursor":     {fixed(`{"tools":[],"nextCursor":"` + strings.Repeat("x", 5000) + `"}`), "cannot be read"},
		"a circle":          {fixed(`{"tools":[],"nextCursor":"x"}`), "in a circle"},
		"pages without end": {func(string) string { page++; return fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, page) }, "more than 1000 pages"},
		"too many":          {fixed(many(10_001)), "more than 10000 tools"},
		"too large":         {fixed(`{"tools":[],"x":"` + strings.Repeat("x", 33<<20) + `"}`), "more than is allowed"},
	} {
		f := newFake(t, true, nil) // which lists nothing by itself
		f.page = c.page
		found, err := discover(t, newFixture(t, engine.Options{}, nil), f)
		var unreadable *tool.InvalidListError
		if err == nil || !strings.Contains(err.Error(), c.want) || len(found) > 0 || !errors.As(err, &unreadable) {
			t.Errorf("%s: %d tools, %v", name, len(found), err)
		}
	}
}

// TestToolsThatCannotBeRead: one is left out, with the reason, and the others are listed.
func TestToolsThatCannotBeRead(t *testing.T) {
	const good, unnamed = `{"name":"good","title":null,"inputSchema":{"type":"object"}}`, "tool 2 of its list has no name"
	for bad, want := range map[string][2]string{
		`null`:                            {"", unnamed},
		`7`:                               {"", unnamed},
		`{"inputSchema":{}}`:              {"", unnamed},
		`{"name":null,"inputSchema":{}}`:  {"", unnamed},
		`{"name":"","inputSchema":{}}`:    {"", unnamed},
		`{"name":["a"],"inputSchema":{}}`: {"", unnamed},
		`{"name":"a","inputSchema":{},"description":1}`:                                               {"a", "its description is not a text"},
		`{"name":"a","inputSchema":null}`:                                                             {"a", "it has no input schema"},
		`{"name":"a","inputSchema":{}},{"name":"a","inputSchema":true},{"name":"a","inputSchema":{}}`: {"a", "its list has several tools of this name"},
		`{"name":"a","inputSchema":{},"description":1},{"name":"a","inputSchema":{}}`:                 {"a", "its list has several tools of this name"},
		`{"name":"a","inputSchema":{},"title":7},{"inputSchema":{},"name":"a"},` + good:               {"a", ""},
	} {
		f := newFake(t, false, nil)
		f.tools = `[` + good + `,` + bad + `]`
		found, err := discover(t, newFixture(t, engine.Options{}, nil), f)
		if err != nil || len(found) != 2 || found[0].Name != "good" || found[0].Unusable != "" || found[1].Name != want[0] || found[1].Unusable != want[1] {
			t.Errorf("%s: %+v, %v", bad, found, err)
		}
	}
	// Two that cannot be told from each other are both named.
	f := newFake(t, false, nil)
	f.tools = `[null,null]`
	if found, err := discover(t, newFixture(t, engine.Options{}, nil), f); err != nil || len(found) != 2 {
		t.Errorf("%+v, %v", found, err)
	}
}

// A server that lists nothing because it is away, or says no, has not said what it has.
func TestListsThatAreNotThere(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request, string){
		"cut": cut, "away": status(http.StatusServiceUnavailable), "an error": status(http.StatusInternalServerError), "unauthorized": status(http.StatusUnauthorized),
		"not found": status(http.StatusNotFound), "half an answer": streaming("data: {"), "refused": withMessages(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"x"}}`), "hangs": hang,
	} {
		f := newFake(t, false, nil)
		f.list = answer
		h := newFixture(t, engine.Options{}, nil)
		server := tool.Server{Name: "s", Type: "mcp", URL: f.url, Addresses: loopback, Timeout: patient}
		if name == "hangs" {
			server.Timeout = 300 * time.Millisecond
		}
		found, err := h.Discover(t.Context(), server)
		var unreadable *tool.InvalidListError
		if err == nil || found != nil || errors.As(err, &unreadable) {
			t.Errorf("%s: %d tools, %v", name, len(found), err)
		}
	}
	// No session is none, and what is no JSON is what it says.
	h := newFixture(t, engine.Options{}, nil)
	var unreadable *tool.InvalidListError
	if _, err := h.Discover(t.Context(), tool.Server{Name: "s", Type: "mcp", Command: []string{"/nonexistent/program"}, Timeout: patient}); err == nil || errors.As(err, &unreadable) {
		t.Errorf("no program: %v", err)
	}
	f := newFake(t, false, nil)
	f.list = withMessages("SECRET")
	if _, err := discover(t, h, f); !errors.As(err, &unreadable) || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("no JSON: %v", err)
	}
	server := tool.Server{Name: "s", Type: "mcp", Command: program(t, "garbled", `[{"jsonrpc":"2.0","result":"SECRET"}]`), Timeout: patient}
	if _, err := h.Discover(t.Context(), server); !errors.As(err, &unreadable) || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("a program that sends no object: %v", err)
	}
	// A line that is no message is passed over, and the answer is waited for.
	server = tool.Server{Name: "s", Type: "mcp", Command: program(t, "garbled", "SECRET"), Timeout: 300 * time.Millisecond, StartTimeout: time.Second}
	if _, err := h.Discover(t.Context(), server); err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("a program that prints a text: %v", err)
	}
}

// MCH-03: what a POST carries, and MCH-05: the headers that repeat what it says.
func TestMCH05Headers(t *testing.T) {
	for _, name := range []string{"echo", "größe", " a", "=?base64?eA==?=", "=?base64?"} {
		f := newFake(t, false, answering(text("hi")))
		must(t, newFixture(t, engine.Options{}, nil), call(f.url, name, "once"))
		header, body := f.last(t, "tools/call")
		want := name // MCH-06
		if name != "echo" && name != "=?base64?" {
			want = "=?base64?" + base64.StdEncoding.EncodeToString([]byte(name)) + "?="
		}
		for key, value := range map[string]string{
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": want, "Content-Type": "application/json",
			"Accept": "application/json, text/event-stream", "Accept-Encoding": "identity", "User-Agent": "callgate", "Mcp-Session-Id": "", "Authorization": "", "Cookie": "",
		} {
			if header.Get(key) != value {
				t.Errorf("%q: %s is %q, want %q", name, key, header.Get(key), value)
			}
		}
		if !strings.Contains(body, `"arguments":{"text":"hello"}`) {
			t.Errorf("the body is %s", body)
		}
	}
}

// written are arguments that any encoder would write in another way.
const written = "{ \"a\" :\"<&>\\u0041\\/\u2028\",\r\n\t\"n\": [1.0,1E2 , -0,12345678901234567890123] ,\"a\\u0062\":{} }"

// TestArgumentsAreTheBytesThatWereJudged: over HTTP byte for byte, to a program within
// one line.
func TestArgumentsAreTheBytesThatWereJudged(t *testing.T) {
	h := newFixture(t, engine.Options{}, nil)
	for _, effect := range []string{"read", "once"} {
		for _, legacy := range []bool{false, true} {
			f := newFake(t, legacy, answering(text("hi")))
			c := call(f.url, "echo", effect)
			c.Arguments = []byte(written)
			must(t, h, c)
			if _, body := f.last(t, "tools/call"); strings.Count(body, `"arguments":`+written) != 1 {
				t.Errorf("legacy %v, %s: %q", legacy, effect, body)
			}
		}
		c := local(program(t, "script"), "line", effect)
		c.Arguments = []byte(written)
		line := string(must(t, h, c).Body)
		if one := strings.NewReplacer("\r", " ", "\n", " ").Replace(written); strings.Count(line, `"arguments":`+one) != 1 {
			t.Errorf("%s, to a program: %q", effect, line)
		}
	}
}

// MCH-07: arguments that a schema marks go into headers, too.
func TestMCH07ParameterHeaders(t *testing.T) {
	const schema = `{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"count":{"type":"integer","x-mcp-header":"Count"},
		"in":{"type":"object","properties":{"deep":{"type":"boolean","x-mcp-header":"Deep"}}},
		"x-mcp-header":{"type":"string"},
		"plain":{"type":"string","default":{"x-mcp-header":1}}}}`
	f := newFake(t, false, answering(text("hi")))
	f.tools = `[{"name":"echo","inputSchema":` + schema + `}]`
	h := newFixture(t, engine.Options{}, nil)
	for arguments, want := range map[string][3]string{
		`{"region":"us","count":7,"in":{"deep":true},"plain":"x"}`: {"us", "7", "true"},
		`{"region":"größe","count":1.0,"in":{}}`:                   {"=?base64?Z3LDtsOfZQ==?=", "1", ""},
		`{"region":null,"count":1e2,"in":{"deep":false}}`:          {"", "100", "false"},
		`{"region":"","count":-9007199254740991}`:                  {"", "-9007199254740991", ""},
		`{"region":"a\r\nX-Evil: 1"}`:                              {"=?base64?YQ0KWC1FdmlsOiAx?=", "", ""},
		`{}`:                                                       {"", "", ""},
	} {
		c := call(f.url, "echo", "once")
		c.Arguments = []byte(arguments)
		must(t, h, c)
		header, _ := f.last(t, "tools/call")
		if got := [3]string{header.Get("Mcp-Param-Region"), header.Get("Mcp-Param-Count"), header.Get("Mcp-Param-Deep")}; got != want {
			t.Errorf("%s: %q, want %q", arguments, got, want)
		}
		if header.Get("X-Evil") != "" || header.Get("Mcp-Param-Plain") != "" {
			t.Errorf("%s: %v", arguments, header)
		}
	}
	c := call(f.url, "echo", "once")
	c.Arguments = []byte(`{"region":"` + strings.Repeat("x", 9000) + `"}`)
	before := f.count("tools/call")
	if _, refused := h.run(t, c); refused == nil || refused.Code != refusal.ToolFailed || f.count("tools/call") != before {
		t.Errorf("a long header: %v", refused)
	}
}

// MCH-08: a tool whose marks break the rules cannot be taken; the others can.
func TestMCH08ToolsThatBreakTheRules(t *testing.T) {
	for name, schema := range map[string]string{
		"a number":       `{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`,
		"an object":      `{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`,
		"types":          `{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}`,
		"no type":        `{"properties":{"a":{"x-mcp-header":"A"}}}`,
		"empty":          `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`,
		"no text":        `{"properties":{"a":{"type":"string","x-mcp-header":1}}}`,
		"no token":       `{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}`,
		"a line break":   `{"properties":{"a":{"type":"string","x-mcp-header":"A\r\nB"}}}`,
		"not ASCII":      `{"properties":{"a":{"type":"string","x-mcp-header":"Ä"}}}`,
		"the same":       `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`,
		"the same, deep": `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"object","properties":{"c":{"type":"string","x-mcp-header":"a"}}}}}`,
		"at the root":    `{"type":"string","x-mcp-header":"A"}`,
		"in items":       `{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`,
		"in anyOf":       `{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`,
		"in $defs":       `{"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}`,
		"in then":        `{"then":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`,
		"no schema":      ``,
	} {
		f := newFake(t, false, nil)
		input := `,"inputSchema":` + schema
		if schema == "" {
			input = ""
		}
		f.tools = `[{"name":"bad"` + input + `},{"name":"good","inputSchema":{"type":"object"}}]`
		found, err := discover(t, newFixture(t, engine.Options{}, nil), f)
		if err != nil || len(found) != 2 || found[0].Unusable == "" || found[1].Unusable != "" {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
}

// MCH-11: a modern server is told that a call was given up by the end of its stream,
// one of before by a message.
func TestMCH11Cancelling(t *testing.T) {
	t.Parallel()
	for _, legacy := range []bool{false, true} {
		ctx, giveUp := context.WithCancel(t.Context())
		gone := make(chan struct{})
		f := newFake(t, legacy, func(_ http.ResponseWriter, r *http.Request, _ string) {
			giveUp() // now that the call is here
			<-r.Context().Done()
			close(gone)
		})
		h := newFixture(t, engine.Options{}, nil)
		if _, err := discover(t, h, f); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Run(ctx, call(f.url, "echo", "once")); code(t, err) != refusal.OutcomeUnknown {
			t.Errorf("legacy %v: %v", legacy, err)
		}
		receive(t, gone)
		if legacy {
			eventually(t, func() bool { return f.count("notifications/cancelled") == 1 })
		} else if n := f.count("notifications/cancelled"); n != 0 {
			t.Errorf("a modern server was sent %d cancellations", n)
		}
	}
}

// receive waits for a value, or for a channel to be closed.
func receive[T any](t testing.TB, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(2 * patient):
		t.Fatal("nothing came")
	}
	return value
}

// eventually waits for what comes about by itself.
func eventually(t testing.TB, true_ func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patient); !true_(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come about")
		}
	}
}

// MCH-12: a modern server's session id is not taken up.
func TestMCH12NoSessionWithModernServers(t *testing.T) {
	f := newFake(t, false, func(w http.ResponseWriter, _ *http.Request, id string) {
		w.Header().Set("Mcp-Session-Id", "x")
		result(w, id, text("hi"))
	})
	h := newFixture(t, engine.Options{}, nil)
	for range 2 {
		must(t, h, call(f.url, "echo", "once"))
	}
	if header, _ := f.last(t, "tools/call"); header.Get("Mcp-Session-Id") != "" {
		t.Errorf("sent %v", header)
	}
}

// MCL-01, 03 and 04: the greeting of the older revisions, once for all calls, and
// the session's id and version with each request after it.
func TestMCL01TheGreeting(t *testing.T) {
	f := newFake(t, true, answering(text("hi")))
	h := newFixture(t, engine.Options{}, nil)
	for range 3 {
		must(t, h, call(f.url, "echo", "once"))
	}
	f.mu.Lock()
	got := fmt.Sprint(f.methods)
	f.mu.Unlock()
	if want := "[server/discover initialize notifications/initialized tools/call tools/call tools/call]"; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
	header, body := f.last(t, "initialize")
	if header.Get("Mcp-Session-Id") != "" || !strings.Contains(body, `"capabilities":{}`) || !strings.Contains(body, `"protocolVersion":"2025-11-25"`) {
		t.Errorf("greeted with %v %s", header, body)
	}
	for _, method := range []string{"notifications/initialized", "tools/call"} {
		if header, body := f.last(t, method); header.Get("Mcp-Session-Id") != "session-1" || header.Get("Mcp-Protocol-Version") != "2025-11-25" || header.Get("Mcp-Name") != "" || strings.Contains(body, "_meta") {
			t.Errorf("%s: %v %s", method, header, body)
		}
	}
	h.client.Close()
	if header, _ := f.last(t, "DELETE"); header.Get("Mcp-Session-Id") != "session-1" {
		t.Errorf("the session was not ended: %v", header)
	}
}

// stopper stops a call.
type stopper struct{}

func (stopper) Stopped() error { return errors.New("stopped") }

// MCL-03: where the server has forgotten the session, another is begun. A session
// that was quiet for long is tried by a ping before a call is sent through it.
func TestMCL03ForgottenSessions(t *testing.T) {
	var gone atomic.Bool
	f := newFake(t, true, answering(text("hi")))
	f.answers = func(w http.ResponseWriter, _ *http.Request, method string) bool {
		if method == "initialize" {
			gone.Store(false)
		}
		if gone.Load() && method != "server/discover" {
			w.WriteHeader(http.StatusNotFound)
		}
		return gone.Load() && method != "server/discover"
	}
	h := newFixture(t, engine.Options{}, nil)
	for _, effect := range []string{"read", "once"} {
		must(t, h, call(f.url, "echo", effect))
		gone.Store(true)
		before := f.count("tools/call")
		result, refused := h.run(t, call(f.url, "echo", effect))
		calls := f.count("tools/call") - before
		// By its status and its answer to a ping the server has not taken the call.
		if refused != nil || calls != 2 || result.Attempts != 2 {
			t.Errorf("%s: %v after %d attempts, %d calls", effect, refused, result.Attempts, calls)
		}
	}
	gone.Store(true)
	stopped, before := call(f.url, "echo", "once"), f.count("tools/call")
	stopped.Stopper = stopper{}
	if _, refused := h.run(t, stopped); refused == nil || f.count("tools/call") != before+1 {
		t.Errorf("stopped meanwhile: %v, %d calls", refused, f.count("tools/call")-before)
	}
	pings := f.count("ping")
	must(t, h, call(f.url, "echo", "once"))
	if n := f.count("ping"); n != pings {
		t.Errorf("%d pings of a session that was not quiet", n-pings)
	}
	h.client.Age(time.Minute)
	must(t, h, call(f.url, "echo", "once"))
	must(t, h, call(f.url, "echo", "once"))
	if n := f.count("ping") - pings; n != 1 {
		t.Errorf("%d pings of a session that was quiet once", n)
	}
}

// TestSessionsThatEndOtherwise: a server may say in any way that it has no such session. A ping that
// it refuses shows it, after a call that has failed and after a list. A call is sent again only if it
// may run twice, or a status of 4xx that names no request says that the server has not come to it. By an error that
// names it, it has failed; otherwise its outcome is unknown.
func TestSessionsThatEndOtherwise(t *testing.T) {
	sessionError := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32001,"message":"Session not found"}}`
	}
	type way struct {
		status      int
		media, body string
		want        refusal.Code // of a call that acts once; empty: it is sent again
	}
	ways := map[string]way{
		"200 and an error":         {200, "application/json", sessionError("null"), refusal.OutcomeUnknown},
		"200, in a stream":         {200, "text/event-stream", "data: " + sessionError("null") + "\n\n", refusal.OutcomeUnknown},
		"200, in a stream, its id": {200, "text/event-stream", "data: " + sessionError("ID") + "\n\n", refusal.ToolFailed},
		"200, another in a stream": {200, "text/event-stream", "data: " + sessionError(`"server-error"`) + "\n\n", refusal.OutcomeUnknown},
		"200 and no JSON-RPC":      {200, "application/json", `{"error":"Session not found"}`, refusal.OutcomeUnknown},
		"200 and a text":           {200, "text/plain", "Session not found", refusal.OutcomeUnknown},
		"200 and its id":           {200, "application/json", sessionError("ID"), refusal.ToolFailed},
		"200 and another id":       {200, "application/json", sessionError(`"server-error"`), refusal.OutcomeUnknown},
		"408 and a text":           {408, "text/plain", "Session not found", refusal.OutcomeUnknown},
		"404, a long text":         {404, "text/plain", strings.Repeat("x", 100_000), refusal.OutcomeUnknown},
		"404, several messages":    {404, "application/json", "[" + sessionError("ID") + "]", refusal.OutcomeUnknown},
		"404, no message, its id":  {404, "application/json", `{"id":ID,"error":"Session not found"}`, refusal.OutcomeUnknown},
	}
	for _, status := range []int{400, 401, 403, 404, 409, 410, 422, 500, 502, 503} {
		named, want := refusal.ToolFailed, refusal.Code("")
		if status >= 500 {
			named, want = refusal.OutcomeUnknown, refusal.OutcomeUnknown
		}
		ways[fmt.Sprintf("%d and an error", status)] = way{status, "application/json", sessionError("null"), want}
		ways[fmt.Sprintf("%d and another id", status)] = way{status, "application/json", sessionError(`"server-error"`), want}
		ways[fmt.Sprintf("%d and its id", status)] = way{status, "application/problem+json", sessionError("ID"), named}
		ways[fmt.Sprintf("%d and a text", status)] = way{status, "text/plain", "Session not found", want}
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, true, answering(text("hi")))
			var begun atomic.Int64
			var forgotten atomic.Bool
			f.answers = func(w http.ResponseWriter, r *http.Request, method string) bool {
				switch {
				case method == "server/discover" || method == http.MethodDelete:
					return false
				case method == "initialize":
					begun.Add(1)
					forgotten.Store(false)
					return false
				case forgotten.Load():
					var m struct{ ID json.RawMessage }
					_, body := f.last(t, method)
					_ = json.Unmarshal([]byte(body), &m)
					w.Header().Set("Content-Type", way.media)
					w.WriteHeader(way.status)
					io.WriteString(w, strings.ReplaceAll(way.body, "ID", string(m.ID)))
					return true
				}
				return false
			}
			h := newFixture(t, engine.Options{}, nil)
			sessions := func(want int64) {
				t.Helper()
				if got := begun.Load(); got != want {
					t.Errorf("%d sessions, want %d", got, want)
				}
			}
			must(t, h, call(f.url, "echo", "once"))
			forgotten.Store(true)
			before := f.count("tools/call")
			result, refused := h.run(t, call(f.url, "echo", "once"))
			calls, want := f.count("tools/call")-before, 1
			if way.want == "" {
				want = 2
			}
			if got := refusedCode(refused); got != way.want || calls != want || result.Attempts != want {
				t.Errorf("%v after %d calls and %d attempts", refused, calls, result.Attempts)
			}
			if way.want == refusal.ToolFailed && !strings.Contains(refused.Message, "Session not found") {
				t.Errorf("%v", refused)
			}
			must(t, h, call(f.url, "echo", "once"))
			sessions(2)
			forgotten.Store(true)
			must(t, h, call(f.url, "echo", "read"))
			sessions(3)
			forgotten.Store(true)
			h.client.Age(time.Minute)
			must(t, h, call(f.url, "echo", "once"))
			sessions(4)
			for _, want := range []int64{4, 5} {
				if found, err := discover(t, h, f); err != nil || len(found) != 1 {
					t.Errorf("%v: %v", found, err)
				}
				sessions(want)
				forgotten.Store(true)
			}
		})
	}
}

func refusedCode(refused *refusal.Error) refusal.Code {
	if refused == nil {
		return ""
	}
	return refused.Code
}

// TestTakenCallsAreNotSentAgain: a server that has taken a call may answer as if it had no session, and may not know pings.
// A call that acts once is sent once.
func TestTakenCallsAreNotSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		status             int
		media, body, words string
		denies             bool // it denies each ping
	}{
		"an error":               {404, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"no such customer"}}`, "no such customer", false},
		"an error, no ping":      {404, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"no such customer"}}`, "no such customer", true},
		"a result":               {404, "application/json", `{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`, "The tool ran", false},
		"a text":                 {404, "text/plain", "not found", "404", false},
		"a text, no ping":        {404, "text/plain", "not found", "404", true},
		"a page":                 {404, "text/html", "<p>not found", "404", false},
		"a problem":              {404, "application/problem+json", `{"title":"not found","status":404}`, "404", false},
		"a problem, no ping":     {404, "application/problem+json", `{"title":"not found","status":404}`, "404", true},
		"a session of its own":   {200, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"DB session closed"}}`, "DB session closed", false},
		"its own, and no ping":   {200, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"session not found"}}`, "It is not known", true},
		"an event, and no ping":  {404, "text/event-stream", "data: " + `{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"no such customer"}}` + "\n\n", "no such customer", true},
		"a gateway, and no ping": {502, "text/html", "<p>", "It is not known", true},
	} {
		f := newFake(t, true, func(w http.ResponseWriter, _ *http.Request, id string) {
			w.Header().Set("Content-Type", c.media)
			w.WriteHeader(c.status)
			io.WriteString(w, strings.ReplaceAll(c.body, "ID", id))
		})
		f.answers = func(w http.ResponseWriter, _ *http.Request, method string) bool {
			if method == "ping" && c.denies {
				w.WriteHeader(http.StatusBadRequest)
			}
			return method == "ping" && c.denies
		}
		result, refused := newFixture(t, engine.Options{}, nil).run(t, call(f.url, "echo", "once"))
		if n := f.count("tools/call"); n != 1 || result.Attempts != 1 || refused == nil || !strings.Contains(refused.Message, c.words) {
			t.Errorf("%s: %v after %d calls", name, refused, n)
		}
	}
}

// TestSessionsAreKept: a call that fails for another reason does not cost the session.
func TestSessionsAreKept(t *testing.T) {
	for _, answer := range []func(http.ResponseWriter, *http.Request, string){
		status(400), status(429), status(500), answering(`{}`), withMessages(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"no"}}`),
	} {
		f := newFake(t, true, answer)
		h := newFixture(t, engine.Options{}, nil)
		for range 2 {
			if _, refused := h.run(t, call(f.url, "echo", "once")); refused == nil {
				t.Error("it passed")
			}
		}
		if n := f.count("initialize"); n != 1 {
			t.Errorf("%d sessions", n)
		}
	}
}

// TestLostSessionsLetCallsEnd: a call that finds the session lost does not cost the answers to others in it.
func TestLostSessionsLetCallsEnd(t *testing.T) {
	came, answer := make(chan bool), make(chan bool)
	var denies atomic.Bool
	f := newFake(t, true, func(w http.ResponseWriter, _ *http.Request, id string) {
		if !denies.Load() {
			came <- true
			<-answer
		}
		result(w, id, text("hi"))
	})
	f.answers = func(w http.ResponseWriter, _ *http.Request, method string) bool {
		if method == "initialize" && f.count("initialize") > 1 {
			denies.Store(false)
		}
		if denies.Load() && method != "server/discover" {
			w.WriteHeader(http.StatusNotFound)
			return true
		}
		return false
	}
	h := newFixture(t, engine.Options{}, nil)
	ended := make(chan *refusal.Error, 2)
	send := func() {
		_, refused := h.run(t, call(f.url, "echo", "once"))
		ended <- refused
	}
	go send()
	receive(t, came)
	denies.Store(true)
	go send()
	receive(t, came) // in the new session
	for range 2 {
		answer <- true
		if refused := <-ended; refused != nil {
			t.Error(refused)
		}
	}
	eventually(t, func() bool { return f.count("DELETE") == 1 })
}

// TestStreamsAreResumed: a server of an older revision may end the stream of a call while it works, and gives the rest to a
// GET with the id of the last event that came whole. The call is sent once.
func TestStreamsAreResumed(t *testing.T) {
	for name, c := range map[string]struct {
		events, rest, second string
		asks                 []string // the ids of the events that are asked for
		want                 refusal.Code
	}{
		"at once":          {"id: 1\nretry: 1\ndata:\n\n", "id: 2\ndata: DONE\n\n", "", []string{"1"}, ""},
		"in the end":       {"id: 1\n\n", "id: two\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\nid: 3\ndata: {", "data: DONE\n\n", []string{"1", "two"}, ""},
		"never":            {"id: 1\ndata:\n\n", "status", "", []string{"1"}, refusal.OutcomeUnknown},
		"without an id":    {"retry: 1\ndata:\n\n", "data: DONE\n\n", "", nil, refusal.OutcomeUnknown},
		"an id for no one": {"id: a\x00b\ndata:\n\n", "data: DONE\n\n", "", nil, refusal.OutcomeUnknown},
	} {
		var asked []string
		var done string
		f := newFake(t, true, func(w http.ResponseWriter, r *http.Request, id string) {
			done = `{"jsonrpc":"2.0","id":` + id + `,"result":` + text("hi") + `}`
			streaming(c.events)(w, r, id)
		})
		f.answers = func(w http.ResponseWriter, r *http.Request, method string) bool {
			if method != http.MethodGet {
				return false
			}
			events := c.rest
			if asked = append(asked, r.Header.Get("Last-Event-ID")); len(asked) > 1 {
				events = c.second
			}
			if events == "status" {
				w.WriteHeader(http.StatusMethodNotAllowed)
			} else {
				streaming(strings.ReplaceAll(events, "DONE", done))(w, r, "")
			}
			return true
		}
		result, refused := newFixture(t, engine.Options{}, nil).run(t, call(f.url, "echo", "once"))
		if refusedCode(refused) != c.want || c.want == "" && string(result.Body) != "hi" || !slices.Equal(asked, c.asks) || f.count("tools/call") != 1 {
			t.Errorf("%s: %q %v, asked for %q", name, result.Body, refused, asked)
		}
	}
}

// TestOldTransport: a server that takes no POST at its URL may speak the old transport alone, which the
// operator is told.
func TestOldTransport(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusMethodNotAllowed} {
		f := newFake(t, true, nil)
		f.answers = func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			w.WriteHeader(status)
			return true
		}
		if _, err := discover(t, newFixture(t, engine.Options{}, nil), f); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("HTTP status %d to initialize", status)) || !strings.Contains(err.Error(), "HTTP+SSE") {
			t.Errorf("%v", err)
		}
	}
}

// TestRedirectsAreNamed: the operator is told where a server redirects to, without what may be a secret.
func TestRedirectsAreNamed(t *testing.T) {
	for location, want := range map[string]string{
		"/mcp/": "which points to HOST/mcp/:", "https://example.com/mcp?token=SECRET#SECRET": "which points to https://example.com/mcp:",
		"http://user:SECRET@example.com/\u202e": "which points to http://example.com/%E2%80%AE:", "": "HTTP status 308",
		"/" + strings.Repeat("SECRET", 100): "HTTP status 308",
	} {
		f := newFake(t, true, nil)
		f.answers = func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			if location != "" {
				w.Header().Set("Location", location)
			}
			w.WriteHeader(http.StatusPermanentRedirect)
			return true
		}
		_, err := discover(t, newFixture(t, engine.Options{}, nil), f)
		if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(want, "HOST", f.url)) || strings.Contains(err.Error(), "SECRET") || f.count("initialize") != 1 {
			t.Errorf("%s: %v", location, err)
		}
	}
}

// MCL-04 and 05: what a server says when it is greeted is not believed as it is.
func TestGreetingsThatAreNone(t *testing.T) {
	for name, c := range map[string]struct{ header, result string }{
		"the newest version":    {"s", `{"protocolVersion":"2026-07-28","capabilities":{}}`},
		"no version":            {"s", `{"capabilities":{},"serverInfo":{"name":"x","version":"1"}}`},
		"a version of tomorrow": {"s", `{"protocolVersion":"2099-01-01","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`},
		"a version with breaks": {"s", `{"protocolVersion":"2025-11-25\r\nX-Evil: 1","capabilities":{}}`},
		"a long version":        {"s", `{"protocolVersion":"` + strings.Repeat("2", 100) + `","capabilities":{}}`},
		"a session not visible": {"a b", `{"protocolVersion":"2025-11-25","capabilities":{}}`},
		"a long session":        {strings.Repeat("s", 2000), `{"protocolVersion":"2025-11-25","capabilities":{}}`},
		"duplicates":            {"s", `{"protocolVersion":"2025-11-25","protocolVersion":"2025-11-25","capabilities":{}}`},
	} {
		hits := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var m struct {
				ID     json.RawMessage
				Method string
			}
			_ = json.NewDecoder(r.Body).Decode(&m)
			switch m.Method {
			case "initialize":
				w.Header().Set("Mcp-Session-Id", c.header)
				result(w, string(m.ID), c.result)
			case "tools/call":
				hits++
			default:
				w.WriteHeader(http.StatusBadRequest)
			}
		}))
		_, refused := newFixture(t, engine.Options{}, nil).run(t, call(server.URL, "echo", "once"))
		server.Close()
		if refused == nil || refused.Code != refusal.ToolUnavailable || hits != 0 || strings.Contains(refused.Error(), "X-Evil") ||
			strings.Contains(refused.Error(), "expected one of 2025-11-25, 2025-06-18") != strings.Contains(name, " version") ||
			name == "a version of tomorrow" && !strings.Contains(refused.Error(), ", 2099-01-01;") {
			t.Errorf("%s: %v", name, refused)
		}
	}
}

// MCP-25, and requests of servers in general: nothing is offered, so all but a ping
// is refused, and the call continues.
func TestMCP25WhatServersAskIsRefused(t *testing.T) {
	var requests []string
	for _, method := range []string{"elicitation/create", "sampling/createMessage", "roots/list", "ping", "anything"} {
		requests = append(requests, `data: {"jsonrpc":"2.0","id":"q-`+method+`","method":"`+method+`","params":{}}`+"\n\n")
	}
	f := newFake(t, true, streaming(append(requests, `data: {"jsonrpc":"2.0","id":ID,"result":`+text("hi")+"}\n\n")...))
	must(t, newFixture(t, engine.Options{}, nil), call(f.url, "echo", "once"))
	f.mu.Lock()
	defer f.mu.Unlock()
	var replies []string
	for i, body := range f.bodies {
		if strings.Contains(body, `"id":"q-`) {
			replies = append(replies, body)
			if f.headers[i].Get("Mcp-Session-Id") != "session-1" {
				t.Error("a reply without its session")
			}
		}
	}
	if len(replies) != 5 {
		t.Fatalf("replied %q", replies)
	}
	for _, reply := range replies {
		if refuses := strings.Contains(reply, `"code":-32601`); refuses == strings.Contains(reply, `q-ping`) {
			t.Errorf("replied %s", reply)
		}
	}
}

// A call that acts once is sent once, and nothing repeats it by itself.
func TestOnceIsSentOnce(t *testing.T) {
	t.Parallel()
	for effect, want := range map[string]int{"once": 1, "whatever": 1, "read": 3, "idempotent": 3} {
		f := newFake(t, false, cut)
		h := newFixture(t, engine.Options{}, nil)
		_, refused := h.run(t, call(f.url, "echo", effect))
		if refused == nil || f.count("tools/call") != want {
			t.Errorf("%s: %v after %d calls", effect, refused, f.count("tools/call"))
		}
	}
	// On a connection that stays open, too.
	kept := newFake(t, true, answering(text("hi")))
	h := newFixture(t, engine.Options{}, nil)
	for range 3 {
		must(t, h, call(kept.url, "echo", "read"))
		must(t, h, call(kept.url, "echo", "once"))
	}
	if n := kept.count("tools/call"); n != 6 {
		t.Errorf("%d calls, want 6", n)
	}
	// Tried again, a call can succeed.
	n := 0
	f := newFake(t, false, func(w http.ResponseWriter, r *http.Request, id string) {
		if n++; n < 3 {
			cut(w, r, id)
		}
		result(w, id, text("hi"))
	})
	if result := must(t, newFixture(t, engine.Options{}, nil), call(f.url, "echo", "read")); result.Attempts != 3 {
		t.Errorf("%d attempts", result.Attempts)
	}
}

// The breaker of a tool opens as that of any other.
func TestBreaker(t *testing.T) {
	f := newFake(t, false, cut)
	h := newFixture(t, engine.Options{}, nil)
	for range 10 {
		h.run(t, call(f.url, "echo", "once"))
	}
	// It lets one through every two seconds, which may have passed by now.
	eventually(t, func() bool {
		before := f.count("tools/call")
		result, refused := h.run(t, call(f.url, "echo", "once"))
		return refused.Code == refusal.ToolUnavailable && result.Attempts == 0 && f.count("tools/call") == before
	})
	if n := f.count("tools/call"); n < 10 || h.outbound.OpenBreakers() != 1 {
		t.Errorf("%d calls, %d open", n, h.outbound.OpenBreakers())
	}
}

// A credential is read when it is used, and sent with every request.
func TestCredentials(t *testing.T) {
	secret, fails := "token-1", false
	h := newFixture(t, engine.Options{ReadSecret: func(_ context.Context, place string) (string, error) {
		if fails {
			return "", errors.New("nothing at " + place)
		}
		return secret, nil
	}}, nil)
	f := newFake(t, false, answering(text("hi")))
	c := call(f.url, "echo", "once")
	c.Run.Credential = tool.Bearer("env:TOKEN")
	must(t, h, c)
	for _, method := range []string{"server/discover", "tools/list", "tools/call"} {
		if header, _ := f.last(t, method); header.Get("Authorization") != "Bearer token-1" {
			t.Errorf("%s: %v", method, header)
		}
	}
	secret = "token-2"
	must(t, h, c)
	if header, _ := f.last(t, "tools/call"); header.Get("Authorization") != "Bearer token-2" {
		t.Errorf("sent %v", header)
	}
	before := f.count("tools/call")
	for _, bad := range []string{"", "with space", "line\nbreak", "größe"} {
		secret = bad
		if _, refused := h.run(t, c); refused == nil || refused.Code != refusal.ToolUnavailable || bad != "" && strings.Contains(refused.Error(), bad) {
			t.Errorf("%q: %v", bad, refused)
		}
	}
	fails = true
	if _, refused := h.run(t, c); refused == nil || refused.Code != refusal.ToolUnavailable || !strings.Contains(refused.Error(), "env:TOKEN") {
		t.Errorf("%v", refused)
	}
	if n := f.count("tools/call"); n != before {
		t.Errorf("%d calls were sent without their credential", n-before)
	}
	// Another credential is another session.
	fails, secret = false, "token-3"
	c.Run.Credential = tool.Bearer("env:OTHER")
	must(t, h, c)
	if n := f.count("server/discover"); n != 2 {
		t.Errorf("%d sessions for two credentials", n)
	}
}

// An invalid endpoint of a server is refused before anything is sent.
func TestPlaces(t *testing.T) {
	h := newFixture(t, engine.Options{}, nil)
	for name, run := range map[string]tool.Run{
		"nothing":               {Tool: "a"},
		"no tool":               {URL: "http://127.0.0.1:1/"},
		"a file":                {URL: "file:///etc/passwd", Tool: "a"},
		"user info":             {URL: "http://user:SECRET@127.0.0.1:1/", Tool: "a"},
		"no host":               {URL: "http:///x", Tool: "a"},
		"both":                  {URL: "http://127.0.0.1:1/", Command: []string{"x"}, Tool: "a"},
		"a program's secret":    {Command: []string{"x"}, Credential: tool.Bearer("env:A"), Tool: "a"},
		"addresses unread":      {URL: "http://127.0.0.1:1/", Addresses: []string{"x"}, Tool: "a"},
		"a program that is not": {Command: []string{"/nonexistent/program"}, Tool: "a"},
		"none of that name":     {Command: []string{"nonexistent-program"}, Tool: "a"},
	} {
		c := call("", "a", "once")
		run.Type, run.Timeout = "mcp", patient
		c.Run = run
		if _, refused := h.run(t, c); refused == nil || refused.Code != refusal.ToolUnavailable || strings.Contains(refused.Error(), "SECRET") {
			t.Errorf("%s: %v", name, refused)
		}
		if _, err := h.Discover(t.Context(), tool.Server{Name: "s", Type: "mcp", URL: run.URL, Command: run.Command, Credential: run.Credential, Addresses: run.Addresses, Timeout: patient}); name != "no tool" && (err == nil || strings.Contains(err.Error(), "SECRET")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Links that nobody uses are given up, and opened anew when they are needed.
func TestIdleSessions(t *testing.T) {
	f := newFake(t, true, answering(text("hi")))
	h := newFixture(t, engine.Options{}, nil)
	must(t, h, call(f.url, "echo", "once"))
	h.client.Sweep()
	if h.client.Links() != 1 {
		t.Error("a link in use was given up")
	}
	h.client.Age(time.Hour)
	h.client.Sweep()
	if h.client.Links() != 0 {
		t.Error("an idle link was kept")
	}
	eventually(t, func() bool { return f.count("DELETE") == 1 })
	must(t, h, call(f.url, "echo", "once"))
	h.client.Close()
	if _, refused := h.run(t, call(f.url, "echo", "once")); refused == nil || refused.Code != refusal.ToolUnavailable {
		t.Errorf("after the end: %v", refused)
	}
}

// A link to a server that is no longer one, or stands elsewhere, ends at once, and so
// does its program. Others stay, and those of single tools.
func TestKeep(t *testing.T) {
	h := newFixture(t, engine.Options{}, nil)
	at := func(server string) (*fake, tool.Call, tool.Server) {
		f := newFake(t, true, answering(text("hi")))
		c := call(f.url, "echo", "once")
		c.Run.Server = server
		must(t, h, c)
		return f, c, tool.Server{Name: server, Type: "mcp", URL: f.url, Addresses: loopback, Timeout: patient}
	}
	stays, c, server := at("stays")
	if _, err := h.Discover(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	gone, _, _ := at("gone")
	moved, _, elsewhere := at("moved")
	elsewhere.Credential = tool.Bearer("env:OTHER")
	single, d, _ := at("")
	command := program(t, "script")
	must(t, h, local(command, "pid", "once"))
	if h.client.Links() != 5 {
		t.Fatalf("%d links", h.client.Links())
	}
	h.client.RetainOnly([]tool.Server{server, elsewhere, {Name: "tools", Type: "oxp", URL: "https://example.com/"}, {Name: "none"}})
	if h.client.Links() != 2 {
		t.Errorf("%d links are left", h.client.Links())
	}
	eventually(t, func() bool { return gone.count("DELETE") == 1 && moved.count("DELETE") == 1 })
	must(t, h, c)
	must(t, h, d)
	if stays.count("DELETE")+single.count("DELETE") != 0 || stays.count("initialize") != 1 || single.count("initialize") != 1 {
		t.Error("another session was ended")
	}
	// A call that was judged before may open one once more.
	if must(t, h, local(command, "pid", "once")); h.client.Links() != 3 {
		t.Errorf("%d links with a late one", h.client.Links())
	}
	if h.client.Sweep(); h.client.Links() != 2 {
		t.Errorf("%d links are left of a late one", h.client.Links())
	}
	h.client.RetainOnly(nil)
	if h.client.Links() != 1 {
		t.Errorf("%d links are left of none", h.client.Links())
	}
}

// Calls that are in flight end first, and their answers count.
func TestKeepLetsCallsEnd(t *testing.T) {
	for name, end := range map[string]func(*fixture){
		"kept no more": func(h *fixture) { h.client.RetainOnly(nil) },
		"idle":         func(h *fixture) { h.client.Age(time.Hour); h.client.Sweep() },
	} {
		came, answer := make(chan bool, 2), make(chan bool)
		f := newFake(t, true, func(w http.ResponseWriter, _ *http.Request, id string) {
			came <- true
			<-answer
			result(w, id, text("hi"))
		})
		h := newFixture(t, engine.Options{}, nil)
		ended := make(chan *refusal.Error, 2)
		for range 2 {
			go func() {
				_, refused := h.run(t, call(f.url, "echo", "once"))
				ended <- refused
			}()
			receive(t, came)
		}
		end(h)
		if h.client.Links() != 0 {
			t.Errorf("%s: %d links", name, h.client.Links())
		}
		for i := range 2 {
			if n := f.count("DELETE"); n != 0 {
				t.Errorf("%s: the session was ended under %d calls", name, 2-i)
			}
			answer <- true
			if refused := <-ended; refused != nil {
				t.Errorf("%s: %v", name, refused)
			}
		}
		eventually(t, func() bool { return f.count("DELETE") == 1 })
	}
	// The end of the client waits for none of them.
	h := newFixture(t, engine.Options{}, nil)
	came, ended := make(chan bool), make(chan *refusal.Error)
	c := local(program(t, "script"), "reports for ever", "once")
	c.Progress = func(p tool.Progress) {
		if p.Done == 0 {
			h.client.RetainOnly(nil)
			close(came)
		}
	}
	go func() {
		_, refused := h.run(t, c)
		ended <- refused
	}()
	receive(t, came)
	h.client.Close()
	if refused := <-ended; refused == nil || refused.Code != refusal.OutcomeUnknown || strings.Contains(fmt.Sprint(refused.Cause), "within") {
		t.Errorf("%v", refused)
	}
}
