package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestNothingOfAToolIsLogged: what a tool sends beyond its answer reaches no terminal
// and no log, by whatever library.
func TestNothingOfAToolIsLogged(t *testing.T) {
	t.Parallel()
	tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\nCANARY")
		_, _ = io.Copy(io.Discard, conn) // until it is found out
	}))
	defer tool.Close()
	config, _ := layout(t, map[string]string{
		"callgate.yaml": "registry: {files: [tools.yaml]}\n",
		"tools.yaml":    "tools: [{name: a.get, effect: read, input_schema: {type: object}, run: {type: http, method: GET, url: " + tool.URL + ", addresses: [127.0.0.1]}}]\n",
	})
	c := process(t.Context(), nil, "call", "--jsonl", "--config", config)
	c.Stdin = strings.NewReader(strings.Repeat(`{"id":"1","completion":"{\"tool\":{\"name\":\"a.get\",\"arguments\":{}}}"}`+"\n", 10))
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil || strings.Count(stdout.String(), `"output":{"value":""}`) != 10 {
		t.Fatalf("%v: %s%s", err, stdout.String(), stderr.String())
	}
	if stderr.Len() > 0 {
		t.Errorf("on standard error: %s", stderr.String())
	}
}
