package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/hook"

	"github.com/callgate/callgate/internal/outbound"
)

// ask asks a server about a value.
func ask(t *testing.T, ctx context.Context, serve http.HandlerFunc, addresses []string, header func(string, time.Time, []byte) (http.Header, error)) (hook.Answer, error) {
	t.Helper()
	server := httptest.NewServer(serve)
	defer server.Close()
	target, err := url.Parse(server.URL + "/hook")
	if err != nil {
		t.Fatal(err)
	}
	if header == nil {
		header = func(string, time.Time, []byte) (http.Header, error) { return http.Header{}, nil }
	}
	client := outbound.New(outbound.Options{})
	defer client.Close()
	h := &hook.Hook{Name: "dlp", Callout: &hook.Callout{URL: target, Addresses: addresses, Header: header}}
	return newHookClient(client).Ask(ctx, h, hook.Question{At: hook.Call, CallID: "call_1", Tool: "web.search", Agent: "Analyst"}, []byte(`{"q": 1.0}`))
}

var local = []string{"127.0.0.1/32"}

// says answers with a body.
func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

func TestQuestion(t *testing.T) {
	var got []byte
	var head http.Header
	_, err := ask(t, context.Background(), func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		head = r.Header
		if r.Method != http.MethodPost || r.URL.Path != "/hook" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		says(`{"verdict":"allow"}`)(w, r)
	}, local, func(id string, _ time.Time, body []byte) (http.Header, error) {
		if id == "" || !json.Valid(body) {
			t.Errorf("%q %s", id, body)
		}
		return http.Header{"X-Key": {"k"}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"value":{"q": 1.0},"hook":"dlp","at":"call","call_id":"call_1","request_id":"","mode":"","principal":"","agent":"Analyst","workspace":"","project":"","tool":"web.search"}`
	if string(got) != want || head.Get("X-Key") != "k" || head.Get("Content-Type") != "application/json" {
		t.Errorf("%s %v", got, head)
	}
}

func TestAnswers(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`"/a",`, 257), ",")
	for body, want := range map[string]*hook.Answer{
		`{"verdict":"allow"}`:                                   {},
		`{"verdict":"deny"}`:                                    {Deny: true},
		`{"verdict":"deny","message":"no"}`:                     {Deny: true, Message: "no"},
		`{"verdict":"redact","pointers":["/a","/b/0"]}`:         {Redact: []string{"/a", "/b/0"}},
		`{"verdict":"allow","labels":["a","b"]}`:                {Labels: []string{"a", "b"}},
		`{"labels":["a"],"verdict":"redact","pointers":["/a"]}`: {Redact: []string{"/a"}, Labels: []string{"a"}},
		`{"verdict":"allow","labels":[]}`:                       nil, `{"verdict":"allow","labels":"a"}`: nil, `{"verdict":"allow","labels":null}`: nil, `{"verdict":"allow","labels":[1]}`: nil,
		`{"verdict":"deny","labels":["a"]}`: nil, `{"labels":["a"]}`: nil, `{"verdict":"allow","labels":["a"],"more":1}`: nil,
		``: nil, `null`: nil, `[]`: nil, `{}`: nil, `{"verdict":"Allow"}`: nil, `{"Verdict":"allow"}`: nil, `{"verdict":"allow","verdict":"allow"}`: nil,
		`{"verdict":"allow","Verdict":"deny"}`: nil, `{"verdict":"allow","message":"m"}`: nil, `{"verdict":"allow","more":1}`: nil, `{"verdict":"allow"} {}`: nil,
		`{"verdict":"deny","message":1}`: nil, `{"verdict":"deny","pointers":[]}`: nil, `{"verdict":"redact"}`: nil, `{"verdict":"redact","pointers":[]}`: nil,
		`{"verdict":"redact","pointers":[1]}`: nil, `{"verdict":"redact","pointers":"/a"}`: nil, `{"verdict":"redact","pointers":null}`: nil,
		`{"verdict":"redact","pointers":[` + many + `]}`: nil, `{"verdict":"redact","pointers":["/a"],"message":"m"}`: nil,
		`{"verdict":"allow","message":"` + strings.Repeat("m", 70<<10) + `"}`: nil,
	} {
		a, err := ask(t, context.Background(), says(body), local, nil)
		if (err == nil) != (want != nil) || err == nil && !reflect.DeepEqual(a, *want) {
			t.Errorf("%.60s: %+v, %v", body, a, err)
		}
		if err != nil && len(body) > 40 && strings.Contains(err.Error(), body[:20]) {
			t.Errorf("the error repeats the answer: %v", err)
		}
	}
}

func TestFailures(t *testing.T) {
	allow := says(`{"verdict":"allow"}`)
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, `{"verdict":"allow"}`)
		}
	}
	for name, serve := range map[string]http.HandlerFunc{
		"an error": status(500), "a redirect": status(307), "accepted": status(202), "nothing": status(204),
		"plain text": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, `{"verdict":"allow"}`)
		},
		"broken off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		if a, err := ask(t, context.Background(), serve, local, nil); err == nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if a, err := ask(t, context.Background(), allow, nil, nil); err == nil {
		t.Errorf("an address that is not allowed: %+v", a)
	}
	secret := errors.New("found no environment variable KEY")
	if _, err := ask(t, context.Background(), allow, local, func(string, time.Time, []byte) (http.Header, error) { return nil, secret }); !errors.Is(err, secret) {
		t.Errorf("without its credential: %v", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := ask(t, ended, allow, local, nil); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("too late: %v", err)
	}
}

// TestLate: a callout that does not answer is left when the time is over.
func TestLate(t *testing.T) {
	release := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	_, err := ask(t, ctx, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
		close(release)
	}, local, nil)
	<-release
	if err == nil {
		t.Error("it passes")
	}
}

func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{`{"verdict":"allow"}`, `{"verdict":"redact","pointers":["/a"]}`, `{"verdict":"deny","message":"\ud800"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := readHookAnswer(body)
		if err == nil && !a.Deny && a.Redact == nil && !bytes.Contains(body, []byte("verdict")) && !bytes.Contains(body, []byte(`\u`)) {
			t.Fatalf("%s passes", body)
		}
	})
}
