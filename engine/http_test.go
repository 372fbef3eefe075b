package engine_test

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/internal/testkit/ports"
	"github.com/callgate/callgate/refusal"
)

// newServerAt serves "allowed" on an address of loopback and counts.
func newServerAt(t testing.TB, address string) *canary {
	t.Helper()
	l, err := net.Listen("tcp4", address)
	if err != nil {
		t.Skipf("skipped: this host cannot listen on %s: %v", address, err)
	}
	c := &canary{}
	c.Server = &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c.hits.Add(1)
		io.WriteString(w, "allowed")
	})}}
	// Each request resolves the name of this server again.
	c.Config.SetKeepAlivesEnabled(false)
	c.Start()
	t.Cleanup(c.Close)
	return c
}

// expectNone fails where what an operator reads holds any of the texts.
func expectNone(t testing.TB, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err != nil && strings.Contains(err.Error(), text) {
			t.Errorf("%q is in: %v", text, err)
		}
	}
}

func expectSome(t testing.TB, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%q is not in: %v", text, err)
	}
}

func TestWhatTheToolSees(t *testing.T) {
	type seen struct {
		method, path, query, body, host string
		header                          http.Header
	}
	got := make(chan seen, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.Method, r.URL.Path, r.URL.RawQuery, string(body), r.Host, r.Header}
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		w.Header().Set("Set-Cookie", "a=b")
		io.WriteString(w, `{"ok":true}`)
	}))
	defer server.Close()
	e := newEngine(t, engine.Options{})
	const arguments = "{ \"big\" : 12345678901234567890123, \"x\":1.0 }"
	for effect, more := range map[string][]string{"read": nil, "idempotent": {"Idempotency-Key"}, "once": nil, "": nil} {
		for range 2 { // the second would carry a cookie
			call := loopback(server.URL+"/a%2Fb?k=v", effect)
			call.Arguments = []byte(arguments)
			result, code := run(t, e, call)
			if code != "" || string(result.Body) != `{"ok":true}` || !result.JSON || result.Attempts != 1 {
				t.Fatalf("%q: %q %+v", effect, code, result)
			}
			s := <-got
			if s.method != "POST" || s.path != "/a/b" || s.query != "k=v" || s.body != arguments {
				t.Errorf("%q: the tool saw %+v", effect, s)
			}
			want := append([]string{"Accept", "Accept-Encoding", "Callgate-Call-Id", "Content-Length", "Content-Type", "User-Agent"}, more...)
			slices.Sort(want)
			if names := slices.Sorted(maps.Keys(s.header)); !slices.Equal(names, want) {
				t.Errorf("%q: headers %v, want %v", effect, names, want)
			}
			for name, value := range map[string]string{
				"Callgate-Call-Id": "call-1", "Content-Type": "application/json", "User-Agent": "callgate",
				"Accept-Encoding": "identity", "Content-Length": strconv.Itoa(len(arguments)),
			} {
				if s.header.Get(name) != value {
					t.Errorf("%q: %s is %q", effect, name, s.header.Get(name))
				}
			}
			if effect == "idempotent" && s.header.Get("Idempotency-Key") != "call-1" {
				t.Errorf("Idempotency-Key is %q", s.header.Get("Idempotency-Key"))
			}
		}
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	e := newEngine(t, engine.Options{})
	for status := 200; status < 600; status++ {
		if status > 230 && status < 298 || status > 310 && status < 398 || status > 452 && status < 498 || status > 512 && status < 598 {
			continue
		}
		var hits atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			hits.Add(1)
			w.WriteHeader(status)
			if status != 204 && status != 304 {
				io.WriteString(w, "SECRET of the tool")
			}
		}))
		passing := slices.Contains([]int{408, 425, 429, 500, 502, 503, 504}, status)
		for _, effect := range []string{"read", "once"} {
			if passing && effect == "read" && testing.Short() && status != 503 {
				continue
			}
			want, attempts := refusal.ToolFailed, int64(1)
			switch {
			case status < 300:
				want = ""
			case status >= 502 && status <= 504 && effect == "once":
				want = refusal.OutcomeUnknown
			case status >= 502 && status <= 504:
				want = refusal.ToolUnavailable
			}
			if passing && effect == "read" {
				attempts = 3
			}
			hits.Store(0)
			result, err := e.Run(t.Context(), loopback(server.URL, effect))
			if got := code(t, err); got != want || hits.Load() != attempts || int64(result.Attempts) != attempts {
				t.Errorf("%d (%s): got %q after %d requests, want %q after %d", status, effect, got, hits.Load(), want, attempts)
			}
			expectNone(t, err, "SECRET")
			if want != "" {
				expectSome(t, err, strconv.Itoa(status))
			}
		}
		server.Close()
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	e := newEngine(t, engine.Options{Now: func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }})
	for name, c := range map[string]struct {
		retryAfter string
		recovers   int64 // the request that succeeds; 0 is none
		timeout    time.Duration
		attempts   int64
		code       refusal.Code
		status     int // 0 is 503
	}{
		"403 with a wait":           {retryAfter: "1", recovers: 2, timeout: patient, attempts: 2, status: 403},
		"403 with a long wait":      {retryAfter: "3", recovers: 2, timeout: patient, attempts: 1, code: refusal.ToolFailed, status: 403},
		"a part of a second":        {retryAfter: "0.5", recovers: 2, timeout: patient, attempts: 2},
		"second succeeds":           {"", 2, patient, 2, "", 0},
		"third succeeds":            {"", 3, patient, 3, "", 0},
		"fourth would":              {"", 4, patient, 3, refusal.ToolUnavailable, 0},
		"short wait":                {"1", 2, patient, 2, "", 0},
		"no wait":                   {"0", 2, patient, 2, "", 0},
		"long wait":                 {"3", 2, patient, 1, refusal.ToolUnavailable, 0},
		"endless wait":              {"4294967295", 2, patient, 1, refusal.ToolUnavailable, 0},
		"date that has come":        {"Thu, 01 Jan 2026 11:00:00 GMT", 2, patient, 2, "", 0},
		"date that is far":          {"Thu, 01 Jan 2026 12:01:00 GMT", 2, patient, 1, refusal.ToolUnavailable, 0},
		"unreadable":                {"soon", 2, patient, 2, "", 0},
		"negative":                  {"-5", 2, patient, 2, "", 0},
		"wait longer than the time": {"2", 2, 1900 * time.Millisecond, 1, refusal.ToolUnavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var hits atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if hits.Add(1) == c.recovers {
					io.WriteString(w, "done")
					return
				}
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				w.WriteHeader(cmp.Or(c.status, http.StatusServiceUnavailable))
			}))
			defer server.Close()
			call := loopback(server.URL, "idempotent")
			call.Run.Timeout = c.timeout
			result, got := run(t, e, call)
			if got != c.code || hits.Load() != c.attempts || int64(result.Attempts) != c.attempts {
				t.Errorf("got %q, %d requests, %d attempts", got, hits.Load(), result.Attempts)
			}
		})
	}
}

// stopper stops a call once it was sent.
type stopper struct{ sent *atomic.Int64 }

func (s stopper) Stopped() error {
	if s.sent.Load() > 0 {
		return errors.New("stopped")
	}
	return nil
}

// TestStoppedBetweenAttempts: what is stopped while an attempt is made is not sent again, and ends as that attempt did.
func TestStoppedBetweenAttempts(t *testing.T) {
	t.Parallel()
	e := newEngine(t, engine.Options{})
	for kind, name := range map[string]string{"http": "", "oxp": "Kit.Tool@1.0.0"} {
		var hits atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			hits.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		defer server.Close()
		call := loopback(server.URL, "idempotent")
		call.Run.Type, call.Run.Tool, call.Stopper = kind, name, stopper{&hits}
		if result, got := run(t, e, call); got != refusal.ToolUnavailable || hits.Load() != 1 || result.Attempts != 1 {
			t.Errorf("%s: %s, %d requests, %d attempts", kind, got, hits.Load(), result.Attempts)
		}
	}
}

// TestTimeOfARepetition: where a repetition is still under way when the time of the call ends, the answer names why the
// first attempt failed.
func TestTimeOfARepetition(t *testing.T) {
	t.Parallel()
	e := newEngine(t, engine.Options{})
	for name, c := range map[string]struct {
		first func(http.ResponseWriter)
		want  refusal.Code
		cause string
	}{
		"answered 500": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }, refusal.ToolFailed, "500"},
		"answered 503": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, refusal.ToolUnavailable, "503"},
		"dropped":      {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, refusal.ToolUnavailable, "was sent the call"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var hits atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if hits.Add(1) == 1 {
					c.first(w)
					return
				}
				_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that its client leaves
				select {
				case <-r.Context().Done():
				case <-time.After(patient):
				}
			}))
			defer server.Close()
			call := loopback(server.URL, "read")
			call.Run.Timeout = time.Second
			result, err := e.Run(t.Context(), call)
			var refused *refusal.Error
			if !errors.As(err, &refused) || refused.Code != c.want || !strings.Contains(fmt.Sprint(refused.Cause), c.cause) || result.Attempts != 2 {
				t.Errorf("found %v, %d attempts", err, result.Attempts)
			}
		})
	}
}

func TestNotDispatched(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp4", "127.0.0.1:0") // accepts in its queue, never speaks
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = quiet()
	defer untrusted.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	plain.Config.ErrorLog = quiet()
	defer plain.Close()
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.Config.ErrorLog = quiet()
	old.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	old.StartTLS()
	defer old.Close()
	roots := x509.NewCertPool()
	roots.AddCert(untrusted.Certificate()) // httptest has one certificate for all
	n := &names{answers: map[string][][]string{"other.example.test": {{"127.0.0.1"}}}}

	trusting := newEngine(t, engine.Options{Certificates: roots, Resolver: n.resolver(t)})
	if _, got := run(t, trusting, loopback(untrusted.URL, "once")); got != refusal.ToolFailed {
		t.Fatalf("with its certificate trusted: got %q, want the server's 404", got)
	}
	strict := newEngine(t, engine.Options{Certificates: x509.NewCertPool()})
	for name, c := range map[string]struct {
		e    *engine.Engine
		url  string
		want refusal.Code
		read int // attempts of a read call
	}{
		"nobody listens":        {strict, "http://" + ports.Hold(t), refusal.ToolUnavailable, 3},
		"handshake hangs":       {strict, "https://" + silent.Addr().String(), refusal.ToolTimeout, 1},
		"certificate untrusted": {strict, untrusted.URL, refusal.ToolUnavailable, 1},
		"certificate of other":  {trusting, strings.Replace(untrusted.URL, "127.0.0.1", "other.example.test", 1), refusal.ToolUnavailable, 1},
		"TLS 1.1":               {trusting, old.URL, refusal.ToolUnavailable, 3},
		"no TLS":                {strict, strings.Replace(plain.URL, "http:", "https:", 1), refusal.ToolUnavailable, 3},
		"other scheme":          {strict, "ftp://127.0.0.1/", refusal.ToolUnavailable, 0},
		"unix socket":           {strict, "unix:///run/x.sock", refusal.ToolUnavailable, 0},
		"relative":              {strict, "/search", refusal.ToolUnavailable, 0},
		"no URL":                {strict, "", refusal.ToolUnavailable, 0},
	} {
		for _, effect := range []string{"read", "once"} {
			call := loopback(c.url, effect)
			call.Run.Addresses = []string{"127.0.0.0/8"}
			if c.want == refusal.ToolTimeout {
				call.Run.Timeout = time.Second
			}
			attempts := min(c.read, 1)
			if effect == "read" {
				attempts = c.read
			}
			result, got := run(t, c.e, call)
			if got != c.want || result.Attempts != attempts {
				t.Errorf("%s (%s): got %q after %d attempts, want %q after %d", name, effect, got, result.Attempts, c.want, attempts)
			}
		}
	}
}

func TestTLSAndHTTP2(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		if r.URL.Path == "/abort" {
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, r.Proto)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = quiet()
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	e := newEngine(t, engine.Options{Certificates: roots})
	for effect, attempts := range map[string]int64{"read": 3, "once": 1} {
		for range 2 {
			if result, got := run(t, e, loopback(server.URL, effect)); got != "" || string(result.Body) != "HTTP/2.0" {
				t.Errorf("%s: %q %q", effect, got, result.Body)
			}
		}
		hits.Store(0)
		want := refusal.ToolUnavailable
		if effect == "once" {
			want = refusal.OutcomeUnknown
		}
		if _, got := run(t, e, loopback(server.URL+"/abort", effect)); got != want || hits.Load() != attempts {
			t.Errorf("%s: a reset stream gave %q after %d requests", effect, got, hits.Load())
		}
	}
}
