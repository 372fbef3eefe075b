package server_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/iotest"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/server/framing"
	"github.com/callgate/callgate/internal/testkit/detector"
	"github.com/callgate/callgate/telemetry"
)

// callServer is a server with one route that takes a body as POST /v1/calls does, and answers
// at once: all that a call costs outside of the kernel.
func callServer(answer []byte) *server.Server {
	s := server.New(server.Options{
		Metrics: telemetry.New(), Log: slog.New(slog.NewJSONHandler(io.Discard, nil)), Refuse: refuseAs("server"),
		Identify: func(_ context.Context, r *gateway.Request) (string, error) { return r.CallerAddress, nil },
	})
	s.Mount(server.Route{
		Method: http.MethodPost, Path: "/v1/calls", MaxBody: func() int { return 6<<20 + 64<<10 },
		MediaTypes: []string{"application/json", "text/plain"}, ExtraHeaders: []string{"Callgate-Finish-Reason"},
		Serve: func(c *gin.Context, r server.Request) {
			if len(r.Body) != 300 {
				panic("the body is not whole")
			}
			r.Judged.Set(gateway.Summary{Agent: "Analyst", Tool: "web.search", Verdict: gateway.VerdictCall})
			server.SetHeader(c, server.HeaderCallID, "0123456789abcdef0123456789abcdef")
			c.Writer.Header()["Content-Type"] = contentJSON
			c.Writer.WriteHeader(http.StatusOK)
			_, _ = c.Writer.Write(answer)
		},
	})
	return s
}

var contentJSON = []string{"application/json; charset=utf-8"}

// call is a request of 300 bytes that can be sent again.
type call struct {
	request http.Request
	body    *bytes.Reader
	data    []byte
}

func newCall() *call {
	c := &call{data: bytes.Repeat([]byte("a"), 300)}
	c.body = bytes.NewReader(c.data)
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	r := http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: "/v1/calls"}, Host: "127.0.0.1:8080", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/plain"}, "Content-Length": {"300"}}, ContentLength: 300, RemoteAddr: "127.0.0.1:51234",
		RequestURI: "/v1/calls", Body: io.NopCloser(iotest.DataErrReader(c.body)),
	}
	c.request = *r.WithContext(context.WithValue(context.Background(), http.LocalAddrContextKey, net.Addr(local)))
	return c
}

func (c *call) send(h http.Handler, w *discardWriter) {
	c.body.Reset(c.data)
	clear(w.header)
	h.ServeHTTP(w, &c.request)
}

// discardWriter is a response that is not kept. Its connection bears deadlines.
type discardWriter struct {
	header http.Header
	status int
}

func (d *discardWriter) Header() http.Header              { return d.header }
func (d *discardWriter) WriteHeader(status int)           { d.status = status }
func (d *discardWriter) Write(p []byte) (int, error)      { return len(p), nil }
func (*discardWriter) SetReadDeadline(time.Time) error    { return nil }
func (*discardWriter) SetWriteDeadline(t time.Time) error { return nil }

// TestHandlerAllocations: the request with its answer, its body, the address of its caller and
// the header of its trace.
func TestHandlerAllocations(t *testing.T) {
	if detector.On {
		t.Skip("the race detector allocates")
	}
	s, c, w := callServer(bytes.Repeat([]byte("b"), 200)), newCall(), &discardWriter{header: http.Header{}}
	if n := testing.AllocsPerRun(200, func() { c.send(s, w) }); n > 4 || w.status != http.StatusOK {
		t.Errorf("%v allocations, status %d", n, w.status)
	}
}

func BenchmarkHandler(b *testing.B) {
	s, c, w := callServer(bytes.Repeat([]byte("b"), 200)), newCall(), &discardWriter{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		c.send(s, w)
	}
	if w.status != http.StatusOK {
		b.Fatal(w.status)
	}
}

// BenchmarkLoopback sends the call over a connection: beside the handler, what net/http, the
// framing listener and the bound of connections cost.
func BenchmarkLoopback(b *testing.B) {
	for name, bare := range map[string]bool{"bare": true, "server": false} {
		b.Run(name, func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			answer := bytes.Repeat([]byte("b"), 200)
			hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = w.Write(answer)
			})}
			if !bare {
				hs.Handler = callServer(answer)
				l = framing.NewListener(l)
				server.LimitConnections(hs, 64)
			}
			go func() { _ = hs.Serve(l) }()
			defer hs.Close()
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			request := append([]byte("POST /v1/calls HTTP/1.1\r\nHost: "+l.Addr().String()+"\r\nContent-Type: text/plain\r\nContent-Length: 300\r\n\r\n"), bytes.Repeat([]byte("a"), 300)...)
			buffer := make([]byte, 4096)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Write(request); err != nil {
					b.Fatal(err)
				}
				for {
					n, err := c.Read(buffer)
					if err != nil {
						b.Fatal(err)
					}
					if bytes.HasSuffix(buffer[:n], []byte("b")) {
						break
					}
				}
			}
		})
	}
}
