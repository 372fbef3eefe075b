package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/tool"
)

// reports is a tool that says how far it is, and then answers.
func reports(steps ...tool.Progress) toolFunc {
	return func(t tool.Call) (tool.Result, error) {
		for _, p := range steps {
			if t.Progress != nil {
				t.Progress(p)
			}
		}
		return says(`{"done":true}`)(t)
	}
}

// withToken is a call of time_now with a progress token, of either era.
func withToken(token string, modern bool) string {
	meta := `"_meta":{"progressToken":` + token + `}`
	if modern {
		meta = strings.Replace(meta26, "{", `{"progressToken":`+token+`,`, 1)
	}
	return `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"time_now",` + meta + `}}`
}

// request is one over a connection of this machine.
func request(body string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
	r.Host = "127.0.0.1"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// event is one message of a stream.
type event struct {
	raw    string
	ID     any
	Method string
	Params struct {
		Token    any `json:"progressToken"`
		Progress *float64
		Total    *float64
		Message  *string
	}
	Result json.RawMessage
}

// eventsOf takes a stream apart, which must be nothing but events of one line each.
func eventsOf(t *testing.T, stream string) []event {
	t.Helper()
	var list []event
	for part := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(part, "data: ")
		e := event{raw: data}
		if err := json.Unmarshal([]byte(data), &e); !ok || err != nil || strings.Contains(data, "\n") {
			t.Fatalf("%q is no event: %v", part, err)
		}
		list = append(list, e)
	}
	return list
}

// headersOf are those of a call of time_now, of either era.
func headersOf(isModern bool) []string {
	if isModern {
		return modern("tools/call", "time_now")
	}
	return nil
}

// TestMCP21Progress, with MCH10: the stream begins with the first progress and ends
// with the answer; both revisions have it.
func TestMCP21ProgressMCH10(t *testing.T) {
	steps := []tool.Progress{
		{Done: 0, Total: 100}, {Done: 50, Total: 100, Message: "half\u200b way\u001b[2J\u2028"}, {Done: 50}, {Done: 20}, {Done: 50.5}, {Done: 1e21},
	}
	h := open(t, plan{engine: reports(steps...)})
	for _, isModern := range []bool{true, false} {
		for _, token := range []string{`"progress-1"`, `"\u200b"`, `""`, `7`, `12345678901234567890`, `-1`} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request(withToken(token, isModern), headersOf(isModern)...))
			header := w.Header()
			if w.Code != 200 || header.Get("Content-Type") != "text/event-stream" || header.Get("Cache-Control") != "no-store" || header.Get("X-Accel-Buffering") != "no" {
				t.Fatalf("%d %v %s", w.Code, header, w.Body)
			}
			list := eventsOf(t, w.Body.String())
			if len(list) != 5 {
				t.Fatalf("%s", w.Body)
			}
			for i, want := range []string{
				`"progress":0,"progressToken":` + token + `,"total":100}`,
				`"message":"half\\u200b way\\u001b[2J\\u2028","progress":50,"progressToken":` + token + `,"total":100}`,
				`"progress":50.5,"progressToken":` + token + `}`,
				`"progress":1e+21,"progressToken":` + token + `}`,
			} {
				if want = `{"jsonrpc":"2.0","method":"notifications/progress","params":{` + want + `}`; list[i].raw != want {
					t.Errorf("%s\nwant %s", list[i].raw, want)
				}
			}
			var result struct {
				Meta map[string]any `json:"_meta"`
				Type string         `json:"resultType"`
			}
			last := list[4]
			if err := json.Unmarshal(last.Result, &result); err != nil || last.ID != "a" || last.Method != "" || result.Meta["callgate/callId"] == "" || (result.Type == "complete") != isModern {
				t.Errorf("%s", last.raw)
			}
		}
	}
	if !strings.Contains(h.log.String(), `"status":200`) || strings.Contains(h.log.String(), `"call_id":""`) {
		t.Errorf("the log: %s", h.log)
	}
}

// TestProgressAsItIsMade: what is told is there while the tool still runs.
func TestProgressAsItIsMade(t *testing.T) {
	proceed := make(chan struct{})
	server := httptest.NewServer(open(t, plan{engine: func(task tool.Call) (tool.Result, error) {
		task.Progress(tool.Progress{Done: 1})
		<-proceed
		return says(`{"done":true}`)(task)
	}}))
	defer server.Close()
	r := request(withToken(`"p"`, true), headersOf(true)...)
	to, err := http.NewRequest(http.MethodPost, server.URL+"/mcp", r.Body)
	if err != nil {
		t.Fatal(err)
	}
	to.Header = r.Header
	answer, err := server.Client().Do(to)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body := bufio.NewReader(answer.Body)
	first, err := body.ReadString('\n')
	if err != nil || !strings.Contains(first, `"progress":1`) {
		t.Fatalf("%q %v", first, err)
	}
	close(proceed)
	rest, err := io.ReadAll(body)
	if err != nil || !strings.Contains(string(rest), `"result":`) || !strings.HasSuffix(string(rest), "}\n\n") {
		t.Errorf("%q %v", rest, err)
	}
}

// TestNoStream: where there is nothing to tell, or nobody to be told, the answer is as
// ever.
func TestNoStream(t *testing.T) {
	plain := `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"time_now",` + meta26 + `}}`
	for name, c := range map[string]struct {
		body     string
		accept   string
		engine   toolFunc
		notified bool // the tool is asked
	}{
		"no token":         {plain, "application/json, text/event-stream", reports(tool.Progress{Done: 1}), false},
		"no events":        {withToken(`"p"`, true), "application/json", reports(tool.Progress{Done: 1}), false},
		"no events at all": {withToken(`"p"`, true), "*/*, text/event-stream;q=0", reports(tool.Progress{Done: 1}), false},
		"nothing told":     {withToken(`"p"`, true), "application/json, text/event-stream", reports(), true},
		"no number told":   {withToken(`"p"`, true), "application/json, text/event-stream", reports(tool.Progress{Done: math.NaN()}, tool.Progress{Done: math.Inf(1)}), true},
		"refused":          {strings.Replace(withToken(`"p"`, true), `"name":"time_now"`, `"name":"time_now","arguments":{"x":1}`, 1), "*/*", reports(), false},
	} {
		requested := false
		h := open(t, plan{engine: func(task tool.Call) (tool.Result, error) {
			requested = task.Progress != nil
			return c.engine(task)
		}})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request(c.body, append(modern("tools/call", "time_now"), "Accept", c.accept)...))
		if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Callgate-Call-Id") == "" || strings.Contains(w.Body.String(), "notifications") || requested != c.notified {
			t.Errorf("%s: %d %v %s", name, w.Code, w.Header(), w.Body)
		}
	}
}

// TestProgressToken: what is no token is a fault of a request of 2026-07-28, and is
// passed over in an older one.
func TestProgressToken(t *testing.T) {
	h := open(t, plan{engine: reports(tool.Progress{Done: 1})})
	for _, token := range []string{`1.5`, `1e3`, `true`, `{}`, `[]`, `["p"]`, `"` + strings.Repeat("p", 1025) + `"`} {
		if r := h.post(t, withToken(token, true), headersOf(true)...); r.status != 400 || r.Error.Code != -32602 || r.code() != "bad_request" {
			t.Errorf("%.40s: %d %s", token, r.status, r.raw)
		}
		if r := h.post(t, withToken(token, false)); r.status != 200 || r.text(t) != `{"done":true}` {
			t.Errorf("%.40s: %d %s", token, r.status, r.raw)
		}
	}
}

// conn is a connection whose writes a test decides on.
type conn struct {
	*httptest.ResponseRecorder
	write func(p []byte) error
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.write(p); err != nil {
		return 0, err
	}
	return c.ResponseRecorder.Write(p)
}

func (c *conn) WriteString(s string) (int, error) { return c.Write([]byte(s)) }

// many are more than a client is told that takes none of it.
const manySteps = 10_000

// TestProgressSlowReader: a client that takes nothing holds nothing up but its own answer.
// It then gets a part of the progress, in order, and the answer.
func TestProgressSlowReader(t *testing.T) {
	ran, proceed := make(chan struct{}), make(chan struct{})
	h := open(t, plan{engine: func(task tool.Call) (tool.Result, error) {
		for i := range manySteps {
			task.Progress(tool.Progress{Done: float64(i), Message: strings.Repeat("m", 100)})
		}
		close(ran)
		return says(`{"done":true}`)(task)
	}})
	w := &conn{ResponseRecorder: httptest.NewRecorder(), write: func([]byte) error {
		<-proceed
		return nil
	}}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		h.ServeHTTP(w, request(withToken(`"p"`, true), headersOf(true)...))
	}()
	<-ran
	settle(t, h) // the outcome is written, too
	select {
	case <-answered:
		t.Error("an answer that nobody took was taken")
	default:
	}
	close(proceed)
	<-answered
	list := eventsOf(t, w.Body.String())
	last := -1.0
	for _, e := range list[:len(list)-1] {
		if e.Params.Progress == nil || *e.Params.Progress <= last {
			t.Fatalf("%s after %v", e.raw, last)
		}
		last = *e.Params.Progress
	}
	if n := len(list); n < 2 || n > 64+2+1 || list[n-1].Result == nil {
		t.Errorf("%d events, the last is %s", n, list[n-1].raw)
	}
}

// TestProgressBrokenConnection: where it cannot be told, nothing more is written, and
// the call ends as it would.
func TestProgressBrokenConnection(t *testing.T) {
	for name, breaks := range map[string]func() error{
		"an error": func() error { return errors.New("gone") },
		"a panic":  func() error { panic("secret") },
	} {
		writes := 0
		h := open(t, plan{engine: func(task tool.Call) (tool.Result, error) {
			for i := range manySteps {
				task.Progress(tool.Progress{Done: float64(i)})
			}
			return says(`{"done":true}`)(task)
		}})
		w := &conn{ResponseRecorder: httptest.NewRecorder(), write: func([]byte) error {
			if writes++; writes > 1 {
				t.Errorf("%s: something was written behind it", name)
			}
			return breaks()
		}}
		h.ServeHTTP(w, request(withToken(`"p"`, true), headersOf(true)...))
		settle(t, h)
		if got := fmt.Sprint(h.ledger.lines()); writes != 1 || got != "[decision call tool_call outcome call tool_call result]" || strings.Contains(h.log.String(), "secret") {
			t.Errorf("%s: %d writes, %s\n%s", name, writes, got, h.log)
		}
	}
}

// TestMCH11LeavesStream: a client that leaves its stream is told no more, and the call
// continues to its end.
func TestMCH11LeavesStream(t *testing.T) {
	proceed := make(chan struct{})
	h := open(t, plan{engine: func(task tool.Call) (tool.Result, error) {
		task.Progress(tool.Progress{Done: 1})
		<-proceed
		task.Progress(tool.Progress{Done: 2})
		return says(`{"done":true}`)(task)
	}})
	server := httptest.NewServer(h)
	defer server.Close()
	ctx, disconnect := context.WithCancel(context.Background())
	defer disconnect()
	from := request(withToken(`"p"`, true), headersOf(true)...)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/mcp", from.Body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = from.Header
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(answer.Body).ReadString('\n'); err != nil || !strings.Contains(line, `"progress":1`) {
		t.Fatalf("%q %v", line, err)
	}
	disconnect()
	answer.Body.Close()
	close(proceed)
	settle(t, h)
	if got := fmt.Sprint(h.ledger.lines()); got != "[decision call tool_call outcome call tool_call result]" {
		t.Errorf("%s", got)
	}
}

// TestStdioProgress: what is told are lines before the answer, each whole, of however
// many calls at once.
func TestStdioProgress(t *testing.T) {
	h := open(t, plan{engine: reports(tool.Progress{Done: 0, Total: 2}, tool.Progress{Done: 1, Total: 2}, tool.Progress{Done: 2, Total: 2})})
	var in strings.Builder
	in.WriteString(begin + "\n" + begun + "\n")
	const calls = 20
	for i := range calls {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"time_now","_meta":{"progressToken":%d}}}`+"\n", i, 100+i)
	}
	var out strings.Builder
	if err := h.face.Stdio(context.Background(), gateway.Request{}, strings.NewReader(in.String()), &out); err != nil {
		t.Fatal(err)
	}
	next, answered := map[string]float64{}, map[string]bool{}
	for line := range strings.Lines(out.String()) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		switch {
		case e.ID == "begin":
		case e.Method == "notifications/progress":
			token := fmt.Sprint(e.Params.Token)
			if *e.Params.Progress != next[token] || answered[token] {
				t.Errorf("out of turn: %s", line)
			}
			next[token]++
		default:
			answered[fmt.Sprint(e.ID.(float64)+100)] = true
		}
	}
	for i := range calls {
		if token := fmt.Sprint(100 + i); next[token] != 3 || !answered[token] {
			t.Errorf("%s: %v were told, answered: %v", token, next[token], answered[token])
		}
	}
}

// TestStdioProgressCancelled: what a client has cancelled, it is told no more of.
func TestStdioProgressCancelled(t *testing.T) {
	proceed := make(chan struct{})
	h := open(t, plan{engine: func(task tool.Call) (tool.Result, error) {
		task.Progress(tool.Progress{Done: 1})
		<-proceed
		task.Progress(tool.Progress{Done: 2})
		return says(`{"done":true}`)(task)
	}})
	in, toFace := io.Pipe()
	fromFace, out := io.Pipe()
	var done sync.WaitGroup
	done.Go(func() {
		if err := h.face.Stdio(context.Background(), gateway.Request{}, in, out); err != nil {
			t.Error(err)
		}
		out.Close()
	})
	lines := bufio.NewScanner(fromFace)
	tell := func(line string) {
		if _, err := io.WriteString(toFace, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	tell(withToken(`"p"`, true))
	if !lines.Scan() || !strings.Contains(lines.Text(), `"progress":1`) {
		t.Fatalf("%s", lines.Text())
	}
	tell(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`)
	tell(`{"jsonrpc":"2.0","id":"after","method":"tools/list","params":` + meta + `}`)
	if !lines.Scan() || !strings.Contains(lines.Text(), `"after"`) {
		t.Fatalf("%s", lines.Text())
	}
	close(proceed)
	toFace.Close()
	if lines.Scan() {
		t.Errorf("what was cancelled was told of: %s", lines.Text())
	}
	done.Wait()
	settle(t, h)
}

// TestStdioProgressBlocked: a client that reads nothing does not hold its call up.
func TestStdioProgressBlocked(t *testing.T) {
	ran := make(chan struct{})
	h := open(t, plan{engine: func(task tool.Call) (tool.Result, error) {
		for i := range manySteps {
			task.Progress(tool.Progress{Done: float64(i)})
		}
		close(ran)
		return says(`{"done":true}`)(task)
	}})
	fromFace, out := io.Pipe()
	var done sync.WaitGroup
	done.Go(func() {
		if err := h.face.Stdio(context.Background(), gateway.Request{}, strings.NewReader(withToken(`"p"`, true)), out); err != nil {
			t.Error(err)
		}
		out.Close()
	})
	<-ran
	settle(t, h)
	all, err := io.ReadAll(fromFace)
	done.Wait()
	if lines := strings.Split(strings.TrimSpace(string(all)), "\n"); err != nil || len(lines) < 2 || len(lines) > 64+2+1 || !strings.Contains(lines[len(lines)-1], `"result"`) {
		t.Errorf("%d lines: %v", len(lines), err)
	}
}
