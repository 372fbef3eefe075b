package upstream

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/ports"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const (
	unusable = refusal.UpstreamUnavailable
	late     = refusal.UpstreamTimeout
	own      = refusal.Code("of the provider") // a *StatusError
)

func say(parts ...string) func(net.Conn) {
	return func(conn net.Conn) {
		for _, p := range parts {
			if _, err := io.WriteString(conn, p); err != nil {
				return
			}
		}
	}
}

// sayAndStall writes, and then nothing, with the connection open.
func sayAndStall(parts ...string) func(net.Conn) {
	return func(conn net.Conn) {
		say(parts...)(conn)
		untilGone(conn)
	}
}

// forever writes a piece again and again.
func forever(head, piece string) func(net.Conn) {
	return func(conn net.Conn) {
		_, err := io.WriteString(conn, head)
		for err == nil {
			_, err = io.WriteString(conn, piece)
		}
	}
}

func bomb(n int) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(make([]byte, n))
	_ = z.Close()
	return b.String()
}

// theBomb grows a thousandfold when it is decoded.
var theBomb = bomb(64 << 20)

// upstreamFault is one way in which an upstream goes wrong, with the exact answer.
type upstreamFault struct {
	answer func(net.Conn)
	change func(*Definition)
	code   refusal.Code
	cause  string // of the operator's line
	chunks int    // that were given before
}

func firstByte(d *Definition) { d.Timeouts.Response = soon }
func idle(d *Definition)      { d.Timeouts.Idle = soon }
func total(d *Definition)     { d.Timeouts.Total = soon }

// streamFaults are those of streams. No call may come of any.
var streamFaults = map[string]upstreamFault{
	"closed without a word":            {answer: say(), code: unusable, cause: "the connection ended before the answer did"},
	"a head in part":                   {answer: say("HTTP/1.1 200 OK\r\nContent-"), code: unusable, cause: "not valid HTTP"},
	"no HTTP":                          {answer: say("SSH-2.0-x\r\n\r\n"), code: unusable, cause: "not valid HTTP"},
	"a head that drips":                {answer: forever("HTTP/1.1 200 OK\r\n", "X-A: b\r\n"), code: unusable, cause: "not valid HTTP"},
	"a head that never ends":           {answer: sayAndStall("HTTP/1.1 200 OK\r\nX-A"), change: firstByte, code: late, cause: "did not begin in time"},
	"no answer":                        {answer: sayAndStall(), change: firstByte, code: late, cause: "did not begin in time"},
	"a head and no body":               {answer: sayAndStall(streamHead, chunked), change: firstByte, code: late, cause: "did not begin in time"},
	"no answer in all":                 {answer: sayAndStall(), change: total, code: late, cause: "the whole answer took too long"},
	"stalled after text":               {answer: sayAndStall(streamHead, chunked, chunkOf(textEvent)), change: idle, code: late, cause: "stalled", chunks: 1},
	"stalled within an event":          {answer: sayAndStall(streamHead, chunked, chunkOf(textEvent), chunkOf("data: {")), change: idle, code: late, cause: "stalled", chunks: 1},
	"stalled within what follows":      {answer: sayAndStall(streamHead, chunked, chunkOf(callEvent+endEvent+"data: {")), code: late, cause: "within an event", chunks: 2},
	"comments without end":             {answer: forever(streamHead+chunked, chunkOf(": working\n\n")), change: total, code: late, cause: "the whole answer took too long"},
	"cut within a call":                {answer: say(streamHead, chunked, chunkOf(callEvent)), code: unusable, cause: "the connection ended before the answer did", chunks: 1},
	"cut within a chunk of HTTP":       {answer: say(streamHead, chunked, chunkOf(textEvent), "ff\r\ndata: "), code: unusable, cause: "the connection ended before the answer did", chunks: 1},
	"cut after finish_reason":          {answer: say(streamHead, chunked, chunkOf(callEvent+endEvent)), code: unusable, cause: "the connection ended before the answer did", chunks: 2},
	"closed within an event, unframed": {answer: say(streamHead, "\r\n", callEvent+endEvent+"data: {"), code: unusable, cause: "the connection ended before the answer did", chunks: 2},
	"an empty stream":                  {answer: say(streamHead, chunked, "0\r\n\r\n"), code: unusable, cause: "the connection ended before the answer did"},
	"an end within an event":           {answer: say(streamHead, chunked, chunkOf(callEvent+endEvent+"data: {"), "0\r\n\r\n"), code: unusable, cause: "the connection ended before the answer did", chunks: 2},
	"a line that is too long":          {answer: forever(streamHead+chunked+chunkOf("data: "), chunkOf(strings.Repeat("x", 100))), change: func(d *Definition) { d.MaxEvent = 1 << 10 }, code: unusable, cause: "a line of a stream over 1024 bytes"},
	"an event that is too long":        {answer: forever(streamHead+chunked, chunkOf("data: "+strings.Repeat("x", 100)+"\n")), change: func(d *Definition) { d.MaxEvent = 1 << 10 }, code: unusable, cause: "an event of a stream over 1024 bytes"},
	"a stream that is too long":        {answer: forever(streamHead+chunked, chunkOf(": "+strings.Repeat("x", 100)+"\n")), change: func(d *Definition) { d.MaxStream = 1 << 14 }, code: unusable, cause: "more bytes came than are allowed"},
	"too many events":                  {answer: forever(streamHead+chunked, chunkOf(textEvent)), change: func(d *Definition) { d.MaxEvents = 5 }, code: unusable, cause: "more events", chunks: 5},
	"a length beyond what is allowed":  {answer: sayAndStall(streamHead, "Content-Length: 99999\r\n\r\n"), change: func(d *Definition) { d.MaxStream = 1 << 14 }, code: unusable, cause: "more than 16384 bytes"},
	"a body shorter than its length":   {answer: say(streamHead, fmt.Sprintf("Content-Length: %d\r\n\r\n", len(textEvent+endEvent+doneEvent)), textEvent+endEvent), code: unusable, cause: "the connection ended before the answer did", chunks: 2},
	"JSON, not a stream":               {answer: say(jsonHead, fmt.Sprintf("Content-Length: %d\r\n\r\n", len(good)), good), code: unusable, cause: "another content type than text/event-stream"},
	"a failure as JSON":                {answer: say(jsonHead, withLength(`{"base_resp":{"status_code":1008,"status_msg":"SECRET"}}`)), code: own, cause: "states an error in its answer"},
	"another content type":             {answer: say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", chunked, chunkOf(textEvent)), code: unusable, cause: "another content type"},
	"two content types":                {answer: say(streamHead, "Content-Type: text/html\r\n", chunked, chunkOf(textEvent)), code: unusable, cause: "another content type"},
	"another charset":                  {answer: say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-16\r\n", chunked, chunkOf(textEvent)), code: unusable, cause: "another content type"},
	"a bomb":                           {answer: say(streamHead, "Content-Encoding: gzip\r\n", chunked, chunkOf(theBomb)), code: unusable, cause: "compressed its answer"},
	"no content":                       {answer: say("HTTP/1.1 204 No Content\r\n\r\n"), code: unusable, cause: "HTTP status 204"},
	"a redirect":                       {answer: say("HTTP/1.1 307 x\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"), code: unusable, cause: "HTTP status 307"},
	"a switch of protocols":            {answer: sayAndStall("HTTP/1.1 101 x\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), code: unusable, cause: "HTTP status 101"},
	"no entry":                         {answer: say("HTTP/1.1 401 x\r\nContent-Length: 6\r\n\r\nSECRET"), code: unusable, cause: "HTTP status 401"},
	"not allowed":                      {answer: say("HTTP/1.1 403 x\r\nContent-Length: 6\r\n\r\nSECRET"), code: unusable, cause: "HTTP status 403"},
	"a proxy's entry":                  {answer: say("HTTP/1.1 407 x\r\nContent-Length: 6\r\n\r\nSECRET"), code: unusable, cause: "HTTP status 407"},
	"a failure":                        {answer: say("HTTP/1.1 500 x\r\nContent-Length: 6\r\n\r\nSECRET"), code: own, cause: "HTTP status 500"},
	"away":                             {answer: say("HTTP/1.1 503 x\r\nRetry-After: 7\r\nContent-Length: 6\r\n\r\nSECRET"), code: own, cause: "HTTP status 503"},
}

func TestStreamFaults(t *testing.T) {
	for why, f := range streamFaults {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			url, hits := wire(t, f.answer)
			d := definition(url)
			if f.change != nil {
				f.change(&d)
			}
			events, err := stream(t, d)
			f.judge(t, err)
			if len(events) != f.chunks {
				t.Errorf("%d events came, expected %d", len(events), f.chunks)
			}
			if hits.Load() > 1 {
				t.Errorf("it was asked %d times", hits.Load())
			}
		})
	}
}

func (f upstreamFault) judge(t *testing.T, err error) {
	t.Helper()
	if f.code == own {
		var s *StatusError
		if !errors.As(err, &s) || !strings.Contains(err.Error(), f.cause) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("found %v, want %s", err, f.cause)
		}
		return
	}
	if got := code(t, err); got != f.code {
		t.Errorf("found %q (%v), expected %q", got, err, f.code)
	}
	mustContain(t, err, f.cause)
	mustContain(t, err, "sample")
	if strings.Contains(fmt.Sprint(err), "SECRET") {
		t.Errorf("it repeats what the provider said: %v", err)
	}
}

func withLength(body string) string {
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// completionFaults are those of completions that are not streamed.
var completionFaults = map[string]upstreamFault{
	"no answer":                       {answer: sayAndStall(), change: firstByte, code: late, cause: "did not begin in time"},
	"a head and no body":              {answer: sayAndStall(jsonHead, "Content-Length: 5\r\n\r\n"), change: firstByte, code: late, cause: "did not begin in time"},
	"stalled within":                  {answer: sayAndStall(jsonHead, chunked, chunkOf(good[:50])), change: idle, code: late, cause: "stalled"},
	"dripping":                        {answer: forever(jsonHead+chunked, chunkOf(" ")), change: total, code: late, cause: "the whole answer took too long"},
	"cut within a call":               {answer: say(jsonHead, "Content-Length: 500\r\n\r\n", good[:90]), code: unusable, cause: "the connection ended before the answer did"},
	"cut between chunks of HTTP":      {answer: say(jsonHead, chunked, chunkOf(good)), code: unusable, cause: "the connection ended before the answer did"},
	"a type that is not JSON":         {answer: say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", withLength(good)), code: unusable, cause: "another content type than application/json"},
	"a stream":                        {answer: say(streamHead, withLength(textEvent)), code: unusable, cause: "another content type"},
	"a body that is too long":         {answer: forever(jsonHead+chunked, chunkOf(strings.Repeat(" ", 100))), change: func(d *Definition) { d.MaxBody = 1 << 14 }, code: unusable, cause: "more bytes came than are allowed"},
	"a length that is too long":       {answer: sayAndStall(jsonHead, "Content-Length: 99999\r\n\r\n"), change: func(d *Definition) { d.MaxBody = 1 << 14 }, code: unusable, cause: "more than 16384 bytes"},
	"a bomb":                          {answer: say(jsonHead, "Content-Encoding: gzip\r\n", withLength(theBomb)), code: unusable, cause: "compressed its answer"},
	"a bomb as an error":              {answer: say("HTTP/1.1 500 x\r\nContent-Encoding: gzip\r\n", withLength(theBomb)), code: own, cause: "HTTP status 500"},
	"a failure that never ends":       {answer: forever("HTTP/1.1 500 x\r\n"+chunked, chunkOf("SECRET")), code: own, cause: "HTTP status 500"},
	"informational heads without end": {answer: forever("", "HTTP/1.1 103 x\r\n\r\n"), code: unusable, cause: ""},
}

func TestCompletionFaults(t *testing.T) {
	for why, f := range completionFaults {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			url, hits := wire(t, f.answer)
			d := definition(url)
			if f.change != nil {
				f.change(&d)
			}
			completion, err := complete(t, d)
			f.judge(t, err)
			if completion != nil || hits.Load() > 1 {
				t.Errorf("found %+v after asking %d times", completion, hits.Load())
			}
		})
	}
}

// TestWholeStreams are what streams may be, and still be whole.
func TestWholeStreams(t *testing.T) {
	whole := callEvent + endEvent + doneEvent
	for why, answer := range map[string]func(net.Conn){
		"chunked": say(streamHead, chunked, chunkOf(whole), "0\r\n\r\n"),
		"byte by byte": func(c net.Conn) {
			say(streamHead, chunked)(c)
			for i := range whole {
				say(chunkOf(whole[i : i+1]))(c)
			}
			say("0\r\n\r\n")(c)
		},
		"of a length":                 say(streamHead, withLength(whole)),
		"unframed":                    say(streamHead, "\r\n", whole),
		"HTTP/1.0":                    say("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", whole),
		"a charset":                   say("HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=\"UTF-8\"\r\n", chunked, chunkOf(whole), "0\r\n\r\n"),
		"identity":                    say(streamHead, "Content-Encoding: identity\r\n", chunked, chunkOf(whole), "0\r\n\r\n"),
		"closed, unframed":            say(streamHead, "\r\n", callEvent+endEvent),
		"stalled after the end":       sayAndStall(streamHead, chunked, chunkOf(callEvent+endEvent)),
		"stalled, unframed":           sayAndStall(streamHead, "\r\n", callEvent+endEvent),
		"stalled after the usage":     sayAndStall(streamHead, chunked, chunkOf(callEvent+endEvent+"data: {\"usage\":{\"total_tokens\":3}}\n\n")),
		"comments after the end":      forever(streamHead+chunked+chunkOf(callEvent+endEvent), chunkOf(": here\n\n")),
		"two [DONE]":                  say(streamHead, chunked, chunkOf(whole+doneEvent), "0\r\n\r\n"),
		"[DONE] with a space":         say(streamHead, chunked, chunkOf(callEvent+endEvent+"data: [DONE] \n\n"), "0\r\n\r\n"),
		"created":                     say("HTTP/1.1 201 Created\r\nContent-Type: text/event-stream\r\n", chunked, chunkOf(whole), "0\r\n\r\n"),
		"no content type":             say("HTTP/1.1 200 OK\r\n", chunked, chunkOf(whole), "0\r\n\r\n"),
		"two content types":           say("HTTP/1.1 200 OK\r\nContent-Type: application/json, text/event-stream; charset=utf-8\r\n", chunked, chunkOf(whole), "0\r\n\r\n"),
		"a type that says nothing":    say("HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n", chunked, chunkOf(whole), "0\r\n\r\n"),
		"events without data":         say(streamHead, chunked, chunkOf("data:\n\n"+whole), "0\r\n\r\n"),
		"pings":                       say(streamHead, chunked, chunkOf("event: ping\ndata: {\"type\":\"ping\"}\n\n"+whole), "0\r\n\r\n"),
		"without [DONE], framed":      say(streamHead, chunked, chunkOf(callEvent+endEvent), "0\r\n\r\n"),
		"comments after [DONE]":       say(streamHead, chunked, chunkOf(whole+": bye\n\n\n"), "0\r\n\r\n"),
		"not ended after [DONE]":      say(streamHead, chunked, chunkOf(whole)),
		"stalled after [DONE]":        sayAndStall(streamHead, chunked, chunkOf(whole)),
		"data after [DONE]":           say(streamHead, chunked, chunkOf(whole+textEvent), "0\r\n\r\n"),
		"a part of data after [DONE]": say(streamHead, chunked, chunkOf(whole+"data: {"), "0\r\n\r\n"),
		"a long line after [DONE]":    say(streamHead, chunked, chunkOf(whole+":"+strings.Repeat("x", 2<<20)), "0\r\n\r\n"),
		"data for ever":               forever(streamHead+chunked+chunkOf(whole), chunkOf(textEvent)),
		"signs of life after the end": func(conn net.Conn) {
			_, err := io.WriteString(conn, streamHead+chunked+chunkOf(callEvent+endEvent))
			for err == nil {
				time.Sleep(200 * time.Millisecond)
				_, err = io.WriteString(conn, chunkOf("event: ping\ndata: {}\n\n"))
			}
		},
		"comments for ever":          forever(streamHead+chunked+chunkOf(whole), chunkOf(":\n")),
		"an end said twice":          say(streamHead, chunked, chunkOf(callEvent+endEvent+endEvent+doneEvent), "0\r\n\r\n"),
		"usage after the end":        say(streamHead, chunked, chunkOf(callEvent+endEvent+"data: {\"choices\":[],\"usage\":{\"total_tokens\":3}}\n\n"+doneEvent), "0\r\n\r\n"),
		"a name of an event":         say(streamHead, chunked, chunkOf("event: chunk\n"+whole), "0\r\n\r\n"),
		"an informational head":      say("HTTP/1.1 103 x\r\n\r\n", streamHead, chunked, chunkOf(whole), "0\r\n\r\n"),
		"comments before all":        say(streamHead, chunked, chunkOf(": wait\n\n"), chunkOf(": wait\n\n"+whole), "0\r\n\r\n"),
		"a trailer after the chunks": say(streamHead, chunked, chunkOf(whole), "0\r\nX-A: b\r\n\r\n"),
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			url, _ := wire(t, answer)
			events, err := stream(t, definition(url))
			if err != nil || !slices.Contains(events, strings.TrimSpace(strings.TrimPrefix(callEvent, "data: "))) {
				t.Errorf("found %q, %v", events, err)
			}
		})
	}
}

// TestRefusedConnections ask where nobody listens, and where no name leads.
func TestRefusedConnections(t *testing.T) {
	url := "http://" + ports.Hold(t)
	_, err := complete(t, definition(url))
	if code(t, err) != unusable {
		t.Errorf("found %v", err)
	}
	mustContain(t, err, "connection refused")
	_, err = stream(t, definition(url))
	if code(t, err) != unusable {
		t.Errorf("found %v", err)
	}
}

func TestConnectTakesTooLong(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0") // and never says a word of TLS
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := definition("https://" + l.Addr().String())
	d.Timeouts.Connect = soon
	_, err = complete(t, d)
	if code(t, err) != late {
		t.Errorf("found %v", err)
	}
	mustContain(t, err, "the connection was not established in time")
}

// TestCallerLeaves cancels at each stage: the connection is closed, and the
// error says who left.
func TestCallerLeaves(t *testing.T) {
	for why, parts := range map[string][]string{
		"before the head":    nil,
		"before the body":    {streamHead, chunked},
		"within the stream":  {streamHead, chunked, chunkOf(textEvent)},
		"within the comment": {streamHead, chunked, chunkOf(textEvent), chunkOf(": wai")},
	} {
		for how, want := range map[string]struct {
			err  error
			code refusal.Code
		}{"cancel": {context.Canceled, refusal.Canceled}, "deadline": {context.DeadlineExceeded, late}} {
			t.Run(why+" by "+how, func(t *testing.T) {
				t.Parallel()
				requested, gone := make(chan struct{}), make(chan struct{})
				url, _ := wire(t, func(conn net.Conn) {
					say(parts...)(conn)
					close(requested)
					untilGone(conn)
					close(gone)
				})
				ctx, cancel := context.WithCancel(context.Background())
				if how == "deadline" {
					ctx, cancel = context.WithTimeout(context.Background(), 4*soon)
				}
				defer cancel()
				if how == "cancel" {
					go func() {
						<-requested
						cancel()
					}()
				}
				e, err := openEvents(ctx, newClient(t, Options{}), routeTo(t, definition(url)), []byte(`{}`))
				if err == nil {
					defer e.Close()
					_, err = drain(e)
				}
				if code(t, err) != want.code || !errors.Is(err, want.err) {
					t.Errorf("found %v", err)
				}
				select {
				case <-requested:
					waitFor(t, gone)
				default: // the time was up before the request was out
				}
			})
		}
	}
}

func waitFor(t testing.TB, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patient):
		t.Fatal("it took too long")
	}
}

// TestCloseFreesTheConnection closes a stream that continues.
func TestCloseFreesTheConnection(t *testing.T) {
	gone := make(chan struct{})
	url, _ := wire(t, func(conn net.Conn) {
		forever(streamHead+chunked, chunkOf(textEvent))(conn)
		close(gone)
	})
	e, err := openEvents(context.Background(), newClient(t, Options{}), routeTo(t, definition(url)), []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.Next(); err != nil {
		t.Fatal(err)
	}
	e.Close()
	e.Close()
	waitFor(t, gone)
	if _, err := drainError(e); code(t, err) != unusable {
		t.Errorf("found %v", err)
	}
}

func drainError(e *EventStream) (n int, err error) {
	for ; ; n++ {
		if _, _, err := e.Next(); err != nil {
			return n, err
		}
	}
}

// TestSlowReader holds that the time of a reader is not the provider's.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	const many = 2000 // more than any buffer of ours holds
	url, _ := wire(t, say(streamHead, chunked, chunkOf(strings.Repeat(textEvent, many)), chunkOf(endEvent+doneEvent), "0\r\n\r\n"))
	d := definition(url)
	d.Timeouts.Idle = 40 * soon
	e, err := openEvents(context.Background(), newClient(t, Options{}), routeTo(t, d), []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const before = 200 // so that it has read more than once
	for range before {
		if _, _, err := e.Next(); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(50 * soon) // this is what is tested: a pause beyond the idle time
	if n, err := drainError(e); err != io.EOF || n != many+2-before {
		t.Errorf("found %d events, then %v", n, err)
	}
}

// TestErrorsLast asks on after an end and after a fault.
func TestErrorsLast(t *testing.T) {
	for in, want := range map[string]error{callEvent + endEvent + doneEvent: io.EOF, callEvent + "data: {": nil} {
		e := offline(strings.NewReader(in))
		_, first := drainError(e)
		n, second := drainError(e)
		if n != 0 || second != first || want != nil && first != want {
			t.Errorf("%q: found %v, then %v", in, first, second)
		}
	}
}

func TestProvidersOwnRefusal(t *testing.T) {
	const body = `{"error":{"message":"Too long.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`
	for _, status := range []int{400, 402, 404, 405, 408, 409, 413, 415, 422, 429, 451, 499, 500, 501, 502, 503, 504, 529} {
		url, hits := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
		_, err := complete(t, definition(url))
		var s *StatusError
		if !errors.As(err, &s) {
			t.Fatalf("%d: found %v", status, err)
		}
		want := &StatusError{
			Upstream: "sample", Status: status, Type: "invalid_request_error", Code: "context_length_exceeded", Param: "messages", Message: "Too long.",
			RetryAfter: 3 * time.Second, Body: []byte(body), ContentType: "text/plain; charset=utf-8", Header: http.Header{"Retry-After": {"3"}},
		}
		if !reflect.DeepEqual(s, want) || hits.Load() != 1 {
			t.Errorf("%d: found %+v", status, s)
		}
		if want := fmt.Sprintf("sample answered with HTTP status %d, type invalid_request_error, code context_length_exceeded", status); err.Error() != want {
			t.Errorf("found %s", err)
		}
	}
}

func TestRefusalThatCannotBeRead(t *testing.T) {
	long := `{"error":{"message":"` + strings.Repeat("x", maxErrorBody) + `"}}`
	for why, answer := range map[string]func(net.Conn){
		"HTML":          say("HTTP/1.1 404 x\r\n", withLength("<html>")),
		"nothing":       say("HTTP/1.1 404 x\r\n", withLength("")),
		"cut":           say("HTTP/1.1 404 x\r\nContent-Length: 90\r\n\r\n{}"),
		"too long":      say("HTTP/1.1 404 x\r\n", withLength(long)),
		"without end":   forever("HTTP/1.1 404 x\r\n"+chunked, chunkOf(strings.Repeat(" ", 1000))),
		"stalled":       sayAndStall("HTTP/1.1 404 x\r\nContent-Length: 90\r\n\r\n{"),
		"compressed":    say("HTTP/1.1 404 x\r\nContent-Encoding: gzip\r\n", withLength(bomb(1<<20))),
		"in brotli":     say("HTTP/1.1 404 x\r\nContent-Encoding: br\r\n", withLength("x")),
		"no gzip":       say("HTTP/1.1 404 x\r\nContent-Encoding: gzip\r\n", withLength("x")),
		"with the key":  say("HTTP/1.1 404 x\r\n", withLength(`{"error":{"message":"no model for sk-\u0074est-key-1","type":"t"}}`)),
		"key as a type": say("HTTP/1.1 404 x\r\n", withLength(`{"error":{"type":"sk-test-key-1","message":"m"}}`)),
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			url, _ := wire(t, answer)
			d := definition(url)
			d.Timeouts.Idle = soon
			d.Credential = tool.Bearer("env:sk-test-key-1")
			_, err := complete(t, d)
			var s *StatusError
			if !errors.As(err, &s) {
				t.Fatalf("found %v", err)
			}
			withheld := map[string]string{
				"cut": "broke off", "stalled": "broke off", "too long": "is longer than", "without end": "is longer than", "compressed": "is longer than",
				"with the key": "contains the key", "key as a type": "contains the key", "in brotli": "is compressed", "no gzip": "is compressed",
			}[why]
			if (why == "HTML") != (string(s.Body) == "<html>") || s.Withheld != withheld && (withheld == "" || !strings.HasPrefix(s.Withheld, withheld)) {
				t.Errorf("found the body %q, withheld since it %s", s.Body, s.Withheld)
			}
			want := "Its answer cannot be shown, since it " + withheld
			switch why {
			case "HTML":
				want = "<html>"
			case "nothing":
				want = "does not say why"
			}
			if s.Type != "" || s.Code != "" || !strings.Contains(s.Why(), want) || strings.Contains(s.Why(), "est-key-1") {
				t.Errorf("found %+v, %s", err, s.Why())
			}
		})
	}
}

// TestCompressedRefusal: a provider's error that is compressed though that was not asked for is unpacked.
func TestCompressedRefusal(t *testing.T) {
	const body = `{"error":{"message":"Too long.","code":"context_length_exceeded"}}`
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, body)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	url, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(400)
		_, _ = w.Write(packed.Bytes())
	})
	_, err := complete(t, definition(url))
	var s *StatusError
	if !errors.As(err, &s) || string(s.Body) != body || s.ContentType != "application/json" || s.Message != "Too long." || s.Code != "context_length_exceeded" {
		t.Errorf("found %+v", err)
	}
}
