package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// runtime takes answers, each as its path says: good once, then again; the first of
// each address is told that it is to come again.
type runtime struct {
	*httptest.Server
	mu    sync.Mutex
	posts map[string][]message
}

func newRuntime(t *testing.T) *runtime {
	t.Helper()
	r := &runtime{posts: map[string][]message{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		var m message
		if err != nil || json.Unmarshal(body, &m) != nil || q.Header.Get("Content-Type") != "application/json" {
			t.Errorf("posted %q, %v", body, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.posts[q.URL.Path] = append(r.posts[q.URL.Path], m); len(r.posts[q.URL.Path]) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// at are the texts that were posted to an address.
func (r *runtime) at(path string) (texts []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.posts[path] {
		texts = append(texts, fmt.Sprintf("%s %s %s", m.Group, m.ID, m.Text))
	}
	return texts
}

// counts is what the tool tells of itself.
func counts(t *testing.T, url string) (r struct {
	Taken, Underway, Held, Retries int
	Posts                          map[string]map[string]int
}) {
	t.Helper()
	response, err := http.Get(url + "/later/report")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func TestLater(t *testing.T) {
	s := begin(t, "--later-late", "1ms")
	r := newRuntime(t)
	invoke := func(path, arguments string) {
		t.Helper()
		body := fmt.Sprintf(`{"arguments":%s,"operation":"answer","id":"call_%s","callback_url":%q,"group_id":"g"}`, arguments, path[1:], r.URL+path)
		if status, output := post(t, s.url+"/later", body); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, output)
		}
	}
	good := `g call_%s {"n":%d,"ok":true}`
	for i, as := range []string{"plain", "duplicate", "early", "late", "conflict", "held", "never", "fail"} {
		invoke("/"+as, fmt.Sprintf(`{"n":%d,"as":%q}`, i, as))
	}
	invoke("/faulty", `{"n":"seven"}`)
	if got := r.at("/early"); len(got) != 2 {
		t.Errorf("before it was acknowledged: %q", got)
	}
	until(t, "one call is held", func() bool { c := counts(t, s.url); return c.Underway == 1 && c.Held == 1 })
	if got := r.at("/held"); len(got) != 0 {
		t.Errorf("what is held was posted: %q", got)
	}
	if status, text := post(t, s.url+"/later/release", "{}"); status != http.StatusOK || !strings.Contains(text, `"released":1`) {
		t.Errorf("%d %s", status, text)
	}
	until(t, "all are answered", func() bool { return counts(t, s.url).Underway == 0 })
	for path, want := range map[string]struct {
		n    int
		last string
	}{
		"/plain": {2, fmt.Sprintf(good, "plain", 0)}, "/duplicate": {4, fmt.Sprintf(good, "duplicate", 1)}, "/early": {2, fmt.Sprintf(good, "early", 2)},
		"/late": {2, fmt.Sprintf(good, "late", 3)}, "/conflict": {3, `g call_conflict {"n":4,"forged":true}`}, "/held": {2, fmt.Sprintf(good, "held", 5)},
		"/never": {}, "/fail": {2, "g call_fail Error: number 7 is out of order."},
		"/faulty": {2, "g call_faulty Error: found another type for n; expected a whole number"},
	} {
		got := r.at(path)
		if len(got) != want.n || len(got) > 0 && got[len(got)-1] != want.last {
			t.Errorf("%s: %q", path, got)
		}
	}
	c := counts(t, s.url)
	if c.Taken != 9 || c.Posts["answer"]["200"] != 6 || c.Posts["duplicate"]["200"] != 2 || c.Posts["late"]["200"] != 1 || c.Posts["conflict"]["200"] != 1 || c.Retries != 8 {
		t.Errorf("%+v", c)
	}
	for _, body := range []string{`{}`, `{"operation":"answer"}`, `x`} {
		if status, _ := post(t, s.url+"/later", body); status != http.StatusBadRequest {
			t.Errorf("%s: %d", body, status)
		}
	}
	for _, path := range []string{"/cancel_tool_call", "/close_thread"} {
		for _, body := range []string{`{"thread_id":"../x"}`, `{}`} {
			if status, _ := post(t, s.url+path, body); status != http.StatusOK {
				t.Errorf("%s: %d", path, status)
			}
		}
	}
}

// Forged answers, and those of another call, are posted before the good one.
func TestForgeries(t *testing.T) {
	s := begin(t, "--later", "forge+foreign")
	r := newRuntime(t)
	for n := range 2 {
		body := fmt.Sprintf(`{"arguments":{"n":%d},"operation":"answer","id":"call_%d","callback_url":%q,"group_id":"g%d"}`, n, n, fmt.Sprintf("%s/v1/token-of-%d-and-more", r.URL, n), n)
		if status, output := post(t, s.url+"/later", body); status != http.StatusOK {
			t.Errorf("%d %s", status, output)
		}
		until(t, "it is answered", func() bool { return counts(t, s.url).Underway == 0 })
	}
	c := counts(t, s.url)
	if c.Posts["forged"]["200"] != 10 || c.Posts["foreign"]["200"] != 2 || c.Posts["answer"]["200"] != 2 {
		t.Errorf("%+v", c)
	}
	if got := r.at("/v1/token-of-1-and-more"); got[len(got)-1] != `g1 call_1 {"n":1,"ok":true}` {
		t.Errorf("%q", got)
	}
}

func TestAnswerModes(t *testing.T) {
	for _, text := range []string{"", "rude", "plain+", "plain,early"} {
		if _, err := parseModes(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
