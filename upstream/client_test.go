package upstream

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

func answerJSON(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body)
}

func TestWhatTheProviderSees(t *testing.T) {
	type seen struct {
		method, uri, host, body string
		header                  http.Header
	}
	got := make(chan seen, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- seen{r.Method, r.RequestURI, r.Host, string(b), r.Header}
		w.Header().Set("Set-Cookie", "a=b")
		if r.Header.Get("Accept") == "application/json" {
			answerJSON(w, good)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, textEvent+endEvent+doneEvent)
	}))
	defer server.Close()
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	c := newClient(t, Options{})
	const body = `{ "model":"x", "big":12345678901234567890123 }`
	for _, key := range []string{"", "sk-1"} {
		d := definition(server.URL + "/a%2Fb/v1/")
		want := []string{"Accept", "Accept-Encoding", "Content-Length", "Content-Type", "User-Agent"}
		if key != "" {
			d.Credential = tool.Bearer("env:" + key)
			want = append(want, "Authorization")
		}
		slices.Sort(want)
		for _, streamed := range []bool{false, true, false, true} {
			if streamed {
				e, err := openEvents(context.Background(), c, routeTo(t, d), []byte(body))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := drain(e); err != nil {
					t.Fatal(err)
				}
				e.Close()
			} else if _, err := post(context.Background(), c, routeTo(t, d), []byte(body)); err != nil {
				t.Fatal(err)
			}
			s := <-got
			if s.method != "POST" || s.uri != "/a%2Fb/v1/chat/completions" || s.body != body || "http://"+s.host != server.URL {
				t.Errorf("the provider saw %+v", s)
			}
			if names := slices.Sorted(maps.Keys(s.header)); !slices.Equal(names, want) {
				t.Errorf("found the headers %v, expected %v", names, want)
			}
			accept := map[bool]string{false: "application/json", true: "text/event-stream"}[streamed]
			if s.header.Get("Content-Type") != "application/json" || s.header.Get("Accept-Encoding") != "identity" || s.header.Get("User-Agent") != "callgate" || s.header.Get("Accept") != accept || key != "" && s.header.Get("Authorization") != "Bearer "+key {
				t.Errorf("found the headers %v", s.header)
			}
		}
	}
}

// TestConnectionsAreKept holds that a completion, a stream and a refusal leave
// their connection for the next, also of another set.
//
// net/http gives up a connection whose writing has not been reported as done within
// 50 ms of the answer's end, which nobody can rule out where everything is slow: so
// one row of five in which it is kept is enough, and ours that were to drop it would
// drop it in each.
func TestConnectionsAreKept(t *testing.T) {
	opened := int64(0)
	for range 5 {
		if opened = connections(t); opened == 1 {
			return
		}
	}
	t.Errorf("found %d connections, expected one", opened)
}

// connections counts those of a row of exchanges.
func connections(t *testing.T) int64 {
	t.Helper()
	var opened atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("Accept") == "application/json" {
			answerJSON(w, good)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, textEvent+endEvent+doneEvent)
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c := newClient(t, Options{})
	for range 5 {
		if _, err := post(context.Background(), c, routeTo(t, definition(server.URL)), nil); err != nil {
			t.Fatal(err)
		}
		e, err := openEvents(context.Background(), c, routeTo(t, definition(server.URL)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := drain(e); err != nil {
			t.Fatal(err)
		}
		e.Close()
	}
	return opened.Load()
}

func TestTLS(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		var proto atomic.Value
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			proto.Store(r.Proto)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, callEvent+endEvent) // no [DONE]: the end is framed
		}))
		server.EnableHTTP2 = http2
		server.Config.ErrorLog = quiet
		server.StartTLS()
		defer server.Close()
		d := definition(server.URL)
		pool := x509.NewCertPool()
		pool.AddCert(server.Certificate())
		e, err := openEvents(context.Background(), newClient(t, Options{Certificates: pool}), routeTo(t, d), []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := drain(e); err != nil {
			t.Error(err)
		}
		e.Close()
		if want := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[http2]; proto.Load() != want {
			t.Errorf("found %v, expected %s", proto.Load(), want)
		}
		d.Retries = 2
		var hits []Attempt
		_, err = post(context.Background(), newClient(t, Options{Observe: func(a Attempt) { hits = append(hits, a) }}), routeTo(t, d), []byte(`{}`))
		if code(t, err) != unusable || len(hits) != 1 {
			t.Errorf("found %v after %d attempts", err, len(hits))
		}
		mustContain(t, err, "its certificate is signed by an unknown authority")
		d.BaseURL = strings.Replace(server.URL, "https", "http", 1)
		_, err = post(context.Background(), newClient(t, Options{}), routeTo(t, d), []byte(`{}`))
		// A server of TLS answers plain HTTP with 400; one of HTTP/2 may just close.
		if err == nil {
			t.Error("found an answer over plain HTTP")
		}
	}
}

// TestRetries counts how often a provider is asked that fails in one way first,
// and answers then.
func TestRetries(t *testing.T) {
	status := func(code int, header ...string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			if len(header) > 0 {
				w.Header().Set("Retry-After", header[0])
			}
			w.WriteHeader(code)
		}
	}
	hijack := func(output string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			_, _ = io.WriteString(conn, output)
			conn.Close()
		}
	}
	for why, c := range map[string]struct {
		fails func(http.ResponseWriter)
		retry bool
	}{
		"408":                          {status(408), true},
		"429":                          {status(429), true},
		"429 with a time":              {status(429, "0"), true},
		"429 with a date":              {status(429, "Thu, 01 Jan 1970 00:00:00 GMT"), true},
		"429 with nonsense":            {status(429, "soon"), true},
		"429 with more than is waited": {status(429, "31"), false},
		"500":                          {status(500), true},
		"501":                          {status(501), true},
		"502":                          {status(502), true},
		"503 with a time":              {status(503, "1"), true},
		"503 with much more":           {status(503, "99999"), false},
		"529":                          {status(529), true},
		"400":                          {status(400), false},
		"401":                          {status(401), false},
		"404":                          {status(404), false},
		"409":                          {status(409), false},
		"204":                          {status(204), false},
		"a closed connection":          {hijack(""), true},
		"a byte of an answer":          {hijack("H"), false},
		"a head in part":               {hijack("HTTP/1.1 200 OK\r\n"), false},
		"a head":                       {hijack(streamHead + chunked), false},
		"a byte of a body":             {hijack(streamHead + chunked + "1\r\n:\r\n"), false},
		"no HTTP":                      {hijack("garbage\r\n\r\n"), false},
		"another type":                 {func(w http.ResponseWriter) { answerJSON(w, good) }, false},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) == 1 {
					c.fails(w)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, callEvent+endEvent+doneEvent)
			})
			d := definition(url)
			d.Retries = 1
			var keys atomic.Int64
			d.Credential = tool.Bearer("env:KEY")
			client := newClient(t, Options{ReadSecret: func(context.Context, string) (string, error) { return fmt.Sprint("k", keys.Add(1)), nil }})
			events, err := streamBy(t, client, d)
			want := int64(1)
			if c.retry {
				want = 2
			}
			if (err == nil) != c.retry || requests.Load() != want || keys.Load() != want || c.retry != (len(events) == 2) {
				t.Errorf("found %v after %d attempts and %d keys", err, requests.Load(), keys.Load())
			}
		})
	}
}

func TestRetriesAreBounded(t *testing.T) {
	for _, retries := range []int{0, 1, 3} {
		url, hits := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(429)
		})
		d := definition(url)
		d.Retries = retries
		_, err := complete(t, d)
		var s *StatusError
		if !errors.As(err, &s) || s.Status != 429 || hits.Load() != int64(retries+1) {
			t.Errorf("%d retries: found %v after %d attempts", retries, err, hits.Load())
		}
	}
}

// TestRetryAfter holds that the provider's time is waited for, and one that is
// longer than what is left is the provider's answer.
func TestRetryAfter(t *testing.T) {
	var first, second time.Time
	url, hits := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if first.IsZero() {
			first = time.Now()
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
			return
		}
		second = time.Now()
		answerJSON(w, good)
	})
	d := definition(url)
	d.Retries = 1
	if _, err := complete(t, d); err != nil {
		t.Fatal(err)
	}
	if waited := second.Sub(first); waited < time.Second || hits.Load() != 2 {
		t.Errorf("it was asked %d times, the second after %s", hits.Load(), waited)
	}

	url, hits = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "25")
		w.WriteHeader(429)
	})
	d = definition(url)
	d.Retries, d.Timeouts.Total = 5, 20*time.Second
	_, err := complete(t, d)
	var s *StatusError
	if !errors.As(err, &s) || s.Status != 429 || s.RetryAfter != 25*time.Second || hits.Load() != 1 {
		t.Errorf("found %v after %d attempts", err, hits.Load())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	d.Timeouts.Total = time.Hour
	_, err = post(ctx, newClient(t, Options{}), routeTo(t, d), nil)
	if !errors.As(err, &s) || hits.Load() != 2 {
		t.Errorf("found %v after %d attempts", err, hits.Load())
	}
}

func TestPauses(t *testing.T) {
	for range 100 {
		pauses := newPauses()
		for tried, middle := range []time.Duration{200, 400, 800, 1600, 3200, 5000, 5000} {
			middle *= time.Millisecond
			if p := pauses.NextBackOff(); p < middle/2 || p > middle/2+middle {
				t.Fatalf("after attempt %d: found %s", tried, p)
			}
		}
	}
}

// TestNoPauseForCallerWhoLeft cancels while another attempt is waited for.
func TestNoPauseForCallerWhoLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	url, hits := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(503)
	})
	d := definition(url)
	d.Retries = 1
	c := newClient(t, Options{Observe: func(Attempt) { cancel() }})
	_, err := post(ctx, c, routeTo(t, d), nil)
	if code(t, err) != refusal.Canceled || !errors.Is(err, context.Canceled) || hits.Load() != 1 {
		t.Errorf("found %v after %d attempts", err, hits.Load())
	}
}

func TestAwayForAWhile(t *testing.T) {
	url, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(503)
	})
	_, err := complete(t, definition(url))
	var s *StatusError
	if !errors.As(err, &s) || s.RetryAfter != 7*time.Second || s.Header.Get("Retry-After") != "7" {
		t.Errorf("found %v", err)
	}
}

func TestKeys(t *testing.T) {
	url, hits := serve(t, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, good) })
	for why, c := range map[string]struct {
		key   func() (string, error)
		cause string
	}{
		"missing":   {func() (string, error) { return "", errors.New("found no environment variable X") }, "found no environment variable X"},
		"empty":     {func() (string, error) { return "", nil }, "characters that no bearer token has"},
		"two lines": {func() (string, error) { return "SECRET\nX-A: b", nil }, "characters that no bearer token has"},
		"a space":   {func() (string, error) { return "SECRET x", nil }, "characters that no bearer token has"},
		"not ASCII": {func() (string, error) { return "SECRETä", nil }, "characters that no bearer token has"},
		"a panic":   {func() (string, error) { panic("SECRET") }, "panic with a value of type string"},
		"a fault":   {func() (string, error) { return [1]string{}[len(url)], nil }, "index out of range"},
	} {
		d := definition(url)
		d.Credential = tool.Bearer("env:KEY")
		client := newClient(t, Options{ReadSecret: func(context.Context, string) (string, error) { return c.key() }})
		for _, send := range []func() error{
			func() error { _, err := post(context.Background(), client, routeTo(t, d), []byte(`{}`)); return err },
			func() error { _, err := streamBy(t, client, d); return err },
		} {
			err := send()
			if got := code(t, err); got != unusable && got != refusal.Internal {
				t.Errorf("%s: found %v", why, err)
			}
			mustContain(t, err, c.cause)
			if strings.Contains(fmt.Sprint(err), "SECRET") {
				t.Errorf("%s: it shows the key: %v", why, err)
			}
		}
	}
	if hits.Load() != 0 {
		t.Errorf("it was asked %d times", hits.Load())
	}
}

func TestObserver(t *testing.T) {
	var (
		mu   sync.Mutex
		seen []Attempt
	)
	c := newClient(t, Options{Observe: func(a Attempt) {
		mu.Lock()
		defer mu.Unlock()
		if a.Took < 0 {
			t.Errorf("found %+v", a)
		}
		a.Took = 0
		seen = append(seen, a)
		panic("an observer's own affair")
	}})
	answers := []int{429, 500, 200}
	url, hits := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "0")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answers[0])
		answers = answers[1:]
		_, _ = io.WriteString(w, good)
	})
	d := definition(url)
	d.Retries = 2
	if _, err := post(context.Background(), c, routeTo(t, d), nil); err != nil {
		t.Fatal(err)
	}
	want := []Attempt{{"sample", 429, "", 0}, {"sample", 500, unusable, 0}, {"sample", 200, "", 0}}
	if !slices.Equal(seen, want) || hits.Load() != 3 {
		t.Errorf("found %+v", seen)
	}
}

// TestManyAtOnce runs completions and streams side by side.
func TestManyAtOnce(t *testing.T) {
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") == "application/json" {
			answerJSON(w, good)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range 50 {
			_, _ = io.WriteString(w, textEvent)
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, endEvent+doneEvent)
	})
	c := newClient(t, Options{})
	route := routeTo(t, definition(url))
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 5 {
				if _, err := post(context.Background(), c, route, []byte(`{}`)); err != nil {
					t.Error(err)
				}
				e, err := openEvents(context.Background(), c, route, []byte(`{}`))
				if err != nil {
					t.Error(err)
					return
				}
				events, err := drain(e)
				e.Close()
				if err != nil || len(events) != 51 {
					t.Errorf("found %d events, %v", len(events), err)
				}
			}
		})
	}
	all.Wait()
}

// TestUnreadHTTP2: a connection of HTTP/2 that a provider does not read is closed, since an
// attempt on it, and the turn that waits for it, would never end.
func TestUnreadHTTP2(t *testing.T) {
	c := NewClient(Options{})
	defer c.Close()
	if h := c.transport.HTTP2; h == nil || h.WriteByteTimeout <= 0 || h.WriteByteTimeout > time.Minute {
		t.Errorf("%+v", h)
	}
}
