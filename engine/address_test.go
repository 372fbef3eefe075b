package engine_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"testing"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/refusal"
)

func TestHostsThatMustNotBeReached(t *testing.T) {
	c := newCanary(t)
	resolver := (&names{answers: map[string][][]string{
		"loopback.example.test": {{"127.0.0.1"}},
		"mixed.example.test":    {{"127.0.0.1", "10.0.0.1", "169.254.169.254"}},
	}}).resolver(t)
	e := newEngine(t, engine.Options{Resolver: resolver})
	table := rows(t, "hosts.txt", 2)
	if len(table) < 40 {
		t.Errorf("the table has shrunk to %d rows", len(table))
	}
	for _, row := range table {
		for _, effect := range []string{"read", "once"} {
			call := loopback("http://"+row[1]+":"+c.port()+"/", effect)
			call.Run.Addresses = nil
			if _, got := run(t, e, call); string(got) != row[0] {
				t.Errorf("%s (%s): got %q, want %s", row[1], effect, got, row[0])
			}
		}
	}
	if n := c.hits.Load(); n != 0 {
		t.Errorf("the canary got %d requests", n)
	}
	// The canary answers where it is allowed, so that its silence says something.
	if result, got := run(t, e, loopback(c.URL, "read")); got != "" || string(result.Body) != "canary" {
		t.Errorf("allowed: %q %q", got, result.Body)
	}
}

func TestUnreadableAddressesRefuse(t *testing.T) {
	c := newCanary(t)
	e := newEngine(t, engine.Options{})
	call := loopback(c.URL, "read")
	call.Run.Addresses = []string{"127.0.0.1/32", "anything"}
	if _, got := run(t, e, call); got != refusal.ToolUnavailable || c.hits.Load() != 0 {
		t.Errorf("got %q and %d requests", got, c.hits.Load())
	}
}

// The name resolves to an allowed address first, and to the canary's after.
func TestRebinding(t *testing.T) {
	c := newCanary(t)
	allowed := newServerAt(t, "127.0.0.2:"+c.port())
	n := &names{answers: map[string][][]string{"tool.example.test": {{"127.0.0.2"}, {"127.0.0.1"}}}}
	e := newEngine(t, engine.Options{Resolver: n.resolver(t)})
	call := loopback("http://tool.example.test:"+c.port()+"/", "once")
	call.Run.Addresses = []string{"127.0.0.2/32"}
	if result, got := run(t, e, call); got != "" || string(result.Body) != "allowed" {
		t.Fatalf("the first answer: %q %q", got, result.Body)
	}
	for range 3 {
		if _, got := run(t, e, call); got != refusal.AddressBlocked {
			t.Errorf("after rebinding: got %q", got)
		}
	}
	if c.hits.Load() != 0 || allowed.hits.Load() != 1 {
		t.Errorf("canary %d, allowed %d", c.hits.Load(), allowed.hits.Load())
	}
}

// Where a name has several addresses, only allowed ones are connected to.
func TestMixedAnswers(t *testing.T) {
	c := newCanary(t)
	allowed := newServerAt(t, "127.0.0.2:"+c.port())
	n := &names{answers: map[string][][]string{"tool.example.test": {{"127.0.0.1", "127.0.0.2"}}}}
	e := newEngine(t, engine.Options{Resolver: n.resolver(t)})
	call := loopback("http://tool.example.test:"+c.port()+"/", "once")
	call.Run.Addresses = []string{"127.0.0.2/32"}
	if _, got := run(t, e, call); got != "" {
		t.Errorf("got %q", got)
	}
	if c.hits.Load() != 0 || allowed.hits.Load() != 1 {
		t.Errorf("canary %d, allowed %d", c.hits.Load(), allowed.hits.Load())
	}
}

// A connection made under one tool's allowance is of no use to another.
func TestAllowancesDoNotShareConnections(t *testing.T) {
	c := newCanary(t)
	e := newEngine(t, engine.Options{})
	call := loopback(c.URL, "read")
	if _, got := run(t, e, call); got != "" {
		t.Fatalf("got %q", got)
	}
	for _, addresses := range [][]string{nil, {}, {"127.0.0.2/32"}, {"10.0.0.0/8", "::1"}} {
		call.Run.Addresses = addresses
		if _, got := run(t, e, call); got != refusal.AddressBlocked {
			t.Errorf("with %v: got %q", addresses, got)
		}
	}
	if n := c.hits.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// That an address was blocked is said, also where an allowed one did not answer.
func TestBlockedIsSaidFirst(t *testing.T) {
	c := newCanary(t)
	n := &names{answers: map[string][][]string{"tool.example.test": {{"127.0.0.2", "127.0.0.1"}}}}
	e := newEngine(t, engine.Options{Resolver: n.resolver(t)})
	call := loopback("http://tool.example.test:"+c.port()+"/", "read")
	call.Run.Addresses = []string{"127.0.0.2/32"} // where nobody listens
	if result, got := run(t, e, call); got != refusal.AddressBlocked || result.Attempts != 1 || c.hits.Load() != 0 {
		t.Errorf("got %q after %d attempts, canary %d", got, result.Attempts, c.hits.Load())
	}
}

func TestNothingIsSentWithoutArguments(t *testing.T) {
	c := newCanary(t)
	e := newEngine(t, engine.Options{})
	for _, arguments := range [][]byte{nil, {}} {
		call := loopback(c.URL, "read")
		call.Arguments = arguments
		if _, got := run(t, e, call); got != refusal.Internal || c.hits.Load() != 0 {
			t.Errorf("got %q, canary %d", got, c.hits.Load())
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	c := newCanary(t)
	e := newEngine(t, engine.Options{})
	for _, status := range []int{300, 301, 302, 303, 304, 305, 307, 308} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", c.URL)
			w.Header().Set("Refresh", "0; url="+c.URL)
			w.WriteHeader(status)
		}))
		for _, effect := range []string{"read", "idempotent", "once"} {
			call := loopback(server.URL, effect)
			result, err := e.Run(t.Context(), call)
			if code(t, err) != refusal.ToolFailed || result.Attempts != 1 {
				t.Errorf("%d (%s): %v after %d attempts", status, effect, err, result.Attempts)
			}
			expectNone(t, err, c.URL, c.port())
			expectSome(t, err, strconv.Itoa(status))
		}
		server.Close()
	}
	if n := c.hits.Load(); n != 0 {
		t.Errorf("the canary got %d requests", n)
	}
}

// The proxy of the environment is not asked. The control shows that a client
// that looks at the environment would ask it.
func TestNoProxyFromTheEnvironment(t *testing.T) {
	c := newCanary(t)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, c.URL)
	}
	for _, name := range []string{"NO_PROXY", "no_proxy", "REQUEST_METHOD"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	server := newServerAt(t, "127.0.0.1:0")
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	target.Host = "tool.example.test:" + target.Port()
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: target}); err != nil || proxy == nil {
		t.Fatalf("the environment names no proxy (%v), so this shows nothing", err)
	}
	n := &names{answers: map[string][][]string{"tool.example.test": {{"127.0.0.1"}}}}
	e := newEngine(t, engine.Options{Resolver: n.resolver(t)})
	for _, effect := range []string{"read", "once"} {
		if result, got := run(t, e, loopback(target.String(), effect)); got != "" || string(result.Body) != "allowed" {
			t.Errorf("%s: %q %q", effect, got, result.Body)
		}
	}
	if c.hits.Load() != 0 || server.hits.Load() != 2 {
		t.Errorf("proxy %d, tool %d", c.hits.Load(), server.hits.Load())
	}
}
