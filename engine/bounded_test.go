package engine_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/tool"
)

func TestBounded(t *testing.T) {
	e := engine.New(engine.Options{})
	defer e.Close()
	for name, c := range map[string]struct {
		run  tool.Run
		want bool
	}{
		"over HTTP":                            {tool.Run{Type: "http", URL: "http://a.example/"}, true},
		"over HTTPS":                           {tool.Run{Type: "http", URL: "https://a.example/"}, false},
		"over HTTPS in capitals":               {tool.Run{Type: "http", URL: "HTTPS://a.example/"}, false},
		"with a credential of the environment": {tool.Run{Type: "http", URL: "http://a.example/", Credential: tool.Bearer("env:KEY")}, true},
		"with a credential in a file":          {tool.Run{Type: "http", URL: "http://a.example/", Credential: tool.Bearer("file:/key")}, false},
		"as its caller":                        {tool.Run{Type: "http", URL: "http://a.example/", Credential: &tool.Credential{In: tool.InExchange, Secret: "env:KEY"}}, false},
		"of a program":                         {tool.Run{Type: "mcp"}, false},
		"of OXP":                               {tool.Run{Type: "oxp", URL: "http://a.example/"}, false},
		"of the demonstration":                 {tool.Run{Type: "demo"}, false},
		"of no type":                           {tool.Run{}, false},
	} {
		if got := e.Bounded(c.run); got != c.want {
			t.Errorf("a tool %s: %t, want %t", name, got, c.want)
		}
	}
}

// TestBoundedCallsEnd: beside the hostile answers, a server that accepts and reads nothing:
// neither the handshake of TLS nor a long request takes longer than the context.
func TestBoundedCallsEnd(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	e := engine.New(engine.Options{})
	defer e.Close()
	arguments := []byte(`{"text":"` + strings.Repeat("x", 32<<20) + `"}`)
	for _, scheme := range []string{"http", "https"} {
		for _, effect := range []string{"read", "once"} {
			task := tool.Call{ID: "id", Tool: "a.b", Effect: effect, Arguments: arguments, Run: tool.Run{
				Type: "http", URL: scheme + "://" + listener.Addr().String() + "/", Addresses: []string{"127.0.0.1/32"}, Timeout: time.Minute,
			}}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			start := time.Now()
			_, err := e.Run(ctx, task)
			cancel()
			if took := time.Since(start); err == nil || took > 20*time.Second {
				t.Errorf("%s, %s: ended after %v: %v", scheme, effect, took, err)
			}
		}
	}
}

// TestUnreadHTTP2: a server of HTTP/2 that answers and does not read the request. Reading its
// answer waits until it reads, so the engine must not say that it bounds the call.
func TestUnreadHTTP2(t *testing.T) {
	t.Parallel()
	certified := httptest.NewUnstartedServer(http.NotFoundHandler())
	certified.StartTLS()
	defer certified.Close()
	l, err := tls.Listen("tcp4", "127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	release := make(chan struct{})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				// Frames of HTTP/2: windows as large as they can be; once the request fills the
				// connection, the status 200 of stream 1 and a part of its body.
				c.Write([]byte("\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x7f\xff\xff\xff"))
				c.Write([]byte("\x00\x00\x04\x08\x00\x00\x00\x00\x00\x7f\xff\x00\x00"))
				time.Sleep(500 * time.Millisecond)
				c.Write([]byte("\x00\x00\x01\x01\x04\x00\x00\x00\x01\x88"))
				c.Write(append([]byte("\x00\x40\x00\x00\x00\x00\x00\x00\x01"), make([]byte, 1<<14)...))
				<-release
			}()
		}
	}()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	e := newEngine(t, engine.Options{Certificates: roots})
	task := loopback("https://"+l.Addr().String()+"/", "once")
	task.Arguments = []byte(`{"text":"` + strings.Repeat("x", 32<<20) + `"}`)
	task.Run.Timeout = time.Second
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = e.Run(context.Background(), task)
	}()
	select {
	case <-ended:
	case <-time.After(4 * time.Second):
		if e.Bounded(task.Run) {
			t.Error("a call that the engine bounds did not end")
		}
	}
	close(release)
	<-ended
}
