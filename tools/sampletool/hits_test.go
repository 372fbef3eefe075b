package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func totalsOf(t *testing.T, url string) totals {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url+"/hits", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, body := send(t, r)
	var got totals
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestHits(t *testing.T) {
	server := httptest.NewServer(newBundled(t, newHits(nil, noon)))
	defer server.Close()
	if got := totalsOf(t, server.URL); got.Total != 0 || got.Calls == nil {
		t.Errorf("at the start: %+v, want nothing, and a list", got)
	}
	for _, id := range []string{"a", "b", "a"} {
		post(t, server.URL+"/time", "{}", id)
	}
	post(t, server.URL+"/fail", "{}", "c")
	post(t, server.URL+"/search", "not JSON", "d") // refused, and a hit
	post(t, server.URL+"/nothing", "{}", "e")
	post(t, server.URL+"/time", "{}")
	if r, err := http.NewRequest(http.MethodGet, server.URL+"/healthz", nil); err == nil {
		send(t, r) // alone is not counted
	}
	want := totals{
		Total: 7,
		Paths: map[string]int64{"/time": 4, "/fail": 1, "/search": 1, "other": 1},
		Calls: []call{{"b", "/time", 1}, {"a", "/time", 2}, {"c", "/fail", 1}, {"d", "/search", 1}, {"e", "other", 1}},
	}
	if got := totalsOf(t, server.URL); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestCallIDs(t *testing.T) {
	server := httptest.NewServer(newBundled(t, newHits(nil, noon)))
	defer server.Close()
	longest := strings.Repeat("x", maxCallIDBytes)
	for name, c := range map[string]struct {
		ids    []string
		status int
	}{
		"none":        {nil, http.StatusOK},
		"the longest": {[]string{longest}, http.StatusOK},
		"too long":    {[]string{longest + "x"}, http.StatusBadRequest},
		"empty":       {[]string{""}, http.StatusBadRequest},
		"two":         {[]string{"a", "b"}, http.StatusBadRequest},
	} {
		if status, got := post(t, server.URL+"/time", "{}", c.ids...); status != c.status {
			t.Errorf("%s: status %d, want %d: %s", name, status, c.status, got)
		}
	}
	got := totalsOf(t, server.URL)
	if got.Paths["/time"] != 5 || len(got.Calls) != 1 {
		t.Errorf("%+v; want five hits and the one id that was well formed", got)
	}
}

func TestHitsAreBounded(t *testing.T) {
	h := newHits(nil, noon)
	for i := range maxCalls + 3 {
		if err := h.add("/time", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		if err := h.add("/time", "kept"); err != nil {
			t.Fatal(err)
		}
	}
	got := h.report()
	if len(got.Calls) != maxCalls || got.Forgotten != 4 || got.Calls[0].ID != "4" {
		t.Errorf("%d calls, %d forgotten, %q first; want %d, 4 and 4", len(got.Calls), got.Forgotten, got.Calls[0].ID, maxCalls)
	}
	if last := got.Calls[maxCalls-1]; last.ID != "kept" || last.Count != maxCalls+3 {
		t.Errorf("the last call is %+v; want kept, %d times", last, maxCalls+3)
	}
	if len(h.calls) != h.order.Len() {
		t.Errorf("%d ids, but %d in order", len(h.calls), h.order.Len())
	}
}

func TestHitsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hits.jsonl")
	write(t, path, "before\n")
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// The tool sees its own hit in the file: it was written before.
	var before []byte
	acts := tool{"/act", func(context.Context, []byte) (any, error) {
		before, err = os.ReadFile(path)
		return nil, err
	}}
	server := httptest.NewServer(newHandler([]tool{acts}, newHits(file, noon), t.Output()))
	defer server.Close()
	if status, got := post(t, server.URL+"/act", "{}", "a\tb"); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, got)
	}
	if want := "before\n" + `{"time":"2026-03-04T05:06:07Z","path":"/act","call_id":"a\tb"}` + "\n"; string(before) != want {
		t.Errorf("got  %q\nwant %q", before, want)
	}
	post(t, server.URL+"/act", "{}")
	if !strings.HasSuffix(string(before), `{"time":"2026-03-04T05:06:07Z","path":"/act"}`+"\n") {
		t.Errorf("got %q, want a line without an id at the end", before)
	}
}

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestHitThatCannotBeWrittenIsNotActedOn(t *testing.T) {
	h := newHits(full{}, noon)
	var output bytes.Buffer
	handler := newHandler([]tool{{"/act", nil}}, h, &output) // acting would panic
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/act", strings.NewReader("{}")))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(output.String(), "no space left") {
		t.Errorf("%d %s, said %q; want 503, and the reason for the operator", w.Code, w.Body, &output)
	}
	if strings.Contains(w.Body.String(), "space") {
		t.Errorf("the client reads the reason: %s", w.Body)
	}
	if got := h.report(); got.Total != 0 {
		t.Errorf("%d hits were counted, want none", got.Total)
	}
}

func TestHitsTogether(t *testing.T) {
	var file bytes.Buffer
	h := newHits(&file, noon)
	server := httptest.NewServer(newBundled(t, h))
	defer server.Close()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				post(t, server.URL+"/time", "{}", fmt.Sprint((i+j)%10))
			}
		})
	}
	all.Wait()
	got := totalsOf(t, server.URL)
	var sum int64
	for _, c := range got.Calls {
		sum += c.Count
	}
	if got.Total != 160 || sum != 160 || len(got.Calls) != 10 {
		t.Errorf("%d hits, %d of calls, %d calls; want 160, 160, 10", got.Total, sum, len(got.Calls))
	}
	lines := bytes.Split(bytes.TrimSuffix(file.Bytes(), []byte("\n")), []byte("\n"))
	if len(lines) != 160 {
		t.Errorf("%d lines were written, want 160", len(lines))
	}
	for _, line := range lines {
		if !json.Valid(line) {
			t.Fatalf("a broken line: %s", line)
		}
	}
}
