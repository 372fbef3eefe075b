package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// request is one row of testdata/requests.jsonl: what is sent, and what must
// come back: an answer, its bytes, or an error that contains some words.
type request struct {
	Name, Method, Path, Type string
	Body                     string
	BodyB64                  []byte `json:"body_b64"`
	Status                   int
	Answer                   any
	Raw, Error               string
}

func readRequests(t *testing.T) []request {
	t.Helper()
	data, err := os.ReadFile("testdata/requests.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var all []request
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		var r request
		if err := d.Decode(&r); err != nil {
			t.Fatalf("row %d: %v", len(all)+1, err)
		}
		all = append(all, r)
	}
	if err := lines.Err(); err != nil || len(all) == 0 {
		t.Fatalf("found %d requests: %v", len(all), err)
	}
	return all
}

// noon is the time of every test.
func noon() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }

// newBundled serves the bundled texts.
func newBundled(t testing.TB, counted *hits) http.Handler {
	t.Helper()
	texts, err := bundled()
	if err != nil {
		t.Fatal(err)
	}
	return newHandler(tools(library{texts}, noon), counted, t.Output())
}

func TestRequests(t *testing.T) {
	for _, c := range readRequests(t) {
		t.Run(c.Name, func(t *testing.T) {
			server := httptest.NewServer(newBundled(t, newHits(nil, noon)))
			defer server.Close()
			body := []byte(c.Body)
			if c.BodyB64 != nil {
				body = c.BodyB64
			}
			method := c.Method
			if method == "" {
				method = http.MethodPost
			}
			r, err := http.NewRequest(method, server.URL+c.Path, bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			switch c.Type {
			case "":
				r.Header.Set("Content-Type", "application/json")
			case "-":
			default:
				r.Header.Set("Content-Type", c.Type)
			}
			status, got := send(t, r)
			if status != c.Status {
				t.Errorf("status %d, want %d: %s", status, c.Status, got)
			}
			checkAnswer(t, c, got)
		})
	}
}

func checkAnswer(t *testing.T, c request, got []byte) {
	t.Helper()
	if c.Raw != "" {
		if string(got) != c.Raw {
			t.Errorf("got  %q\nwant %q", got, c.Raw)
		}
		return
	}
	var value any
	if err := json.Unmarshal(got, &value); err != nil {
		t.Fatalf("the answer is no JSON: %q", got)
	}
	if c.Error == "" {
		if !reflect.DeepEqual(value, c.Answer) {
			t.Errorf("got  %s\nwant %v", got, c.Answer)
		}
		return
	}
	object, _ := value.(map[string]any)
	message, ok := object["error"].(string)
	if !ok || len(object) != 1 || !strings.Contains(message, c.Error) {
		t.Errorf("got %s, want an error that contains %q", got, c.Error)
	}
}

// send returns status and body, and checks what every answer has.
func send(t *testing.T, r *http.Request) (int, []byte) {
	t.Helper()
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := response.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q, want application/json", got)
	}
	return response.StatusCode, body
}

func post(t *testing.T, url, body string, callIDs ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header[callIDHeader] = callIDs
	status, got := send(t, r)
	return status, string(got)
}

func TestBodyIsBounded(t *testing.T) {
	server := httptest.NewServer(newBundled(t, newHits(nil, noon)))
	defer server.Close()
	const frame = len(`{"a":""}`)
	if status, _ := post(t, server.URL+"/echo", `{"a":"`+strings.Repeat("x", maxBody-frame)+`"}`); status != http.StatusOK {
		t.Errorf("%d bytes: status %d, want 200", maxBody, status)
	}
	if status, got := post(t, server.URL+"/echo", `{"a":"`+strings.Repeat("x", maxBody-frame+1)+`"}`); status != http.StatusRequestEntityTooLarge {
		t.Errorf("%d bytes: status %d, want 413: %s", maxBody+1, status, got)
	}
}

func TestContentCodingIsRefused(t *testing.T) {
	server := httptest.NewServer(newBundled(t, newHits(nil, noon)))
	defer server.Close()
	r, err := http.NewRequest(http.MethodPost, server.URL+"/time", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Content-Encoding", "gzip")
	if status, got := send(t, r); status != http.StatusUnsupportedMediaType {
		t.Errorf("status %d, want 415: %s", status, got)
	}
}
