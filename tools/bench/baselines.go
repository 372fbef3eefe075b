package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gin-gonic/gin"
)

// output is the answer of the tool.
const output = `{"results":[{"title":"AI agent memory issues","url":"https://example.com/agents/memory-issues",` +
	`"snippet":"Agents that run for a long time meet three memory issues."}],"total":1}`

// tool serves the tool: it reads each request and answers with output.
func tool() error {
	return listen("tool", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, output)
	}))
}

// tunedTransport keeps as many idle connections as any load here uses.
func tunedTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 1024, 1024
	return t
}

// proxy serves one of the baselines on gin, and prints its address.
func proxy(kind, to string) error {
	target, err := url.Parse(to)
	if err != nil {
		return err
	}
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	switch kind {
	case "own":
		client := &http.Client{Transport: tunedTransport()}
		e.Any("/*path", func(c *gin.Context) { buffered(c, client, to) })
	case "tuned", "untuned":
		reverse := httputil.NewSingleHostReverseProxy(target)
		if kind == "tuned" {
			reverse.Transport = tunedTransport()
		}
		e.Any("/*path", func(c *gin.Context) { reverse.ServeHTTP(c.Writer, c.Request) })
	default:
		return fmt.Errorf("found %q, expected tuned, untuned or own", kind)
	}
	return listen("proxy", e)
}

// buffered reads a request whole, sends it on, and answers with the whole answer.
func buffered(c *gin.Context, client *http.Client, to string) {
	body, err := io.ReadAll(c.Request.Body)
	if err != nil {
		c.Status(http.StatusBadRequest)
		return
	}
	r, err := client.Post(to+c.Request.URL.Path, "application/json", bytes.NewReader(body))
	if err != nil {
		c.Status(http.StatusBadGateway)
		return
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err != nil {
		c.Status(http.StatusBadGateway)
		return
	}
	c.Data(r.StatusCode, "application/json", answer)
}

// listen takes a free port, serves there, and prints its address.
func listen(name string, handler http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("%s listening on %s\n", name, listener.Addr())
	return http.Serve(listener, handler)
}

// nginx starts nginx before a server; nothing where it is not installed.
func (h *hall) nginx(ctx context.Context, address string) (*subject, error) {
	program, _ := exec.LookPath("nginx") // empty where it is not there
	if program == "" {
		fmt.Fprintln(os.Stderr, "left out: nginx, since it is not installed")
		return nil, nil
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(h.work, "nginx")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var temporary strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temporary, "%s_temp_path %s/%s; ", kind, dir, kind)
	}
	text := fmt.Sprintf(`worker_processes 2; daemon off; pid %s/pid; error_log /dev/null;
events { worker_connections 1024; }
http {
	access_log off; %s
	upstream tool { server %s; keepalive 256; }
	server {
		listen 127.0.0.1:%d; keepalive_requests 100000000;
		location / { proxy_pass http://tool; proxy_http_version 1.1; proxy_set_header Connection ""; }
	}
}
`, dir, temporary.String(), address, port)
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, err
	}
	c := exec.Command(program, "-c", path)
	ended, err := h.begin(c)
	if err != nil {
		return nil, err
	}
	s := &subject{name: "nginx", pid: c.Process.Pid, url: fmt.Sprintf("http://127.0.0.1:%d", port)}
	return s, waitFor(ctx, s.url+"/echo", ended)
}
