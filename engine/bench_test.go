package engine_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/callgate/callgate/engine"
)

func benchServer(b *testing.B) string {
	answer := []byte(`{"results":[` + string(bytes.Repeat([]byte(`{"title":"t"},`), 50)) + `{}]}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer)
	}))
	b.Cleanup(server.Close)
	return server.URL
}

// BenchmarkHTTP is a call over HTTP to a server on this host, by effect, beside
// what net/http alone takes for the same exchange.
func BenchmarkHTTP(b *testing.B) {
	url := benchServer(b)
	arguments := []byte(`{"query":"AI agent memory issues","num_results":5}`)
	b.Run("client", func(b *testing.B) {
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		b.ReportAllocs()
		for b.Loop() {
			response, err := client.Post(url, "application/json", bytes.NewReader(arguments))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadAll(response.Body); err != nil {
				b.Fatal(err)
			}
			response.Body.Close()
		}
	})
	for _, effect := range []string{"read", "once"} {
		b.Run(effect, func(b *testing.B) {
			e := newEngine(b, engine.Options{})
			call := loopback(url, effect)
			call.Arguments = arguments
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
	for tool, arguments := range map[string]string{
		"web.search":    `{"query":"AI agent memory issues","num_results":5}`,
		"math.evaluate": `{"expression":"(2 + 3) * 4 / 7"}`,
		"echo":          `{"path":"notes.md"}`,
	} {
		b.Run(tool, func(b *testing.B) {
			call := builtIn(tool, arguments)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Run(context.Background(), call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
