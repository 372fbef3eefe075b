package engine_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/tool"
)

// benchServer answers with 700 bytes of JSON.
func benchServer(t testing.TB, secure bool) (*httptest.Server, *x509.CertPool) {
	answer := []byte(`{"results":[` + string(bytes.Repeat([]byte(`{"title":"t"},`), 50)) + `{}]}`)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer)
	})
	server := httptest.NewUnstartedServer(handler)
	roots := x509.NewCertPool()
	if secure {
		server.StartTLS()
		roots.AddCert(server.Certificate())
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server, roots
}

// exchanger makes the exchange of a call with a tuned client of net/http.
func exchanger(t testing.TB, url string, roots *x509.CertPool, arguments []byte) func() {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	t.Cleanup(client.CloseIdleConnections)
	return func() {
		response, err := client.Post(url, "application/json", bytes.NewReader(arguments))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(response.Body); err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
}

// runner makes a call with an engine.
func runner(t testing.TB, url, effect string, roots *x509.CertPool, arguments []byte) func() {
	e := newEngine(t, engine.Options{Certificates: roots})
	call := loopback(url, effect)
	call.Arguments = arguments
	return func() {
		if _, err := e.Run(context.Background(), call); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkHTTP is a call over HTTP to a server on this host, by effect, beside the same
// exchange by a tuned client of net/http. Both include the server.
func BenchmarkHTTP(b *testing.B) {
	arguments := []byte(`{"query":"AI agent memory issues","num_results":5}`)
	for _, scheme := range []string{"http", "https"} {
		server, roots := benchServer(b, scheme == "https")
		measure := func(name string, call func(b *testing.B) func()) {
			b.Run(scheme+"/"+name, func(b *testing.B) {
				run := call(b)
				b.ReportAllocs()
				for b.Loop() {
					run()
				}
			})
		}
		measure("client", func(b *testing.B) func() { return exchanger(b, server.URL, roots, arguments) })
		measure("read", func(b *testing.B) func() { return runner(b, server.URL, "read", roots, arguments) })
		measure("once", func(b *testing.B) func() { return runner(b, server.URL, "once", roots, arguments) })
	}
}

// TestCallsAllocateLittle: a call takes fewer allocations than the same exchange by a client
// of net/http, by two fifths, with those of the server in both.
func TestCallsAllocateLittle(t *testing.T) {
	arguments := []byte(`{"query":"AI agent memory issues","num_results":5}`)
	for _, secure := range []bool{false, true} {
		server, roots := benchServer(t, secure)
		client := testing.AllocsPerRun(200, exchanger(t, server.URL, roots, arguments))
		for _, effect := range []string{"read", "once"} {
			if n := testing.AllocsPerRun(200, runner(t, server.URL, effect, roots, arguments)); n > client*3/5 {
				t.Errorf("%s of %s: %.0f allocations, and %.0f with the client of net/http", effect, server.URL, n, client)
			}
		}
	}
}

// BenchmarkPlaces is a call whose arguments have places in the path, the query and a header,
// beside the same arguments as a body.
func BenchmarkPlaces(b *testing.B) {
	server, _ := benchServer(b, false)
	for _, method := range []string{"", "POST"} {
		b.Run("method "+method, func(b *testing.B) {
			e := newEngine(b, engine.Options{})
			call := loopback(server.URL, "read")
			call.Arguments = []byte(`{"user":"ada lovelace","page":3,"tags":["a","b"],"trace":"x-1"}`)
			if call.Run.Method = method; method != "" {
				call.Run.URL += "/users/{user}/posts?fixed=1"
				call.Run.Parameters = []tool.Parameter{
					{Argument: "user", In: "path"}, {Argument: "page", In: "query"}, {Argument: "tags", In: "query", Name: "tag"},
					{Argument: "trace", In: "header", Name: "X-Trace"},
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Run(context.Background(), call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDemo(b *testing.B) {
	e := newEngine(b, engine.Options{})
	for name, arguments := range map[string]string{
		"web.search":    `{"query":"AI agent memory issues","num_results":5}`,
		"math.evaluate": `{"expression":"(2 + 3) * 4 / 7"}`,
		"echo":          `{"path":"notes.md"}`,
	} {
		b.Run(name, func(b *testing.B) {
			call := builtIn(name, arguments)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Run(context.Background(), call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
