package engine_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/outbound"
)

func newOutbound(t testing.TB, options outbound.Options) *outbound.Client {
	t.Helper()
	o := outbound.New(options)
	t.Cleanup(o.Close)
	return o
}

// get sends a request, and returns what was answered.
func get(t testing.TB, o *outbound.Client, url string, addresses []string, once bool) (body string, sent bool, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		return "", false, err
	}
	response, sent, err := o.Send(request, addresses, once)
	if err != nil {
		return "", sent, err
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	return string(all), sent, err
}

// Transports outside of this package may connect to the same addresses as its own, and to
// no others.
func TestOutboundHosts(t *testing.T) {
	c := newCanary(t)
	n := &names{answers: map[string][][]string{
		"loopback.example.test": {{"127.0.0.1"}},
		"mixed.example.test":    {{"127.0.0.1", "10.0.0.1", "169.254.169.254"}},
	}}
	o := newOutbound(t, outbound.Options{Resolver: n.resolver(t)})
	for _, row := range rows(t, "hosts.txt", 2) {
		for _, once := range []bool{false, true} {
			if body, sent, err := get(t, o, "http://"+row[1]+":"+c.port()+"/", nil, once); err == nil || sent {
				t.Errorf("%s: %q, sent %v", row[1], body, sent)
			}
		}
	}
	if hits := c.hits.Load(); hits != 0 {
		t.Errorf("the canary got %d requests", hits)
	}
	if body, sent, err := get(t, o, c.URL, []string{"127.0.0.1/32"}, true); body != "canary" || !sent || err != nil {
		t.Errorf("allowed: %q, sent %v, %v", body, sent, err)
	}
}

// The name resolves to an allowed address first, and to the canary's after.
func TestOutboundRebinding(t *testing.T) {
	c := newCanary(t)
	allowed := newServerAt(t, "127.0.0.2:"+c.port())
	n := &names{answers: map[string][][]string{"tool.example.test": {{"127.0.0.2"}, {"127.0.0.1"}}}}
	o := newOutbound(t, outbound.Options{Resolver: n.resolver(t)})
	addresses := []string{"127.0.0.2/32"}
	if body, _, err := get(t, o, "http://tool.example.test:"+c.port()+"/", addresses, true); body != "allowed" || err != nil {
		t.Fatalf("the first answer: %q, %v", body, err)
	}
	for range 3 {
		_, sent, err := get(t, o, "http://tool.example.test:"+c.port()+"/", addresses, true)
		if err == nil || sent || !strings.Contains(outbound.DescribeError(err), "not among the listed addresses") {
			t.Errorf("after rebinding: sent %v, %v", sent, err)
		}
	}
	if c.hits.Load() != 0 || allowed.hits.Load() != 1 {
		t.Errorf("canary %d, allowed %d", c.hits.Load(), allowed.hits.Load())
	}
}

// With once, nothing is sent twice, whatever the request would allow.
func TestOutboundOnce(t *testing.T) {
	w := newWire(t, func(conn net.Conn, nth int) {
		if nth > 1 {
			conn.Close()
			return
		}
		say(page, "Content-Length: 2\r\n\r\nhi")(conn)
	})
	o := newOutbound(t, outbound.Options{})
	for range 3 {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, w.url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Idempotency-Key", "k") // by which the transport repeats requests
		response, sent, err := o.Send(request, []string{"127.0.0.1/32"}, true)
		if err != nil || !sent {
			t.Fatalf("sent %v: %v", sent, err)
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	if hits := w.hits.Load(); hits != 3 {
		t.Errorf("%d requests for three", hits)
	}
}
