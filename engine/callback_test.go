package engine_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// addressed are options with an address to call back at.
func addressed() engine.Options {
	return engine.Options{
		CallbackURL: func(id string, until time.Time) (string, error) {
			if id == "" || !until.After(time.Now()) {
				return "", errors.New("an address of nothing")
			}
			return "https://gateway.example/v1/callbacks/token-of-" + id, nil
		},
		ReadSecret: func(_ context.Context, place string) (string, error) {
			if place != "env:TOKEN" {
				return "", errors.New("found nothing at " + place)
			}
			return "hunter2", nil
		},
	}
}

// later is a call of a tool that calls back.
func later(url, effect string) tool.Call {
	call := loopback(url, effect)
	call.Run.Type, call.Run.Tool, call.Run.MaxAge = "callback", "do_it", time.Hour
	return call
}

// A call is a POST of JSON that holds what the protocol asks for, the arguments byte
// for byte as they were judged, and nothing else.
func TestTIP01TIP04TIP05TIP06Invocation(t *testing.T) {
	var method, path, body string
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		method, path, body, header = r.Method, r.URL.Path, string(b), r.Header
	}))
	defer server.Close()
	e := newEngine(t, addressed())
	const arguments = `{ "b" : 1.50e2, "a":"<\u0026>é" }`
	for name, c := range map[string]struct {
		change func(*tool.Call)
		more   map[string]any
	}{
		"a call by itself":        {func(*tool.Call) {}, map[string]any{"group_id": "call-1"}},
		"of a thread":             {func(c *tool.Call) { c.Thread = "t" }, map[string]any{"group_id": "t"}},
		"of a thread of threads":  {func(c *tool.Call) { c.Thread, c.Ancestors = "t", []string{"root", "parent"} }, map[string]any{"group_id": "t", "thread_ancestors": []any{"root", "parent"}}},
		"ancestors of no thread":  {func(c *tool.Call) { c.Ancestors = []string{"root"} }, map[string]any{"group_id": "call-1", "thread_ancestors": []any{"root"}}},
		"of a user":               {func(c *tool.Call) { c.User = "u" }, map[string]any{"group_id": "call-1", "user_id": "u"}},
		"of a user that is a lot": {func(c *tool.Call) { c.User = `","id":"forged` }, map[string]any{"group_id": "call-1", "user_id": `","id":"forged`}},
	} {
		call := later(server.URL+"/invoke", "once")
		call.Arguments = []byte(arguments)
		c.change(&call)
		before := time.Now()
		result, refused := run(t, e, call)
		if refused != "" || !result.Pending || result.Attempts != 1 || result.Body != nil || result.Until.Before(before.Add(time.Hour)) {
			t.Errorf("%s: %s, %+v", name, refused, result)
		}
		if method != http.MethodPost || path != "/invoke" || header.Get("Content-Type") != "application/json" || header.Get("Authorization") != "" {
			t.Errorf("%s: %s %s %v", name, method, path, header)
		}
		if strings.Count(body, arguments) != 1 {
			t.Errorf("%s: the arguments are not as they were in %s", name, body)
		}
		want := map[string]any{"operation": "do_it", "id": "call-1", "callback_url": "https://gateway.example/v1/callbacks/token-of-call-1"}
		for k, v := range c.more {
			want[k] = v
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%s: %s: %v", name, body, err)
		}
		delete(got, "arguments")
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: found %v, expected %v", name, got, want)
		}
	}
	call := later(server.URL+"/invoke", "once")
	call.Run.Credential = tool.Bearer("env:TOKEN")
	if _, refused := run(t, e, call); refused != "" || header.Get("Authorization") != "Bearer hunter2" {
		t.Errorf("with a credential: %s, %v", refused, header)
	}
	body = ""
	call.Run.Credential = tool.Bearer("env:OTHER")
	if _, err := e.Run(context.Background(), call); code(t, err) != refusal.ToolUnavailable || body != "" {
		t.Errorf("without its credential: %v, sent %q", err, body)
	}
	if _, refused := run(t, newEngine(t, engine.Options{}), later(server.URL, "once")); refused != refusal.ToolUnavailable || body != "" {
		t.Errorf("without an address: %s, sent %q", refused, body)
	}
}

// Only the status counts: what comes with it is not read, however much it is.
func TestTIP07TheAcknowledgementIsNotRead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // else nobody notices that the client leaves
		w.Header().Set("Content-Type", "image/png")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done() // it never ends
	}))
	defer server.Close()
	e := newEngine(t, addressed())
	for _, effect := range []string{"once", "read"} {
		result, refused := run(t, e, later(server.URL, effect))
		if refused != "" || !result.Pending {
			t.Errorf("%s: %s, %+v", effect, refused, result)
		}
	}
}

// Any status but 2xx says that the call was not taken. 5xx may be tried again where the effect allows it, 4xx
// never. Of a call that acts once, a proxy's failure leaves open whether the tool has it: it waits.
func TestTIP08TIP09NotTaken(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]struct {
		code  refusal.Code
		reads int64 // attempts of what reads
	}{
		200: {"", 1}, 201: {"", 1}, 202: {"", 1}, 204: {"", 1}, 302: {refusal.ToolFailed, 1}, 307: {refusal.ToolFailed, 1},
		400: {refusal.ToolFailed, 1}, 404: {refusal.ToolFailed, 1}, 408: {refusal.ToolFailed, 1}, 409: {refusal.ToolFailed, 1}, 425: {refusal.ToolFailed, 1}, 429: {refusal.ToolFailed, 1},
		500: {refusal.ToolFailed, 3}, 501: {refusal.ToolFailed, 1},
		502: {refusal.ToolUnavailable, 3}, 503: {refusal.ToolUnavailable, 3}, 504: {refusal.ToolUnavailable, 3},
	} {
		var hits atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			hits.Add(1)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		}))
		e := newEngine(t, addressed())
		if result, refused := run(t, e, later(server.URL, "read")); refused != want.code || hits.Load() != want.reads || result.Pending != (want.code == "") {
			t.Errorf("%d, read: %s after %d attempts, expected %s after %d", status, refused, hits.Load(), want.code, want.reads)
		}
		hits.Store(0)
		once := want.code
		if once == refusal.ToolUnavailable {
			once = ""
		}
		if result, refused := run(t, e, later(server.URL, "once")); refused != once || hits.Load() != 1 || result.Pending != (once == "") {
			t.Errorf("%d, once: %s after %d attempts, expected %s after 1", status, refused, hits.Load(), once)
		}
		server.Close()
	}
	// Nobody is there: nothing was sent.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for _, effect := range []string{"once", "read"} {
		if result, refused := run(t, newEngine(t, addressed()), later("http://"+l.Addr().String(), effect)); refused != refusal.ToolUnavailable || result.Pending {
			t.Errorf("%s: %s, %+v", effect, refused, result)
		}
	}
}

// A call whose acknowledgement was lost may have been taken: it waits, whatever comes
// of it being sent again.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	for effect, attempts := range map[string]int64{"once": 1, "read": 2} {
		var hits atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if hits.Add(1) == 1 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(http.StatusNotFound)
		}))
		result, refused := run(t, newEngine(t, addressed()), later(server.URL, effect))
		if refused != "" || !result.Pending || hits.Load() != attempts {
			t.Errorf("%s: %s, %+v, sent %d times", effect, refused, result, hits.Load())
		}
		server.Close()
	}
	hang := make(chan struct{})
	var hits atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1); <-hang }))
	defer server.Close()
	defer close(hang)
	call := later(server.URL, "once")
	call.Run.Timeout = 200 * time.Millisecond
	result, refused := run(t, newEngine(t, addressed()), call)
	for hits.Load() == 0 && call.Run.Timeout < patient { // where everything is slow, it was not sent in time
		call.Run.Timeout *= 2
		result, refused = run(t, newEngine(t, addressed()), call)
	}
	if refused != "" || !result.Pending {
		t.Errorf("a tool that hangs: %s, %+v", refused, result)
	}
}

// An address that the tool's addresses do not allow gets no connection.
func TestCallbackAddresses(t *testing.T) {
	c := newCanary(t)
	e := newEngine(t, addressed())
	for _, url := range []string{c.URL, strings.Replace(c.URL, "127.0.0.1", "localhost", 1), strings.Replace(c.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1)} {
		call := later(url, "read")
		call.Run.Addresses = nil
		if _, refused := run(t, e, call); refused != refusal.AddressBlocked {
			t.Errorf("%s: %s", url, refused)
		}
		if _, err := e.Discover(context.Background(), tool.Server{Name: "s", Type: "callback", URL: url}); err == nil {
			t.Errorf("%s: its toolset was fetched", url)
		}
		e.Cancel(context.Background(), call)
	}
	for _, url := range []string{"", "127.0.0.1", "ftp://127.0.0.1/", "http://me:hunter2@127.0.0.1/", "://"} {
		if _, err := e.Run(context.Background(), later(url, "read")); code(t, err) != refusal.ToolUnavailable || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
	if c.hits.Load() != 0 {
		t.Errorf("%d hits", c.hits.Load())
	}
}

// discovered reads what a server answers for its toolset.
func discovered(t testing.TB, base, body string, change func(*tool.Server)) ([]tool.Definition, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != base+"/.well-known/rap-toolset" || r.Method != http.MethodGet || r.Header.Get("Accept") != "application/json" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, strings.ReplaceAll(body, "BASE", "http://"+r.Host))
	}))
	defer server.Close()
	s := tool.Server{Name: "s", Type: "callback", URL: server.URL + base, Addresses: []string{"127.0.0.1/32"}}
	if change != nil {
		change(&s)
	}
	found, err := newEngine(t, addressed()).Discover(context.Background(), s)
	for i := range found {
		found[i].Endpoint = strings.Replace(found[i].Endpoint, server.URL, "BASE", 1)
	}
	return found, err
}

const goodToolset = `{"name":"n","description":"d","endpoint":"BASE/invoke","needsMigration":true,"later":[1],"tools":[
 {"name":"one","description":"The first.","inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}},"annotations":{"destructive":true,"x-y":1},"displayScript":"exec(\"rm\")"},
 {"name":"two-2_b","description":"Two.","inputSchema":{"type":"object"}}]}`

// A toolset is read from its one place, and each tool goes where its toolset says.
func TestTIP13TIP17Discovery(t *testing.T) {
	want := []tool.Definition{
		{Name: "one", Endpoint: "BASE/invoke", Description: "The first.", InputSchema: []byte(`{"properties":{"n":{"maximum":9007199254740993,"type":"integer"}},"type":"object"}`)},
		{Name: "two-2_b", Endpoint: "BASE/invoke", Description: "Two.", InputSchema: []byte(`{"type":"object"}`)},
	}
	for _, base := range []string{"", "/below", "/below/it/"} {
		path := strings.TrimSuffix(base, "/")
		found, err := discovered(t, path, goodToolset, func(s *tool.Server) { s.URL = strings.TrimSuffix(s.URL, path) + base })
		if err != nil || !reflect.DeepEqual(found, want) {
			t.Errorf("%q: %+v, %v", base, found, err)
		}
	}
	found, err := discovered(t, "", strings.Replace(goodToolset, "BASE/invoke", "/invoke", 1), nil)
	if err != nil || found[0].Endpoint != "BASE/invoke" {
		t.Errorf("an endpoint of the same server: %+v, %v", found, err)
	}
	found, err = discovered(t, "", strings.Replace(goodToolset, "BASE/invoke", "https://elsewhere.example/x", 1), nil)
	if err != nil || found[0].Endpoint != "https://elsewhere.example/x" {
		t.Errorf("an endpoint elsewhere: %+v, %v", found, err)
	}
}

// One invalid tool makes the whole toolset invalid: nothing of it is loaded.
func TestTIP14TIP15TIP16NoPartOfAToolset(t *testing.T) {
	replace := func(old, with string) string {
		if !strings.Contains(goodToolset, old) {
			t.Fatalf("there is no %s to replace", old)
		}
		return strings.Replace(goodToolset, old, with, 1)
	}
	for name, body := range map[string]string{
		"not JSON":                 "x",
		"no object":                "[]",
		"empty":                    "",
		"a duplicate":              replace(`"name":"n"`, `"name":"n","name":"n"`),
		"more behind":              goodToolset + "{}",
		"no name":                  replace(`"name":"n",`, ``),
		"an empty name":            replace(`"name":"n"`, `"name":""`),
		"a name of another case":   replace(`"name":"n"`, `"Name":"n"`),
		"a long name":              replace(`"name":"n"`, `"name":"`+strings.Repeat("x", 129)+`"`),
		"a description of numbers": replace(`"description":"d"`, `"description":7`),
		"no endpoint":              replace(`"endpoint":"BASE/invoke",`, ``),
		"an endpoint of a number":  replace(`"BASE/invoke"`, `7`),
		"an endpoint by name":      replace(`BASE/invoke`, `invoke`),
		"an endpoint elsewhere":    replace(`BASE/invoke`, `//elsewhere.example/`),
		"an endpoint of files":     replace(`BASE/invoke`, `file:///etc/passwd`),
		"an endpoint with a user":  replace(`BASE/invoke`, `http://me@elsewhere.example/`),
		"migration by word":        replace(`true`, `"yes"`),
		"no tools":                 `{"name":"n","endpoint":"BASE/invoke"}`,
		"tools that are none":      `{"name":"n","endpoint":"BASE/invoke","tools":{}}`,
		"an empty list":            `{"name":"n","endpoint":"BASE/invoke","tools":[]}`,
		"a tool that is a text":    `{"name":"n","endpoint":"BASE/invoke","tools":["x"]}`,
		"a tool twice":             replace(`"two-2_b"`, `"one"`),
		"a tool without a name":    replace(`"name":"two-2_b",`, ``),
		"a name with a space":      replace(`two-2_b`, `two b`),
		"a name with more":         replace(`two-2_b`, `two/../b`),
		"a name that hides":        replace(`two-2_b`, "two\u200b"),
		"no description":           replace(`"description":"Two.",`, ``),
		"no schema":                replace(`,"inputSchema":{"type":"object"}}`, `}`),
		"a schema that is true":    replace(`"inputSchema":{"type":"object"}`, `"inputSchema":true`),
		"annotations in a list":    replace(`{"destructive":true,"x-y":1}`, `[]`),
		"a script that is none":    replace(`"exec(\"rm\")"`, `{}`),
	} {
		found, err := discovered(t, "", body, nil)
		var unreadable *tool.InvalidListError
		if !errors.As(err, &unreadable) || found != nil {
			t.Errorf("%s: it is loaded: %+v, %v", name, found, err)
		}
	}
	// One that is not there says nothing of what there is.
	var unreadable *tool.InvalidListError
	if _, err := discovered(t, "", goodToolset, func(s *tool.Server) { s.URL += "/elsewhere" }); err == nil || errors.As(err, &unreadable) {
		t.Errorf("there is none: %v", err)
	}
	secret := func(s *tool.Server) { s.Credential = tool.Bearer("env:TOKEN") }
	if found, err := discovered(t, "", goodToolset, secret); err != nil || len(found) != 2 {
		t.Errorf("with a credential: %v", err)
	}
	if _, err := discovered(t, "", replace("BASE/invoke", "https://elsewhere.example/x"), secret); err == nil {
		t.Error("a credential may go elsewhere")
	}
}

// Members of a toolset beside names, descriptions and schemas have no effect.
func TestTIP19NothingOfAToolsetIsBelieved(t *testing.T) {
	found, err := discovered(t, "", goodToolset, nil)
	if err != nil || strings.Contains(string(found[0].InputSchema)+found[0].Description+found[0].Title, "rm") {
		t.Errorf("%+v, %v", found, err)
	}
}

// A toolset that is read over TLS does not send its calls where there is none,
// whatever it says.
func TestTIP19AnEndpointWithoutTLS(t *testing.T) {
	endpoint := ""
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, strings.ReplaceAll(goodToolset, "BASE/invoke", endpoint))
	}))
	defer server.Close()
	options := addressed()
	options.Certificates = x509.NewCertPool()
	options.Certificates.AddCert(server.Certificate())
	e := newEngine(t, options)
	for at, good := range map[string]bool{
		server.URL + "/invoke": true, "/invoke": true, "https://elsewhere.example/invoke": true,
		strings.Replace(server.URL, "https:", "http:", 1) + "/invoke": false, "http://elsewhere.example/invoke": false, "HTTP://elsewhere.example/invoke": false,
	} {
		endpoint = at
		found, err := e.Discover(context.Background(), tool.Server{Name: "s", Type: "callback", URL: server.URL, Addresses: []string{"127.0.0.1/32"}})
		var unreadable *tool.InvalidListError
		if good && (err != nil || len(found) != 2 || !strings.HasPrefix(found[0].Endpoint, "https://")) || !good && (!errors.As(err, &unreadable) || found != nil) {
			t.Errorf("%s: %+v, %v", at, found, err)
		}
	}
}

// Only the call's own server is notified of its cancellation, once.
func TestLIF02TheToolIsToldOnce(t *testing.T) {
	var hits atomic.Int64
	var path, body atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		output := string(b)
		hits.Add(1)
		path.Store(&r.URL.Path)
		body.Store(&output)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer server.Close()
	options := addressed()
	options.ServerURL = func(name string) string {
		if name == "known" {
			return server.URL + "/base/"
		}
		return ""
	}
	e := newEngine(t, options)
	for server2, want := range map[string]string{"known": "/base/cancel_tool_call", "unknown": "/rap/cancel_tool_call", "": "/rap/cancel_tool_call"} {
		hits.Store(0)
		call := later(server.URL+"/rap/invoke", "read")
		call.Run.Server, call.Thread = server2, "t"
		e.Cancel(context.Background(), call)
		if hits.Load() != 1 || *path.Load() != want || *body.Load() != `{"thread_id":"t","tool_call_id":"call-1"}` {
			t.Errorf("%q: %d hits at %s: %s", server2, hits.Load(), *path.Load(), *body.Load())
		}
	}
	hits.Store(0)
	e.Cancel(context.Background(), loopback(server.URL, "read"))
	if hits.Load() != 0 {
		t.Error("a tool of another type was told")
	}
}
