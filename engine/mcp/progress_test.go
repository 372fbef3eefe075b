package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/engine/mcp"
	"github.com/callgate/callgate/tool"
)

// talker is a server of the official SDK whose tools say more than their result.
func talker() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "talker", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "count"},
		func(ctx context.Context, r *sdk.CallToolRequest, in echoInput) (*sdk.CallToolResult, any, error) {
			for i := range 3 {
				if token := r.Params.GetProgressToken(); token != nil {
					// It fails where the answer has no place for it.
					_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(i + 1), Total: 3, Message: in.Text})
				}
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text}}}, nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "ask"}, ask)
	sdk.AddTool(s, &sdk.Tool{Name: "log"}, logs)
	return s
}

// reports keeps what a call was told. It fails where it is told two things at once, or
// anything after its end.
type reports struct {
	t    testing.TB
	busy atomic.Bool
	over atomic.Bool
	mu   sync.Mutex
	all  []tool.Progress
}

func (r *reports) tell(p tool.Progress) {
	if !r.busy.CompareAndSwap(false, true) {
		r.t.Error("told two things at once")
	}
	defer r.busy.Store(false)
	if r.over.Load() {
		r.t.Error("told more after the end")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, p)
}

func (r *reports) string() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprint(r.all)
}

// runWithProgress runs a call, and returns what it was told of its progress.
func runWithProgress(t testing.TB, h *fixture, c tool.Call) (tool.Result, *reports, error) {
	t.Helper()
	r := &reports{t: t}
	c.Progress = r.tell
	result, err := h.Run(context.Background(), c)
	r.over.Store(true)
	return result, r, err
}

// MCP-21, from the client's side: the official SDK's own server reports its progress,
// in every way in which it can.
func TestMCP21ServersOfTheSDKReport(t *testing.T) {
	t.Parallel()
	places := map[string]func(t *testing.T) tool.Call{
		"stdio": func(t *testing.T) tool.Call { return local(program(t, "talker"), "count", "once") },
	}
	for name, options := range eras {
		places[name] = func(t *testing.T) tool.Call {
			return call(serveSample(t, talker(), options), "count", "once")
		}
	}
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			c := place(t)
			h := newFixture(t, engine.Options{}, nil)
			must(t, h, c) // which asks for none
			// Many at once over one session: each is told its own.
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					c := c
					c.Arguments = fmt.Appendf(nil, `{"text":"%d"}`, i)
					want := fmt.Sprintf("[{1 3 %d} {2 3 %d} {3 3 %d}]", i, i, i)
					if strings.HasSuffix(name, "JSON") {
						want = "[]" // there is no place for it
					}
					result, r, err := runWithProgress(t, h, c)
					if err != nil || string(result.Body) != fmt.Sprint(i) || r.string() != want {
						t.Errorf("%q, %v, told %s, want %s", result.Body, err, r.string(), want)
					}
				})
			}
			all.Wait()
		})
	}
}

// tokenOf is the token of a request; empty where there is none.
func tokenOf(t testing.TB, body string) string {
	t.Helper()
	var m struct {
		Params struct {
			Meta struct {
				Token string `json:"progressToken"`
			} `json:"_meta"`
		}
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Errorf("%v: %s", err, body)
	}
	return m.Params.Meta.Token
}

// newReporter is a server that sends events in which ID is the id of a call, and TOKEN
// what it was given for its reports.
func newReporter(t testing.TB, legacy bool, events func(attempt int) []string) *fake {
	t.Helper()
	var f *fake
	var attempts atomic.Int64
	f = newFake(t, legacy, func(w http.ResponseWriter, _ *http.Request, id string) {
		_, body := f.last(t, "tools/call")
		token := tokenOf(t, body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events(int(attempts.Add(1))) {
			if e == "CUT" {
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
			io.WriteString(w, "data: "+strings.NewReplacer("ID", id, "TOKEN", token).Replace(e)+"\n\n")
		}
	})
	return f
}

// reporting is a notification with parameters.
func reporting(params string) string {
	return `{"jsonrpc":"2.0","method":"notifications/progress","params":` + params + `}`
}

var done = `{"jsonrpc":"2.0","id":ID,"result":` + text("hi") + `}`

// reportings are ways to report, and what comes of them.
var reportings = map[string]struct {
	params string
	want   string
}{
	"a number":                {`{"progressToken":"TOKEN","progress":1}`, "{1 0 }"},
	"all of it":               {`{"progressToken":"TOKEN","progress":1.5,"total":2e1,"message":"half\u0000 <b>","_meta":{"a":1}}`, "{1.5 20 half\x00 <b>}"},
	"none of it":              {`{"progressToken":"TOKEN","progress":0,"total":null,"message":null}`, "{0 0 }"},
	"less than nothing":       {`{"progressToken":"TOKEN","progress":-3,"total":-1}`, "{-3 -1 }"},
	"more than all":           {`{"progressToken":"TOKEN","progress":3,"total":2}`, "{3 2 }"},
	"almost nothing":          {`{"progressToken":"TOKEN","progress":1e-400}`, "{0 0 }"},
	"no parameters":           {`null`, ""},
	"a list":                  {`["TOKEN",1]`, ""},
	"text":                    {`"TOKEN"`, ""},
	"an empty object":         {`{}`, ""},
	"no token":                {`{"progress":1}`, ""},
	"a token null":            {`{"progressToken":null,"progress":1}`, ""},
	"a number for a token":    {`{"progressToken":1,"progress":1}`, ""},
	"the id for a token":      {`{"progressToken":ID,"progress":1}`, ""},
	"an empty token":          {`{"progressToken":"","progress":1}`, ""},
	"a token in a list":       {`{"progressToken":["TOKEN"],"progress":1}`, ""},
	"another token":           {`{"progressToken":"TOKENx","progress":1}`, ""},
	"part of the token":       {`{"progressToken":" TOKEN","progress":1}`, ""},
	"another name":            {`{"progresstoken":"TOKEN","progress":1}`, ""},
	"nothing of progress":     {`{"progressToken":"TOKEN"}`, ""},
	"progress null":           {`{"progressToken":"TOKEN","progress":null}`, ""},
	"progress as text":        {`{"progressToken":"TOKEN","progress":"1"}`, ""},
	"progress that is none":   {`{"progressToken":"TOKEN","progress":"NaN"}`, ""},
	"progress true":           {`{"progressToken":"TOKEN","progress":true}`, ""},
	"progress in a list":      {`{"progressToken":"TOKEN","progress":[1]}`, ""},
	"progress without bounds": {`{"progressToken":"TOKEN","progress":1e999}`, ""},
	"downwards without them":  {`{"progressToken":"TOKEN","progress":-1e999}`, ""},
	"a total without bounds":  {`{"progressToken":"TOKEN","progress":1,"total":1e999}`, ""},
	"a total as text":         {`{"progressToken":"TOKEN","progress":1,"total":"2"}`, ""},
	"a total that is none":    {`{"progressToken":"TOKEN","progress":1,"total":{}}`, ""},
	"a message of numbers":    {`{"progressToken":"TOKEN","progress":1,"message":1}`, ""},
	"a message in a list":     {`{"progressToken":"TOKEN","progress":1,"message":["a"]}`, ""},
	"a message true":          {`{"progressToken":"TOKEN","progress":1,"message":true}`, ""},
	"a long message":          {`{"progressToken":"TOKEN","progress":1,"message":"` + strings.Repeat("x", 1020) + `éüö"}`, "{1 0 " + strings.Repeat("x", 1020) + "…}"},
}

// An invalid report is ignored, and a valid one is passed on; the result is the same with
// either.
func TestMCP21Reports(t *testing.T) {
	t.Parallel()
	for name, c := range reportings {
		for _, legacy := range []bool{false, true} {
			f := newReporter(t, legacy, func(int) []string { return []string{reporting(c.params), done} })
			result, r, err := runWithProgress(t, newFixture(t, engine.Options{}, nil), call(f.url, "echo", "once"))
			if got := r.string(); err != nil || string(result.Body) != "hi" || got != "["+c.want+"]" {
				t.Errorf("%s, legacy %v: %q %v, told %.200s", name, legacy, result.Body, err, got)
			}
			for _, p := range r.all {
				if !utf8.ValidString(p.Message) || len(p.Message) > 1024 {
					t.Errorf("%s: %q", name, p.Message)
				}
			}
		}
	}
	if len(reportings) < 30 {
		t.Errorf("%d ways to report", len(reportings))
	}
}

// Delivered progress increases, whatever a server sends.
func TestMCP21ReportsIncrease(t *testing.T) {
	at := func(n string) string { return reporting(`{"progressToken":"TOKEN","progress":` + n + `}`) }
	f := newReporter(t, false, func(int) []string {
		return []string{at("1"), at("1"), at("0.5"), at("-7"), at("1e999"), at("1.5"), reporting(`{"progressToken":"x","progress":9}`), at("2"), at("2.0"), at("20e-1"), done, at("3")}
	})
	result, r, err := runWithProgress(t, newFixture(t, engine.Options{}, nil), call(f.url, "echo", "once"))
	if want := "[{1 0 } {1.5 0 } {2 0 }]"; err != nil || string(result.Body) != "hi" || r.string() != want {
		t.Errorf("%q %v, told %s, want %s", result.Body, err, r.string(), want)
	}
}

// So it does over the attempts of one call. The token of one of them is none of the
// next one's.
func TestMCP21ReportsIncreaseOverAttempts(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		first := make(chan string, 1)
		var f *fake
		f = newReporter(t, legacy, func(attempt int) []string {
			_, body := f.last(t, "tools/call")
			if attempt == 1 {
				first <- tokenOf(t, body)
				return []string{reporting(`{"progressToken":"TOKEN","progress":5}`), "CUT"}
			}
			before := <-first
			if token := tokenOf(t, body); token == before || len(token) < 26 {
				t.Errorf("the token %q follows %q", token, before)
			}
			return []string{
				reporting(`{"progressToken":"TOKEN","progress":4}`), reporting(`{"progressToken":"` + before + `","progress":7}`),
				reporting(`{"progressToken":"TOKEN","progress":6}`), done,
			}
		})
		result, r, err := runWithProgress(t, newFixture(t, engine.Options{}, nil), call(f.url, "echo", "read"))
		if want := "[{5 0 } {6 0 }]"; err != nil || result.Attempts != 2 || r.string() != want {
			t.Errorf("legacy %v: %v after %d attempts, told %s, want %s", legacy, err, result.Attempts, r.string(), want)
		}
	}
}

// A server that reports without end is not listened to without end.
func TestMCP21ReportsAreBounded(t *testing.T) {
	t.Parallel()
	f := newReporter(t, false, func(int) []string {
		var all []string
		for i := range 10_500 {
			all = append(all, reporting(fmt.Sprintf(`{"progressToken":"TOKEN","progress":%d}`, i)))
		}
		return append(all, done)
	})
	result, r, err := runWithProgress(t, newFixture(t, engine.Options{}, nil), call(f.url, "echo", "once"))
	if err != nil || string(result.Body) != "hi" || len(r.all) != 10_000 {
		t.Errorf("%q %v, told %d times", result.Body, err, len(r.all))
	}
}

// Where nobody wants to be told, nothing is asked for, and what comes is ignored.
func TestMCP21NothingIsAskedFor(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		f := newFake(t, legacy, streaming("data: "+reporting(`{"progressToken":"","progress":1}`)+"\n\n", "data: "+done+"\n\n"))
		must(t, newFixture(t, engine.Options{}, nil), call(f.url, "echo", "once"))
		_, body := f.last(t, "tools/call")
		if strings.Contains(body, "progress") || legacy && strings.Contains(body, "_meta") {
			t.Errorf("legacy %v: %s", legacy, body)
		}
	}
}

// A report that is read as an attempt ends is not delivered.
func TestMCP21NothingIsToldBehindTheEnd(t *testing.T) {
	var r reports
	if mcp.Report(r.tell); r.string() != "[{1 0 }]" {
		t.Errorf("told %s", r.string())
	}
}

// A panic of the receiver ends neither the call nor the process, and it gets no more.
func TestProgressMayPanic(t *testing.T) {
	f := newReporter(t, false, func(int) []string {
		return []string{reporting(`{"progressToken":"TOKEN","progress":1}`), reporting(`{"progressToken":"TOKEN","progress":2}`), done}
	})
	for name, c := range map[string]tool.Call{"remote": call(f.url, "echo", "once"), "stdio": local(program(t, "talker"), "count", "once")} {
		times := 0
		c.Progress = func(tool.Progress) { times++; panic("SECRET") }
		h := newFixture(t, engine.Options{}, nil)
		if _, refused := h.run(t, c); refused != nil || times != 1 {
			t.Errorf("%s: %v, told %d times", name, refused, times)
		}
		c.Progress = nil
		must(t, h, c)
	}
}

// The same of programs, whose reports come by one way for all calls.
func TestMCP21ReportsOfPrograms(t *testing.T) {
	t.Parallel()
	h := newFixture(t, engine.Options{}, nil)
	command := program(t, "script")
	for name, c := range reportings {
		k := local(command, "reports", "once")
		k.Arguments = []byte(`{"params":` + string(quoted(c.params)) + `}`)
		result, r, err := runWithProgress(t, h, k)
		if got := r.string(); err != nil || string(result.Body) != "hi" || got != "["+c.want+"]" {
			t.Errorf("%s: %q %v, told %.200s", name, result.Body, err, got)
		}
	}
	// Behind the answer, and once nobody waits, nothing is told. Messages from before the
	// answer to another call have been read by then.
	if _, r, err := runWithProgress(t, h, local(command, "reports late", "once")); err != nil || r.string() != "[{1 0 }]" {
		t.Errorf("%v, told %s", err, r.string())
	}
	must(t, h, local(command, "echo", "once"))
	k := local(command, "reports for ever", "once")
	k.Run.Timeout = 300 * time.Millisecond
	if _, _, err := runWithProgress(t, h, k); err == nil {
		t.Error("a call that is not answered gave a result")
	}
	for range 10 {
		must(t, h, local(command, "echo", "once"))
	}
}

func quoted(s string) []byte {
	b, _ := json.Marshal(s)
	return b
}
