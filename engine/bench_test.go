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
)

// benchServer answers with 700 bytes of JSON.
func benchServer(b *testing.B, secure bool) *httptest.Server {
	answer := []byte(`{"results":[` + string(bytes.Repeat([]byte(`{"title":"t"},`), 50)) + `{}]}`)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer)
	})
	server := httptest.NewUnstartedServer(handler)
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	b.Cleanup(server.Close)
	return server
}

// BenchmarkHTTP is a call over HTTP to a server on this host, by effect, beside the same
// exchange by a tuned client of net/http. Both include the server.
func BenchmarkHTTP(b *testing.B) {
	arguments := []byte(`{"query":"AI agent memory issues","num_results":5}`)
	for _, scheme := range []string{"http", "https"} {
		server := benchServer(b, scheme == "https")
		roots := x509.NewCertPool()
		if scheme == "https" {
			roots.AddCert(server.Certificate())
		}
		b.Run(scheme+"/client", func(b *testing.B) {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024, TLSClientConfig: &tls.Config{RootCAs: roots}}}
			defer client.CloseIdleConnections()
			b.ReportAllocs()
			for b.Loop() {
				response, err := client.Post(server.URL, "application/json", bytes.NewReader(arguments))
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
			b.Run(scheme+"/"+effect, func(b *testing.B) {
				e := newEngine(b, engine.Options{Certificates: roots})
				call := loopback(server.URL, effect)
				call.Arguments = arguments
				b.ReportAllocs()
				for b.Loop() {
					if _, err := e.Run(b.Context(), call); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
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
