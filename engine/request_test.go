package engine_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// arrived is a request as its server got it.
type arrived struct {
	method, uri, body string
	length            int64
	encoding          []string // of the transfer
	header            http.Header
}

// arrivals serves "done", and hands on each request.
type arrivals struct {
	*httptest.Server
	requests chan arrived
	hits     atomic.Int64
}

func newArrivals(t testing.TB) *arrivals {
	t.Helper()
	a := &arrivals{requests: make(chan arrived, 16)}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.hits.Add(1)
		body, _ := io.ReadAll(r.Body)
		a.requests <- arrived{r.Method, r.RequestURI, string(body), r.ContentLength, r.TransferEncoding, r.Header}
		io.WriteString(w, "done")
	}))
	t.Cleanup(a.Close)
	return a
}

// at is a call of one argument in one place.
func at(server, place string) tool.Call {
	call := loopback(server, "read")
	call.Run.Method = "POST"
	q := tool.Parameter{Argument: "p", In: "query", Name: "q"}
	switch place {
	case "path", "path-joined":
		call.Run.URL += "/a/{p}/z?fixed=%2B1"
		q = tool.Parameter{Argument: "p", In: "path"}
	case "dotted":
		call.Run.URL += "/a/.{p}/z?fixed=%2B1"
		q = tool.Parameter{Argument: "p", In: "path"}
	case "header", "head-joined":
		q = tool.Parameter{Argument: "p", In: "header", Name: "x-value"}
	case "body":
		q = tool.Parameter{Argument: "p", In: "body"}
	case "other":
		q.Argument = "another"
	}
	if strings.HasSuffix(place, "joined") {
		q.Join = "comma"
	}
	if q.In != "path" {
		call.Run.URL += "/a/z?fixed=%2B1"
	}
	call.Run.Parameters = []tool.Parameter{q}
	return call
}

// TestValues sends each value of testdata/values.txt, and looks at what arrives.
func TestValues(t *testing.T) {
	cases := rows(t, "values.txt", 3)
	if len(cases) < 100 {
		t.Fatalf("found %d cases; expected at least 100", len(cases))
	}
	server := newArrivals(t)
	e := newEngine(t, engine.Options{})
	for _, c := range cases {
		place, value, want := c[0], c[1], c[2]
		t.Run(place+" "+value, func(t *testing.T) {
			call := at(server.URL, place)
			call.Arguments = []byte(`{ "p" : ` + value + ` }`)
			before := server.hits.Load()
			result, err := e.Run(t.Context(), call)
			if want == "refused" || want == "unplaced" {
				expected := refusal.ToolFailed
				if want == "unplaced" {
					expected = refusal.ToolUnavailable
				}
				if code(t, err) != expected || result.Attempts != 0 || server.hits.Load() != before {
					t.Fatalf("got %v after %d attempts and %d requests", err, result.Attempts, server.hits.Load()-before)
				}
				return
			}
			if err != nil || string(result.Body) != "done" || result.Attempts != 1 {
				t.Fatalf("got %v, %+v", err, result)
			}
			got := <-server.requests
			uri, header, body := "/a/z?fixed=%2B1", []string(nil), ""
			switch {
			case place == "dotted" || strings.HasPrefix(place, "path"):
				uri = "/a/" + want + "/z?fixed=%2B1"
			case want == "left-out":
			case place == "query" || place == "joined":
				uri += "&" + want
			case place == "head-joined":
				header = []string{want}
			case place == "header":
				header = []string{value}
				var s string
				if json.Unmarshal([]byte(value), &s) == nil {
					header = []string{s}
				}
			case place == "body":
				body = value
			}
			if got.method != "POST" || got.uri != uri || got.body != body || !slices.Equal(got.header["X-Value"], header) {
				t.Errorf("arrived %+v\nexpected %s, %q and %q", got, uri, header, body)
			}
			names := []string{"Accept", "Accept-Encoding", "Callgate-Call-Id", "Content-Length", "User-Agent"}
			if body != "" {
				names = append(names, "Content-Type")
			}
			if header != nil {
				names = append(names, "X-Value")
			}
			slices.Sort(names)
			if found := slices.Sorted(maps.Keys(got.header)); !slices.Equal(found, names) {
				t.Errorf("headers %v; expected %v", found, names)
			}
		})
	}
}

// TestMessagesOfValues: what is refused is said to the model with the argument's
// name and without its value, and to the operator without either.
func TestMessagesOfValues(t *testing.T) {
	e := newEngine(t, engine.Options{})
	call := at("http://127.0.0.1:1", "path")
	call.Arguments = []byte(`{"p":"..;SECRET"}`)
	_, err := e.Run(t.Context(), call)
	expectNone(t, err, "SECRET")
	if refused := (*refusal.Error)(nil); !errors.As(err, &refused) || refused.Message != `The argument "p" cannot be sent: a part of a path cannot be . or ... Nothing was done; send another value.` {
		t.Errorf("got %+v", err)
	}
}

// TestEmptyListsThatAct: an empty list has no place in a query or a header. A request that acts would be another one
// without it, perhaps on everything.
func TestEmptyListsThatAct(t *testing.T) {
	server := newArrivals(t)
	e := newEngine(t, engine.Options{})
	for _, place := range []string{"query", "joined", "head-joined", "body"} {
		for effect, want := range map[string]refusal.Code{"read": "", "idempotent": refusal.ToolFailed, "once": refusal.ToolFailed} {
			if place == "body" {
				want = ""
			}
			call, before := at(server.URL, place), server.hits.Load()
			call.Effect, call.Arguments = effect, []byte(`{"p":[]}`)
			if _, err := e.Run(t.Context(), call); code(t, err) != want || (server.hits.Load() == before) != (want != "") {
				t.Errorf("%s, %s: %v", place, effect, err)
			}
		}
	}
}

func TestLongValues(t *testing.T) {
	t.Parallel()
	server := newArrivals(t)
	e := newEngine(t, engine.Options{})
	for _, place := range []string{"path", "query", "header", "body"} {
		for _, length := range []int{4000, 1 << 20} {
			call := at(server.URL, place)
			call.Arguments = []byte(`{"p":"` + strings.Repeat("x", length) + `"}`)
			_, got := run(t, e, call)
			want := refusal.Code("")
			if length > 4000 && place != "body" {
				want = refusal.ToolFailed
			}
			if got != want {
				t.Errorf("%d bytes in %s: got %q; expected %q", length, place, got, want)
			}
			if want == "" {
				<-server.requests
			}
		}
	}
	call := at(server.URL, "query")
	call.Arguments = []byte(`{"p":[` + strings.Repeat(`"",`, 300_000) + `""]}`)
	if _, got := run(t, e, call); got != refusal.ToolFailed {
		t.Errorf("a list of many: got %q", got)
	}
	if n := server.hits.Load(); n != 5 {
		t.Errorf("%d requests; expected 5", n)
	}
}

// TestTemplates: what the operator's file says that no request can be made of.
func TestTemplates(t *testing.T) {
	t.Parallel()
	server := newArrivals(t)
	e := newEngine(t, engine.Options{})
	p := tool.Parameter{Argument: "p", In: "path"}
	for why, c := range map[string]struct {
		url, arguments string
		parameters     []tool.Parameter
		want           refusal.Code
	}{
		"an argument is missing":     {"/a/{p}", `{}`, []tool.Parameter{p}, refusal.ToolFailed},
		"nothing fills the braces":   {"/a/{p}/{r}", `{"p":"x"}`, []tool.Parameter{p}, refusal.ToolUnavailable},
		"braces that stay open":      {"/a/{p", `{"p":"x"}`, []tool.Parameter{p}, refusal.ToolUnavailable},
		"a place that is none":       {"/a", `{"p":"x"}`, []tool.Parameter{{Argument: "p", In: "cookie"}}, refusal.ToolUnavailable},
		"one of the gateway's":       {"/a", `{"p":"x"}`, []tool.Parameter{{Argument: "p", In: "header", Name: "callgate-call-id"}}, refusal.ToolUnavailable},
		"a header that is none":      {"/a", `{"p":"x"}`, []tool.Parameter{{Argument: "p", In: "header", Name: "a b"}}, refusal.ToolUnavailable},
		"arguments of no object":     {"/a", `["p"]`, nil, refusal.Internal},
		"arguments that end early":   {"/a", `{"p":"x"`, nil, refusal.Internal},
		"two objects":                {"/a", `{} {}`, nil, refusal.Internal},
		"an argument that is twice":  {"/a/{p}", `{"p":"x","p":"y"}`, []tool.Parameter{p}, refusal.Internal},
		"dots that two parts make":   {"/a/{p}{q}", `{"p":".","q":"."}`, []tool.Parameter{p, {Argument: "q", In: "path"}}, refusal.ToolFailed},
		"an escaped dot beside":      {"/a/%2e{p}", `{"p":"."}`, []tool.Parameter{p}, refusal.ToolFailed},
		"a host that an argument is": {"{p}/a", `{"p":"9"}`, []tool.Parameter{p}, refusal.ToolUnavailable},
	} {
		call := loopback(server.URL+c.url, "read")
		call.Run.Method, call.Run.Parameters, call.Arguments = "GET", c.parameters, []byte(c.arguments)
		if _, got := run(t, e, call); got != c.want {
			t.Errorf("%s: got %q; expected %q", why, got, c.want)
		}
	}
	if n := server.hits.Load(); n != 0 {
		t.Errorf("%d requests; expected none", n)
	}
}

// TestMethods: each method arrives as itself, with the body that it has.
func TestMethods(t *testing.T) {
	server := newArrivals(t)
	e := newEngine(t, engine.Options{})
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		for _, effect := range []string{"read", "idempotent", "once"} {
			for _, arguments := range []string{`{}`, `{"b":{"x":1.0}}`} {
				if arguments != `{}` && (method == "GET" || method == "HEAD") {
					continue
				}
				call := loopback(server.URL, effect)
				call.Run.Method, call.Arguments = method, []byte(arguments)
				call.Run.Parameters = []tool.Parameter{{Argument: "b", In: "body"}}
				result, got := run(t, e, call)
				want := "done"
				if method == "HEAD" {
					want = ""
				}
				if got != "" || string(result.Body) != want || result.JSON {
					t.Fatalf("%s (%s): got %q and %+v", method, effect, got, result)
				}
				a := <-server.requests
				body, length := "", int64(0)
				if arguments != `{}` {
					body = `{"x":1.0}`
					length = int64(len(body))
				}
				if a.method != method || a.uri != "/" || a.body != body || a.length != length || a.encoding != nil {
					t.Errorf("%s (%s) of %s: arrived %+v", method, effect, arguments, a)
				}
				for name, has := range map[string]bool{
					"Content-Type":    body != "",
					"Idempotency-Key": effect == "idempotent",
					"Content-Length":  body != "" || method == "POST" || method == "PUT" || method == "PATCH",
				} {
					if _, found := a.header[name]; found != has {
						t.Errorf("%s (%s) of %s: %s is there: %v", method, effect, arguments, name, found)
					}
				}
			}
		}
	}
}

// TestMethodsAreTriedByEffect: what may be tried again is not the method's to say.
func TestMethodsAreTriedByEffect(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	c := newCanary(t)
	redirecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, c.URL, http.StatusTemporaryRedirect)
	}))
	defer redirecting.Close()
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		e := newEngine(t, engine.Options{})
		for effect, want := range map[string]int64{"read": 3, "idempotent": 3, "once": 1} {
			call := loopback(server.URL+"/{p}", effect)
			call.Run.Method, call.Run.Parameters, call.Arguments = method, []tool.Parameter{{Argument: "p", In: "path"}}, []byte(`{"p":"x"}`)
			if effect == "idempotent" && testing.Short() {
				continue
			}
			hits.Store(0)
			result, got := run(t, e, call)
			if code := map[bool]refusal.Code{true: refusal.OutcomeUnknown, false: refusal.ToolUnavailable}[effect == "once"]; got != code || hits.Load() != want || int64(result.Attempts) != want {
				t.Errorf("%s (%s): got %q after %d requests", method, effect, got, hits.Load())
			}
			call.Run.URL = redirecting.URL + "/{p}"
			if result, got := run(t, e, call); got != refusal.ToolFailed || result.Attempts != 1 {
				t.Errorf("%s (%s): a redirect gave %q after %d attempts", method, effect, got, result.Attempts)
			}
			call.Run.URL, call.Run.Addresses = c.URL+"/{p}", nil
			if _, got := run(t, e, call); got != refusal.AddressBlocked {
				t.Errorf("%s (%s): a private address gave %q", method, effect, got)
			}
		}
	}
	if n := c.hits.Load(); n != 0 {
		t.Errorf("the canary got %d requests", n)
	}
}

// TestCredential: what the tool's server asks for is read for every call, and a call
// without it is not sent. Nobody is told what it is.
func TestCredential(t *testing.T) {
	server := newArrivals(t)
	secrets := map[string]string{"env:TOKEN": "tok-SECRET.1~+/=", "env:EMPTY": "", "env:BREAK": "SECRET\r\nX: y", "env:SPACE": "SECRET SECRET", "env:WIDE": "SECRETé"}
	reads := 0
	e := newEngine(t, engine.Options{ReadSecret: func(_ context.Context, place string) (string, error) {
		reads++
		if s, ok := secrets[place]; ok {
			return s, nil
		}
		return "", errors.New("found no secret at " + place)
	}})
	for place, want := range map[string]refusal.Code{
		"": "", "env:TOKEN": "", "env:NONE": refusal.ToolUnavailable, "env:EMPTY": refusal.ToolUnavailable,
		"env:BREAK": refusal.ToolUnavailable, "env:SPACE": refusal.ToolUnavailable, "env:WIDE": refusal.ToolUnavailable,
	} {
		for _, method := range []string{"", "GET"} {
			call := loopback(server.URL, "read")
			call.Run.Method, call.Arguments = method, []byte(`{}`)
			if place != "" {
				call.Run.Credential = tool.Bearer(place)
			}
			result, err := e.Run(t.Context(), call)
			if code(t, err) != want || want != "" && result.Attempts != 0 {
				t.Fatalf("%s: got %v after %d attempts", place, err, result.Attempts)
			}
			expectNone(t, err, "SECRET")
			if want != "" {
				continue
			}
			var sent []string
			if place != "" {
				sent = []string{"Bearer " + secrets[place]}
			}
			if a := <-server.requests; !slices.Equal(a.header["Authorization"], sent) {
				t.Errorf("%s: sent %q", place, a.header["Authorization"])
			}
		}
	}
	if hits := server.hits.Load(); hits != 4 || reads != 12 {
		t.Errorf("%d requests and %d readings; expected 4 and 12", hits, reads)
	}
	without := newEngine(t, engine.Options{})
	call := loopback(server.URL, "read")
	call.Run.Credential = tool.Bearer("env:TOKEN")
	if _, got := run(t, without, call); got != refusal.ToolUnavailable {
		t.Errorf("without any secrets: got %q", got)
	}
}

// TestRefusedStreams: a server of HTTP/2 that says it did nothing is not believed,
// whatever the transport does with requests without a body. A call of the effect
// once is sent once, and others may be tried again by our own count.
func TestRefusedStreams(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	l, err := tls.Listen("tcp4", "127.0.0.1:0", &tls.Config{Certificates: server.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer conn.Close()
				refuseStreams(conn, &requests)
			})
		}
	})
	t.Cleanup(func() { l.Close(); served.Wait() })
	for _, method := range []string{"GET", "POST", "DELETE", "PUT"} {
		for effect, want := range map[string]int64{"once": 1, "read": 3} {
			for _, arguments := range []string{`{}`, `{"b":1}`} {
				if method == "GET" && arguments != `{}` {
					continue
				}
				e := newEngine(t, engine.Options{Certificates: roots})
				call := loopback("https://"+l.Addr().String()+"/", effect)
				call.Run.Method, call.Run.Parameters, call.Arguments = method, []tool.Parameter{{Argument: "b", In: "body"}}, []byte(arguments)
				requests.Store(0)
				result, got := run(t, e, call)
				code := refusal.ToolUnavailable
				if effect == "once" {
					code = refusal.OutcomeUnknown
				}
				if got != code || requests.Load() != want || int64(result.Attempts) != want {
					t.Errorf("%s (%s) of %s: got %q after %d requests and %d attempts", method, effect, arguments, got, requests.Load(), result.Attempts)
				}
				e.Close()
			}
		}
	}
}

// refuseStreams speaks as much of HTTP/2 as it takes to refuse every stream.
func refuseStreams(conn net.Conn, requests *atomic.Int64) {
	const (
		headers, reset, settings = 1, 3, 4
		acknowledged             = 1
	)
	frame := func(kind, flags byte, stream, payload []byte) {
		conn.Write(slices.Concat([]byte{0, 0, byte(len(payload)), kind, flags}, stream, payload))
	}
	if _, err := io.CopyN(io.Discard, conn, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	frame(settings, 0, make([]byte, 4), nil)
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		length := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, conn, length); err != nil {
			return
		}
		switch {
		case head[3] == headers:
			requests.Add(1)
			frame(reset, 0, head[5:], []byte{0, 0, 0, 7}) // REFUSED_STREAM
		case head[3] == settings && head[4]&acknowledged == 0:
			frame(settings, acknowledged, make([]byte, 4), nil)
		}
	}
}

// FuzzArguments: whatever the arguments hold, a request that arrives has the
// template's path, query and headers, with the values where they belong.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{"", "a", "..", "a/b", "%2e%2e%2f", "?x=1&q=2", "#f", "a\r\nX-Admin: 1", "\x00", "é😀", "{q}", "a,b", strings.Repeat("%", 3000)} {
		f.Add(seed, seed, seed, seed)
	}
	server := newArrivals(f)
	e := newEngine(f, engine.Options{})
	f.Fuzz(func(t *testing.T, path, query, item, header string) {
		if !utf8.ValidString(path + " " + query + " " + item + " " + header) {
			t.Skip("no judged text")
		}
		arguments, err := json.Marshal(map[string]any{"p": path, "q": query, "l": []string{item, query}, "h": header})
		if err != nil {
			t.Fatal(err)
		}
		call := loopback(server.URL+"/a/{p}/z?fixed=1", "read")
		call.Arguments, call.Run.Method = arguments, "GET"
		call.Run.Parameters = []tool.Parameter{
			{Argument: "p", In: "path"}, {Argument: "q", In: "query"}, {Argument: "l", In: "query", Name: "list[]"}, {Argument: "h", In: "header", Name: "X-Value"},
		}
		before := server.hits.Load()
		if _, got := run(t, e, call); got != "" {
			if got != refusal.ToolFailed || server.hits.Load() != before {
				t.Fatalf("refused with %q, after %d requests", got, server.hits.Load()-before)
			}
			return
		}
		a := <-server.requests
		raw, rest, _ := strings.Cut(a.uri, "?")
		segments := strings.Split(raw, "/")
		if len(segments) != 4 || segments[1] != "a" || segments[3] != "z" {
			t.Fatalf("the path is %q", raw)
		}
		if plain, err := url.PathUnescape(segments[2]); err != nil || plain != path || plain == "." || plain == ".." || plain == "" || strings.ContainsAny(plain, `/\`) {
			t.Errorf("the part is %q; expected %q", segments[2], path)
		}
		members, err := url.ParseQuery(rest)
		if want := (url.Values{"fixed": {"1"}, "q": {query}, "list[]": {item, query}}); err != nil || fmt.Sprint(members) != fmt.Sprint(want) {
			t.Errorf("the query is %q (%v)", rest, err)
		}
		if names := slices.Sorted(maps.Keys(a.header)); !slices.Equal(names, []string{"Accept", "Accept-Encoding", "Callgate-Call-Id", "User-Agent", "X-Value"}) {
			t.Errorf("the headers are %v", names)
		}
		if !slices.Equal(a.header["X-Value"], []string{header}) || a.body != "" || a.method != "GET" {
			t.Errorf("arrived %+v; expected the header %q", a, header)
		}
	})
}
