package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// TestPostAndOpen: what the provider sees of a request at each endpoint, and what comes back.
func TestPostAndOpen(t *testing.T) {
	type seen struct {
		uri, body string
		header    http.Header
	}
	got := make(chan seen, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _ := io.ReadAll(r.Body)
		got <- seen{r.RequestURI, string(asked), r.Header}
		w.Header().Set("Content-Type", r.Header.Get("Accept"))
		w.Header().Set("Request-Id", "req_1")
		w.Header().Set("Anthropic-Ratelimit-Unified-Status", "allowed")
		w.Header().Set("Anthropic-Organization-Id", "org-1")
		_, _ = io.WriteString(w, textEvent)
	}))
	defer server.Close()
	const body = ` {"model":"x"} `
	kept := http.Header{"Request-Id": {"req_1"}, "Anthropic-Ratelimit-Unified-Status": {"allowed"}}
	header := http.Header{
		"Anthropic-Version": {"2023-06-01"}, "anthropic-beta": {"a-1,b-2"}, "Authorization": {"Bearer caller"}, "X-Api-Key": {"caller"},
		"Content-Type": {"text/plain"}, "Host": {"other"}, "Transfer-Encoding": {"gzip"}, "Connection": {"close"},
	}
	c, route := newClient(t, Options{}), routeTo(t, definition(server.URL+"/v1/"))
	for _, endpoint := range []Endpoint{ChatCompletions, Messages, CountTokens, Responses, InputTokens} {
		for _, query := range []string{"", "beta=true"} {
			request := Request{Endpoint: endpoint, Query: query, Header: header, Body: []byte(body)}
			for _, streamed := range []bool{false, true} {
				if streamed {
					stream, err := c.Open(context.Background(), route, request)
					if err != nil {
						t.Fatal(err)
					}
					name, data, err := stream.Next()
					if string(name) != "" || "data: "+string(data)+"\n\n" != textEvent || err != nil || !reflect.DeepEqual(stream.Header, kept) {
						t.Errorf("found the event %s %s, %v, after %v", name, data, err, stream.Header)
					}
					if _, _, err := stream.Next(); err != io.EOF {
						t.Errorf("found %v at the end", err)
					}
					stream.Close()
				} else if reply, err := c.Post(context.Background(), route, request); err != nil || string(reply.Body) != textEvent || !reflect.DeepEqual(reply.Header, kept) {
					t.Errorf("found %+v, %v", reply, err)
				}
				s := <-got
				want := "/v1" + string(endpoint)
				if query != "" {
					want += "?" + query
				}
				if s.uri != want || s.body != body {
					t.Errorf("the provider saw %+v", s)
				}
				if s.header.Get("Anthropic-Version") != "2023-06-01" || s.header.Get("Anthropic-Beta") != "a-1,b-2" || s.header.Get("Content-Type") != typeJSON {
					t.Errorf("found the headers %v", s.header)
				}
				for _, own := range []string{"Authorization", "X-Api-Key", "Transfer-Encoding", "Connection"} {
					if values := s.header[own]; len(values) > 0 {
						t.Errorf("the caller's %s was sent on: %v", own, values)
					}
				}
			}
		}
	}
	if _, err := c.Post(context.Background(), route, Request{Endpoint: Messages, Query: "a b", Body: []byte(body)}); code(t, err) != refusal.BadRequest {
		t.Errorf("a query with a space: found %v", err)
	}
}

// TestPostErrors: an answer of the provider that is no 200 comes back byte for byte, but for
// those about the operator's credential.
func TestPostErrors(t *testing.T) {
	const body = `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}` + "\n"
	for status, own := range map[int]bool{400: true, 404: true, 413: true, 422: true, 429: true, 500: true, 503: true, 529: true, 401: false, 403: false, 407: false, 302: false} {
		url, hits := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			for name, value := range map[string]string{
				"Content-Type": typeJSON, "Request-Id": "req_1", "Retry-After": "61", "X-Should-Retry": "false", "Anthropic-Ratelimit-Unified-Reset": "7",
				"Set-Cookie": "a=b", "Anthropic-Organization-Id": "org",
			} {
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
		d := definition(url)
		d.Retries = 2
		for _, send := range bothWays(newClient(t, Options{}), routeTo(t, d)) {
			hits.Store(0)
			err := send()
			if hits.Load() != 1 {
				t.Errorf("%d: it was asked %d times", status, hits.Load())
			}
			var s *StatusError
			if !errors.As(err, &s) {
				if own || code(t, err) != unusable {
					t.Errorf("%d: found %v", status, err)
				}
				continue
			}
			want := http.Header{"Request-Id": {"req_1"}, "Retry-After": {"61"}, "X-Should-Retry": {"false"}, "Anthropic-Ratelimit-Unified-Reset": {"7"}}
			if !own || s.Status != status || string(s.Body) != body || s.ContentType != typeJSON || !reflect.DeepEqual(s.Header, want) {
				t.Errorf("%d: found %+v", status, s)
			}
		}
	}
}

// bothWays are a request for a whole answer and one for a stream.
func bothWays(c *Client, route *Route) []func() error {
	request := Request{Endpoint: Messages, Body: []byte(`{}`)}
	return []func() error{
		func() error { _, err := c.Post(context.Background(), route, request); return err },
		func() error {
			stream, err := c.Open(context.Background(), route, request)
			if err == nil {
				stream.Close()
			}
			return err
		},
	}
}

// TestStatusIsTriedAgain: a 5xx is tried again unless the provider forbids it.
func TestStatusIsTriedAgain(t *testing.T) {
	for _, forbidden := range []string{"", "false"} {
		url, hits := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Should-Retry", forbidden)
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(529)
		})
		d := definition(url)
		d.Retries = 1
		var seen []Attempt
		c := newClient(t, Options{Observe: func(a Attempt) { a.Took = 0; seen = append(seen, a) }})
		var s *StatusError
		if _, err := c.Post(context.Background(), routeTo(t, d), Request{Endpoint: Responses}); !errors.As(err, &s) || s.Status != 529 {
			t.Errorf("found %v", err)
		}
		want := []Attempt{{"sample", 529, unusable, 0}, {"sample", 529, unusable, 0}}
		if forbidden != "" {
			want = want[:1]
		}
		if !slices.Equal(seen, want) || hits.Load() != int64(len(want)) {
			t.Errorf("found %v after %d attempts", seen, hits.Load())
		}
	}
}

func TestPostBounds(t *testing.T) {
	for why, f := range map[string]upstreamFault{
		"a body that is too long": {answer: forever(jsonHead+chunked, chunkOf(strings.Repeat(" ", 100))), change: func(d *Definition) { d.MaxBody = 1 << 10 }, cause: "more bytes came than are allowed"},
		"a body that stalls":      {answer: sayAndStall(jsonHead, chunked, chunkOf("{")), change: idle, code: late, cause: "stalled"},
		"another type":            {answer: say(streamHead, withLength(textEvent)), cause: "another content type than application/json"},
		"a body that is cut":      {answer: say(jsonHead, "Content-Length: 9\r\n\r\n{}"), cause: "the connection ended before the answer did"},
		"a compressed body":       {answer: say(jsonHead, "Content-Encoding: gzip\r\n", chunked, chunkOf(theBomb)), cause: "compressed its answer"},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			url, _ := wire(t, f.answer)
			d := definition(url)
			if f.change != nil {
				f.change(&d)
			}
			if f.code == "" {
				f.code = unusable
			}
			_, err := newClient(t, Options{}).Post(context.Background(), routeTo(t, d), Request{Endpoint: Messages, Body: []byte(`{}`)})
			if code(t, err) != f.code {
				t.Errorf("found %v", err)
			}
			mustContain(t, err, f.cause)
		})
	}
}

// TestEnd: nothing may follow the last event of a wire, but for [DONE] and what adds nothing.
func TestEnd(t *testing.T) {
	const last = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	for why, c := range map[string]struct {
		answer func(net.Conn)
		cause  string
	}{
		"the end":                   {say(streamHead, chunked, chunkOf(last), "0\r\n\r\n"), ""},
		"a lost connection":         {say(streamHead, chunked, chunkOf(last)), ""},
		"silence":                   {sayAndStall(streamHead, chunked, chunkOf(last)), ""},
		"[DONE]":                    {say(streamHead, chunked, chunkOf(last+doneEvent), "0\r\n\r\n"), ""},
		"a comment":                 {say(streamHead, chunked, chunkOf(last+": bye\n\n"), "0\r\n\r\n"), ""},
		"two [DONE]":                {say(streamHead, chunked, chunkOf(last+doneEvent+doneEvent), "0\r\n\r\n"), ""},
		"[DONE] with a space":       {say(streamHead, chunked, chunkOf(last+"data: [DONE] \n\n"), "0\r\n\r\n"), ""},
		"[DONE] without its end":    {say(streamHead, chunked, chunkOf(last+"data: [DONE]\t"), "0\r\n\r\n"), ""},
		"what adds nothing":         {say(streamHead, chunked, chunkOf(last+"data: again\n\n"+doneEvent+"data: again\n\n"), "0\r\n\r\n"), ""},
		"an event without data":     {say(streamHead, chunked, chunkOf(last+"data:\n\n"), "0\r\n\r\n"), ""},
		"another event":             {say(streamHead, chunked, chunkOf(last+last), "0\r\n\r\n"), "an event after the end"},
		"an event after [DONE]":     {say(streamHead, chunked, chunkOf(last+doneEvent+last), "0\r\n\r\n"), ""},
		"a part of an event":        {say(streamHead, chunked, chunkOf(last+"data: {"), "0\r\n\r\n"), "an event after the end"},
		"an event in another chunk": {say(streamHead, chunked, chunkOf(last), chunkOf(last), "0\r\n\r\n"), "an event after the end"},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			url, _ := wire(t, c.answer)
			stream, err := newClient(t, Options{}).Open(context.Background(), routeTo(t, definition(url)), Request{Endpoint: Messages, Body: []byte(`{}`)})
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			if name, data, err := stream.Next(); string(name) != "message_stop" || string(data) != `{"type":"message_stop"}` || err != nil {
				t.Fatalf("found %s %s, %v", name, data, err)
			}
			err = stream.End(func(_, data []byte) bool { return string(data) == "again" })
			if c.cause == "" {
				if err != nil {
					t.Errorf("found %v", err)
				}
				return
			}
			if code(t, err) != unusable {
				t.Errorf("found %v", err)
			}
			mustContain(t, err, c.cause)
			if _, _, again := stream.Next(); again != err {
				t.Errorf("found %v after %v", again, err)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	basic := func(user, password string) *tool.Credential {
		return &tool.Credential{In: tool.InBasic, User: user, Secret: "env:" + password}
	}
	header := func(name, prefix, value string) *tool.Credential {
		return &tool.Credential{In: tool.InHeader, Name: name, Prefix: prefix, Secret: "env:" + value}
	}
	for want, c := range map[string]*tool.Credential{
		"X-Api-Key: sk-1":           header("x-api-key", "", "sk-1"),
		"Authorization: Token sk-1": header("Authorization", "Token ", "sk-1"),
		"Api-Key: sk-1":             header("Api-Key", "", "sk-1"),
		"Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==": basic("Aladdin", "open sesame"),
		"Authorization: Basic dGVzdDoxMjPCow==":             basic("test", "123£"), // RFC 7617, section 2.1
		"characters that no header takes; header":           header("X-Api-Key", "", "a\r\nb"),
		"basic authentication does not take; control, user": basic("u", "a\nb"),
		"basic authentication does not take; nothing, user": basic("u", ""),
		"characters that no bearer token has; nothing":      tool.Bearer("env:"),
	} {
		var header http.Header
		url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			header = r.Header
			answerJSON(w, good)
		})
		d := definition(url)
		d.Credential = c
		_, err := newClient(t, Options{}).Post(context.Background(), routeTo(t, d), Request{Endpoint: Messages, Header: http.Header{"Api-Key": {"caller"}}})
		if part, _, refused := strings.Cut(want, "; "); refused {
			mustContain(t, err, part)
			continue
		}
		name, value, _ := strings.Cut(want, ": ")
		if err != nil || !slices.Equal(header[name], []string{value}) {
			t.Errorf("found %v, %v; expected %s", header, err, want)
		}
	}
}

// TestTokens: an upstream gets a token of the OAuth client credentials grant. One that it does not accept
// is replaced, once; the provider's answer to the second is final.
func TestTokens(t *testing.T) {
	var issued, asked atomic.Int64
	issuer, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "id" || password != "hunter2" {
			t.Errorf("the client is %q, %q", user, password)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer","expires_in":3600}`, issued.Add(1))
	})
	var accepted atomic.Value
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Authorization") != accepted.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answerJSON(w, good)
	})
	d := definition(url)
	d.Retries = 3
	d.Credential = &tool.Credential{In: tool.InOAuth, Secret: "env:hunter2", OAuth: &tool.OAuth{TokenURL: issuer, ClientID: "id", Addresses: []string{"127.0.0.1/32"}}}
	c := newClient(t, Options{})
	send := func() error {
		_, err := post(context.Background(), c, routeTo(t, d), []byte(`{}`))
		return err
	}
	expect := func(when string, err error, tokens, requests int64) {
		t.Helper()
		if issued.Load() != tokens || asked.Load() != requests {
			t.Errorf("%s: %d tokens and %d requests, %v; expected %d and %d", when, issued.Load(), asked.Load(), err, tokens, requests)
		}
	}
	accepted.Store("Bearer token-1")
	for range 2 {
		if err := send(); err != nil {
			t.Error(err)
		}
	}
	expect("one token", nil, 1, 2)
	accepted.Store("Bearer token-2")
	err := send()
	if err != nil {
		t.Error(err)
	}
	expect("a new token", err, 2, 4)
	accepted.Store("Bearer none")
	err = send()
	if code(t, err) != unusable || strings.Contains(fmt.Sprint(err), "token-") {
		t.Errorf("found %v", err)
	}
	expect("no token is accepted", err, 2, 5)
}

// TestSecretsAreNotRepeated: an error that repeats the credential has no body, and a header that
// does is not kept, however the provider writes it.
func TestSecretsAreNotRepeated(t *testing.T) {
	for _, body := range []string{`{"error":{"message":"bad sk-1"}}`, `{"detail":["sk\u002d1"]}`, `sk-1`, `{"a":"sk\/-1","b":"\\sk-1"}`} {
		url, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Request-Id", "for sk-1")
			w.WriteHeader(400)
			_, _ = io.WriteString(w, body)
		})
		d := definition(url)
		d.Credential = &tool.Credential{In: tool.InHeader, Name: "X-Api-Key", Secret: "env:sk-1"}
		_, err := newClient(t, Options{}).Post(context.Background(), routeTo(t, d), Request{Endpoint: Messages})
		var s *StatusError
		if !errors.As(err, &s) || s.Body != nil || s.Message != "" || len(s.Header) != 0 {
			t.Errorf("%s: found %+v", body, err)
		}
	}
}

func TestUnescaped(t *testing.T) {
	for in, want := range map[string]string{
		`a`: "a", `\u0041b`: "Ab", `\n\/`: "n/", `\\u0041`: "u0041", `\u00`: "u00", `\u00zz`: "u00zz", `\`: "", `\u005cu0041`: `\u0041`,
	} {
		if found := unescaped([]byte(in)); !bytes.Equal(found, []byte(want)) {
			t.Errorf("%s: found %s", in, found)
		}
	}
}
