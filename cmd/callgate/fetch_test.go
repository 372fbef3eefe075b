package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestImportFromURL: documents are fetched from the URL that was typed, within bounds, and found at a server.
func TestImportFromURL(t *testing.T) {
	const document = `{"openapi":"3.1.0","info":{"title":"P","version":"1"},"servers":[{"url":"/api"}],"paths":{"/pets":{"get":{"operationId":"pets"}}}}`
	mux := http.NewServeMux()
	serve := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, document) }
	mux.HandleFunc("/docs/pets.json", serve)
	mux.HandleFunc("/v3/api-docs", serve)
	mux.HandleFunc("/bare", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Replace(document, `"servers":[{"url":"/api"}],`, "", 1))
	})
	mux.Handle("/moved", http.RedirectHandler("/docs/pets.json", http.StatusFound))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	mux.Handle("/away", http.RedirectHandler("http://internal.example/x", http.StatusFound))
	mux.Handle("/inside", http.RedirectHandler("https://127.0.0.2:1/x", http.StatusFound))
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		block := bytes.Repeat([]byte(" "), 1<<20)
		for range maxImportBytes>>20 + 1 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	empty := httptest.NewServer(http.NotFoundHandler())
	defer empty.Close()
	for _, c := range []struct {
		args []string
		code int
		out  string // of standard output
		says string // on standard error
	}{
		{[]string{server.URL + "/docs/pets.json"}, exitAccepted, "url: " + server.URL + "/api/pets", "sha256:"},
		{[]string{server.URL + "/bare"}, exitAccepted, "url: " + server.URL + "/pets", fmt.Sprintf("fetched %s/bare: 103 bytes", server.URL)},
		{[]string{server.URL + "/moved"}, exitAccepted, "url: " + server.URL + "/api/pets", "redirected to " + server.URL + "/docs/pets.json"},
		{[]string{"--server", server.URL + "/"}, exitAccepted, "url: " + server.URL + "/api/pets", "fetched " + server.URL + "/v3/api-docs: "},
		{[]string{"--url", "https://pets.example", server.URL + "/bare"}, exitAccepted, "url: https://pets.example/pets", ""},
		{[]string{server.URL + "/loop"}, exitUsage, "", "redirects more than 3 times"},
		{[]string{server.URL + "/away"}, exitUsage, "", "http://internal.example is not fetched: expected https"},
		{[]string{server.URL + "/inside"}, exitUsage, "", "127.0.0.2 is not a public address"},
		{[]string{server.URL + "/large"}, exitUsage, "", "is larger than 64 MiB"},
		{[]string{server.URL + "/nothing?key=p4ss"}, exitUsage, "", "HTTP status 404"},
		{[]string{"--server", empty.URL}, exitUsage, "", "has no document at /openapi.json, /openapi.yaml"},
		{[]string{"http://api.example/openapi.json"}, exitUsage, "", "http://api.example is not fetched: expected https"},
		{[]string{"https://u:p4ss@api.example/openapi.json"}, exitUsage, "", "expected a URL without user info"},
		{[]string{"--server", server.URL, "file.json"}, exitUsage, "", "expected a file, a URL, or --server URL"},
		{nil, exitUsage, "", "expected a file, a URL, or --server URL"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), env{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}, append([]string{"tools", "import", "openapi"}, c.args...))
		if code != c.code || !strings.Contains(stdout.String(), c.out) || !strings.Contains(stderr.String(), c.says) || strings.Contains(stderr.String(), "p4ss") {
			t.Errorf("%v: exit code %d: %s%s", c.args, code, stdout.String(), stderr.String())
		}
	}
}
