package engine_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// say writes an answer; what cannot be written, because the engine has gone
// away, is what these tests are about.
func say(parts ...string) func(net.Conn) {
	return func(conn net.Conn) { io.WriteString(conn, strings.Join(parts, "")) }
}

// forever repeats a text until the engine goes away.
func forever(head, text string, pause time.Duration) func(net.Conn) {
	return func(conn net.Conn) {
		io.WriteString(conn, head)
		for {
			if _, err := io.WriteString(conn, text); err != nil {
				return
			}
			time.Sleep(pause)
		}
	}
}

func reset(conn net.Conn) { conn.(*net.TCPConn).SetLinger(0); conn.Close() }

func packed(writer func(io.Writer) io.WriteCloser, size int) string {
	var b bytes.Buffer
	w := writer(&b)
	chunk := make([]byte, 64<<10)
	for size > 0 {
		n, _ := w.Write(chunk[:min(size, len(chunk))])
		size -= n
	}
	w.Close()
	return b.String()
}

func gzipped(w io.Writer) io.WriteCloser  { return gzip.NewWriter(w) }
func deflated(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }

const (
	ok      = "HTTP/1.1 200 OK\r\n"
	page    = ok + "Content-Type: text/plain\r\n"
	chunked = page + "Transfer-Encoding: chunked\r\n\r\n"
	closing = page + "Connection: close\r\n"
	limit   = 1 << 20
)

// Every way to answer badly that could be thought of. The tool sees a once call
// at most once, and a read call at most three times.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	const (
		brokenOff = refusal.ToolUnavailable // outcome_unknown for once
		late      = refusal.ToolTimeout     // outcome_unknown for once
		large     = refusal.ResultTooLarge
		invalid   = refusal.InvalidResult
	)
	zeros := strings.Repeat("x", limit)
	for name, c := range map[string]struct {
		answer func(net.Conn)
		want   refusal.Code
		body   string // where it succeeds
	}{
		"close at once":           {func(conn net.Conn) { conn.Close() }, brokenOff, ""},
		"reset at once":           {reset, brokenOff, ""},
		"hang":                    {func(net.Conn) {}, late, ""},
		"not HTTP":                {say("SECRET SECRET SECRET\r\n\r\n"), brokenOff, ""},
		"SSH":                     {say("SSH-2.0-OpenSSH_9.6\r\n"), brokenOff, ""},
		"bad status":              {say("HTTP/1.1 SECRET OK\r\n\r\n"), brokenOff, ""},
		"status of four digits":   {say("HTTP/1.1 2000 OK\r\n\r\n"), brokenOff, ""},
		"bad header":              {say(ok, "SECRET without colon\r\n\r\n"), brokenOff, ""},
		"half a status line":      {func(conn net.Conn) { io.WriteString(conn, "HTTP/1.1 2"); conn.Close() }, brokenOff, ""},
		"half a head":             {func(conn net.Conn) { io.WriteString(conn, page); conn.Close() }, brokenOff, ""},
		"half a head, hanging":    {say(page), late, ""},
		"10 MB of headers":        {say(page, "X: ", strings.Repeat("x", 10<<20), "\r\n\r\n"), brokenOff, ""},
		"endless headers":         {forever(page, "X-Y: zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\r\n", 0), brokenOff, ""},
		"dripping headers":        {forever(page, "X: y\r\n", 20*time.Millisecond), late, ""},
		"endless early hints":     {forever("", "HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n", 0), brokenOff, ""},
		"early hints, then done":  {say("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n", page, "Content-Length: 2\r\n\r\nhi"), "", "hi"},
		"upgrade":                 {say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), refusal.ToolFailed, ""},
		"many early hints":        {say(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 100), page, "Content-Length: 2\r\n\r\nhi"), "", "hi"},
		"status below 100":        {say("HTTP/1.1 099 X\r\nContent-Length: 63\r\n\r\n", page, "Content-Length: 2\r\n\r\nhi"), refusal.ToolFailed, ""},
		"lengths that disagree":   {say(page, "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!"), brokenOff, ""},
		"negative length":         {say(page, "Content-Length: -1\r\n\r\nhi"), brokenOff, ""},
		"length and chunks":       {say(page, "Content-Length: 400\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"), "", "hi"},
		"unknown transfer coding": {say(page, "Transfer-Encoding: xchunked\r\n\r\nhi"), brokenOff, ""},
		"length too long":         {func(conn net.Conn) { io.WriteString(conn, page+"Content-Length: 100\r\n\r\nhi"); conn.Close() }, brokenOff, ""},
		"length too long, hangs":  {say(page, "Content-Length: 100\r\n\r\nhi"), late, ""},
		"length too short":        {say(page, "Connection: close\r\nContent-Length: 2\r\n\r\nhi there"), "", "hi"},
		"length over the limit":   {say(page, "Content-Length: 1048577\r\n\r\nhi"), large, ""},
		"enormous length":         {say(page, "Content-Length: 9223372036854775807\r\n\r\nhi"), large, ""},
		"length beyond int64":     {say(page, "Content-Length: 99999999999999999999\r\n\r\nhi"), brokenOff, ""},
		"exactly the limit":       {say(page, "Content-Length: 1048576\r\n\r\n", zeros), "", zeros},
		"endless body":            {forever(closing+"\r\n", zeros, 0), large, ""},
		"endless chunks":          {forever(chunked, "8\r\nxxxxxxxx\r\n", 0), large, ""},
		"dripping body":           {forever(closing+"\r\n", "x", 20*time.Millisecond), late, ""},
		"reset within the body":   {func(conn net.Conn) { io.WriteString(conn, page+"Content-Length: 100\r\n\r\nhi"); reset(conn) }, brokenOff, ""},
		"bad chunk size":          {say(chunked, "SECRET\r\nhi\r\n"), brokenOff, ""},
		"chunk size beyond int":   {say(chunked, "ffffffffffffffffff\r\nhi\r\n"), brokenOff, ""},
		"bare line feed in chunk": {say(chunked, "2\nhi\n0\n\n"), brokenOff, ""},
		"chunk without its end":   {say(chunked, "2\r\nhiXX0\r\n\r\n"), brokenOff, ""},
		"chunks cut off":          {func(conn net.Conn) { io.WriteString(conn, chunked+"2\r\nhi\r\n"); conn.Close() }, brokenOff, ""},
		"long chunk extensions":   {say(chunked, "2;", strings.Repeat("e", 1<<20), "\r\nhi\r\n0\r\n\r\n"), brokenOff, ""},
		"a few trailers":          {say(chunked, "2\r\nhi\r\n0\r\nX-A: b\r\n\r\n"), "", "hi"},
		"huge trailers":           {say(chunked, "2\r\nhi\r\n0\r\nX: ", strings.Repeat("x", 1<<20), "\r\n\r\n"), brokenOff, ""},
		"endless trailers":        {forever(chunked+"2\r\nhi\r\n0\r\n", "X-Y: zzzzzzzzzzzzzzzzzzzzzzzzzzzzz\r\n", 0), brokenOff, ""},
		"HTTP/1.0":                {func(conn net.Conn) { io.WriteString(conn, "HTTP/1.0 200 OK\r\n\r\nhi"); conn.Close() }, "", "hi"},
		"HTTP/1.0 with a length": {func(conn net.Conn) {
			io.WriteString(conn, "HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nhi")
			conn.Close()
		}, brokenOff, ""},
		"gzip bomb":          {say(closing, "Content-Encoding: gzip\r\n\r\n", packed(gzipped, 16<<20)), large, ""},
		"deflate bomb":       {say(closing, "Content-Encoding: deflate\r\n\r\n", packed(deflated, 16<<20)), large, ""},
		"endless empty gzip": {forever(closing+"Content-Encoding: gzip\r\n\r\n", strings.Repeat(packed(gzipped, 0), 100), 0), large, ""},
		"gzip, cut off": {func(conn net.Conn) {
			io.WriteString(conn, closing+"Content-Encoding: gzip\r\n\r\n"+packed(gzipped, 999)[:20])
			conn.Close()
		}, invalid, ""},
		"gzip, reset": {func(conn net.Conn) {
			io.WriteString(conn, page+"Content-Length: 99\r\nContent-Encoding: gzip\r\n\r\n"+packed(gzipped, 999)[:20])
			conn.Close()
		}, brokenOff, ""},
		"gzip that is none":    {say(page, "Content-Encoding: gzip\r\nContent-Length: 40\r\n\r\n", strings.Repeat("SECRET..", 5)), invalid, ""},
		"deflate that is none": {say(page, "Content-Encoding: deflate\r\nContent-Length: 40\r\n\r\n", strings.Repeat("SECRET..", 5)), invalid, ""},
		"gzip twice":           {say(page, "Content-Encoding: gzip, gzip\r\nContent-Length: 2\r\n\r\nhi"), invalid, ""},
		"gzip in two headers":  {say(page, "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhi"), invalid, ""},
		"brotli":               {say(page, "Content-Encoding: br\r\nContent-Length: 2\r\n\r\nhi"), invalid, ""},
		"zstd":                 {say(page, "Content-Encoding: zstd\r\nContent-Length: 2\r\n\r\nhi"), invalid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, effect := range []string{"read", "idempotent", "once", "whatever"} {
				retried := effect == "read" || effect == "idempotent"
				if testing.Short() && (effect == "idempotent" || effect == "whatever") {
					continue
				}
				call := loopback("", effect)
				call.Arguments = []byte(`{"a":"SECRET"}`)
				if c.want == late {
					call.Run.Timeout = 700 * time.Millisecond
				}
				want, attempts := c.want, int64(1)
				switch {
				case (want == late || want == brokenOff) && !retried:
					want = refusal.OutcomeUnknown
				case want == brokenOff:
					attempts = 3
				}
				var w *wire
				var result tool.Result
				var err error
				for {
					w = newWire(t, func(conn net.Conn, _ int) { c.answer(conn) })
					call.Run.URL = w.url + "?SECRET"
					result, err = newEngine(t, engine.Options{}).Run(context.Background(), call)
					if w.hits.Load() > 0 || call.Run.Timeout > patient {
						break
					}
					call.Run.Timeout *= 2 // where everything is slow, it has not come to the answer
				}
				got := code(t, err)
				if got != want || string(result.Body) != c.body || w.hits.Load() != attempts || int64(result.Attempts) != attempts {
					t.Errorf("%s: got %q, %d bytes, %d requests, %d attempts; want %q, %d bytes, %d requests",
						effect, got, len(result.Body), w.hits.Load(), result.Attempts, want, len(c.body), attempts)
				}
				expectNone(t, err, "SECRET")
				if want == brokenOff && !strings.Contains(err.Error(), "no whole answer") {
					t.Errorf("%s: %v", effect, err)
				}
			}
		})
	}
}

// Input is bounded while it is read, not after.
func TestBombsCostLittle(t *testing.T) {
	bomb := packed(gzipped, 64<<20)
	w := newWire(t, func(conn net.Conn, _ int) { say(closing, "Content-Encoding: gzip\r\n\r\n", bomb)(conn) })
	e := newEngine(t, engine.Options{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, got := run(t, e, loopback(w.url, "read"))
	runtime.ReadMemStats(&after)
	if got != refusal.ResultTooLarge {
		t.Errorf("got %q", got)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 12<<20 {
		t.Errorf("64 MiB for a tool of 1 MiB: %d bytes were allocated in all", n)
	}
}

func TestForms(t *testing.T) {
	for name, c := range map[string]struct {
		head, body string
		json       bool
		want       refusal.Code
	}{
		"json":                {"Content-Type: application/json\r\n", `{"a":1}`, true, ""},
		"json, other case":    {"content-type: Application/JSON; Charset=\"UTF-8\"\r\n", `{}`, true, ""},
		"json in utf8":        {"Content-Type: application/json; charset=\"UTF8\"\r\n", `{}`, true, ""},
		"json by suffix":      {"Content-Type: application/problem+json\r\n", `{}`, true, ""},
		"json that is none":   {"Content-Type: application/json\r\n", "\xff{", true, ""},
		"json, empty":         {"Content-Type: application/json\r\n", "", true, ""},
		"text":                {"Content-Type: text/plain; charset=utf-8\r\n", "grüße", false, ""},
		"no type":             {"", "{}", false, ""},
		"empty":               {"", "", false, ""},
		"html":                {"Content-Type: text/html\r\n", "<p>", false, ""},
		"text in latin-1":     {"Content-Type: text/plain; charset=iso-8859-1\r\n", "hi", false, refusal.InvalidResult},
		"json in utf-16":      {"Content-Type: application/json; charset=utf-16\r\n", "hi", false, refusal.InvalidResult},
		"text that is none":   {"Content-Type: text/plain\r\n", "gr\xfc\xdfe", false, refusal.InvalidResult},
		"no type, no text":    {"", "\xff", false, refusal.InvalidResult},
		"image":               {"Content-Type: image/png\r\n", "hi", false, refusal.InvalidResult},
		"bytes":               {"Content-Type: application/octet-stream\r\n", "{}", false, refusal.InvalidResult},
		"two types":           {"Content-Type: text/plain\r\nContent-Type: application/json\r\n", "{}", false, refusal.InvalidResult},
		"a type that is none": {"Content-Type: ;;;\r\n", "{}", false, refusal.InvalidResult},
		"an empty type":       {"Content-Type:\r\n", "{}", false, refusal.InvalidResult},
		"gzip":                {"Content-Encoding: GZIP\r\n", packed(gzipped, 3), false, ""},
		"deflate":             {"Content-Encoding: deflate\r\n", packed(deflated, 3), false, ""},
		"identity":            {"Content-Encoding: identity\r\n", "\x00\x00\x00", false, ""},
	} {
		w := newWire(t, func(conn net.Conn, _ int) {
			say(ok, c.head, fmt.Sprintf("Content-Length: %d\r\n\r\n", len(c.body)), c.body)(conn)
		})
		e := newEngine(t, engine.Options{})
		result, got := run(t, e, loopback(w.url, "once"))
		want := c.body
		if strings.Contains(c.head, "Content-Encoding") {
			want = "\x00\x00\x00"
		}
		if got != c.want || got == "" && (string(result.Body) != want || result.JSON != c.json) {
			t.Errorf("%s: got %q %q json=%v, want %q", name, got, result.Body, result.JSON, c.want)
		}
	}
}

// A tool that drops a connection which was kept open, after it has read the request:
// net/http would repeat a request with an Idempotency-Key by itself.
func TestDroppedKeepAlive(t *testing.T) {
	for effect, c := range map[string]struct {
		hits, attempts int64 // after the second call, and of it
		want           refusal.Code
	}{
		"read":       {3, 2, ""}, // dropped, tried again on another connection
		"idempotent": {3, 2, ""},
		"once":       {2, 1, refusal.OutcomeUnknown},
		"whatever":   {2, 1, refusal.OutcomeUnknown},
	} {
		w := newWire(t, func(conn net.Conn, nth int) {
			if nth > 1 {
				conn.Close()
				return
			}
			say(page, "Content-Length: 2\r\n\r\nhi")(conn)
		})
		e := newEngine(t, engine.Options{})
		if result, got := run(t, e, loopback(w.url, effect)); got != "" || w.hits.Load() != 1 || result.Attempts != 1 {
			t.Errorf("%s, first: %q, %d requests, %d attempts", effect, got, w.hits.Load(), result.Attempts)
		}
		result, got := run(t, e, loopback(w.url, effect))
		if got != c.want || w.hits.Load() != c.hits || int64(result.Attempts) != c.attempts {
			t.Errorf("%s, second: %q, %d requests, %d attempts", effect, got, w.hits.Load(), result.Attempts)
		}
	}
}

// The control: net/http by itself does send such a request again.
func TestNetHTTPReplays(t *testing.T) {
	w := newWire(t, func(conn net.Conn, nth int) {
		if nth > 1 {
			conn.Close()
			return
		}
		say(page, "Content-Length: 2\r\n\r\nhi")(conn)
	})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for range 2 {
		request, err := http.NewRequest(http.MethodPost, w.url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Idempotency-Key", "k")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	if n := w.hits.Load(); n != 3 {
		t.Skipf("skipped: this Go sends %d requests for two calls, so the other test shows less", n)
	}
}

func TestStoppedByTheCaller(t *testing.T) {
	for effect, want := range map[string]refusal.Code{"read": refusal.ToolUnavailable, "once": refusal.OutcomeUnknown} {
		arrived := make(chan struct{}, 1)
		w := newWire(t, func(net.Conn, int) { arrived <- struct{}{} })
		e := newEngine(t, engine.Options{})
		ctx, cancel := context.WithCancel(context.Background())
		go func() { <-arrived; cancel() }()
		_, err := e.Run(ctx, loopback(w.url, effect))
		if got := code(t, err); got != want || w.hits.Load() != 1 {
			t.Errorf("%s: got %q after %d requests", effect, got, w.hits.Load())
		}
		// Stopped already: nothing is sent.
		result, err := e.Run(ctx, loopback(w.url, effect))
		if got := code(t, err); got != refusal.ToolUnavailable || w.hits.Load() != 1 || result.Attempts != 0 {
			t.Errorf("%s, stopped before: got %q after %d requests", effect, got, w.hits.Load())
		}
	}
}
