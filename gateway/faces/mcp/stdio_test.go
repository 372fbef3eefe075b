package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/tool"
)

// repliesTo runs a client's lines through standard input to its end, and returns the
// answers by their ids; those without one are under "".
func repliesTo(t *testing.T, h *fixture, subject gateway.Subject, lines ...string) map[string]reply {
	t.Helper()
	var out strings.Builder
	if err := h.face.Stdio(context.Background(), gateway.Request{Subject: subject}, strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	answers := map[string]reply{}
	for line := range strings.Lines(out.String()) {
		if _, err := parser.ReadValue([]byte(line), 100); err != nil || !strings.HasSuffix(line, "\n") {
			t.Fatalf("%q is no line of JSON: %v", line, err)
		}
		r := reply{raw: line}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		id := ""
		if r.ID != nil {
			id = fmt.Sprint(r.ID)
		}
		if _, twice := answers[id]; twice {
			t.Fatalf("%s was answered twice", id)
		}
		answers[id] = r
	}
	return answers
}

const (
	begin = `{"jsonrpc":"2.0","id":"begin","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	begun = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// TestToolsChanged: a client on standard input and output that has begun with initialize is told of
// changed lists, and one over HTTP is not promised it, since it has no stream for that.
func TestToolsChanged(t *testing.T) {
	h := open(t, plan{})
	in, client := io.Pipe()
	served, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- h.face.Stdio(t.Context(), gateway.Request{}, in, out) }()
	lines := bufio.NewReader(served)
	exchange := func(line string) string {
		t.Helper()
		if line != "" {
			if _, err := io.WriteString(client, line+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		answer, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	if got := exchange(begin); !strings.Contains(got, `"tools":{"listChanged":true}`) {
		t.Errorf("%s", got)
	}
	exchange(begun + "\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	h.face.ToolsChanged()
	if got := exchange(""); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n" {
		t.Errorf("%s", got)
	}
	client.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if r := h.post(t, begin); strings.Contains(r.raw, "listChanged") {
		t.Errorf("%s", r.raw)
	}
}

func TestStdio(t *testing.T) {
	h := open(t, plan{})
	got := repliesTo(t, h, gateway.Subject{},
		`{"jsonrpc":"2.0","id":"early","method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":"ping","method":"ping"}`,
		begin, begun, ``, "\r",
		`{"jsonrpc":"2.0","id":"list","method":"tools/list"}`+"\r",
		`{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"web_search","arguments":{"query":"x"}}}`,
		`{"jsonrpc":"2.0","id":"twice","method":"tools/call","params":{"name":"web_search","arguments":{"query":"x","query":"y"}}}`,
		`{"jsonrpc":"2.0","id":"none","method":"tools/call","params":{"name":"nothing"}}`,
		`{"jsonrpc":"2.0","id":"new","method":"tools/list","params":`+meta+`}`,
		`{"jsonrpc":"2.0","id":"newer","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"jsonrpc":"2.0","id":"half","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{"a":1}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, // is to nothing, and not answered
		`not a message`,
	)
	for id, want := range map[string]int{"early": -32600, "ping": 0, "begin": 0, "list": 0, "call": 0, "twice": 0, "none": -32602, "new": 0, "newer": -32022, "half": -32602, "": -32700} {
		r, there := got[id]
		if !there || r.Error.Code != want {
			t.Errorf("%s: %s", id, r.raw)
		}
	}
	if len(got) != 11 || got["twice"].code() != "duplicate_key" || got["new"].Result.Type != "complete" || got["list"].Result.Type != "" || len(got["list"].Result.Tools) == 0 {
		t.Errorf("%d answers: %s %s", len(got), got["twice"].raw, got["new"].raw)
	}
	if r := got["call"]; r.text(t) != `{"did":{"query":"x"}}` {
		t.Errorf("%s", r.raw)
	}
	// The process that started it states the subject.
	got = repliesTo(t, h, gateway.Subject{Agent: "Nobody"}, begin)
	if r := got["begin"]; r.Error.Code != 403 || r.code() != "agent_unknown" {
		t.Errorf("%s", r.raw)
	}
}

// TestStdioLongLines: a line that is longer than a message may be is passed over, and refused by the
// id that its beginning has; the next one is read.
func TestStdioLongLines(t *testing.T) {
	h := open(t, plan{})
	long := `{"jsonrpc":"2.0","id":"long","method":"` + strings.Repeat("x", 400_000) + `"}`
	got := repliesTo(t, h, gateway.Subject{}, long, `{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
	if got["long"].Error.Code != -32600 || got["ping"].raw == "" || len(got) != 2 {
		t.Errorf("%d answers: %.300s", len(got), got["long"].raw)
	}
}

// TestStdioCancel: what the client cancels is not answered, and continues where it was
// dispatched; while a request is answered, its id stands for no other.
func TestStdioCancel(t *testing.T) {
	running, proceed := make(chan struct{}), make(chan struct{})
	h := open(t, plan{engine: func(tool.Call) (tool.Result, error) {
		close(running)
		<-proceed
		return tool.Result{Body: []byte(`{}`), JSON: true}, nil
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
	answers := bufio.NewScanner(fromFace)
	next := func() string {
		if !answers.Scan() {
			t.Fatal("no answer")
		}
		return answers.Text()
	}
	tell := func(line string) {
		if _, err := io.WriteString(toFace, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	tell(begin)
	next()
	tell(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"time_now"}}`)
	<-running
	tell(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
	if got := next(); !strings.Contains(got, `"code":-32600`) || !strings.Contains(got, `"id":7`) {
		t.Errorf("%s", got)
	}
	tell(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	tell(`{"jsonrpc":"2.0","id":"after","method":"ping"}`)
	if got := next(); !strings.Contains(got, `"after"`) {
		t.Errorf("%s", got)
	}
	close(proceed)
	toFace.Close()
	if answers.Scan() {
		t.Errorf("what was cancelled was answered: %s", answers.Text())
	}
	done.Wait()
	settle(t, h)
	if got := fmt.Sprint(h.ledger.lines()); got != "[decision call tool_call outcome call tool_call result]" {
		t.Errorf("%s", got)
	}
}

// TestStdioTooMany: what is more than can be answered at a time is refused, and the
// client is told when to come back.
func TestStdioTooMany(t *testing.T) {
	proceed := make(chan struct{})
	h := open(t, plan{engine: func(tool.Call) (tool.Result, error) {
		<-proceed
		return tool.Result{Body: []byte(`{}`), JSON: true}, nil
	}})
	in, toFace := io.Pipe()
	fromFace, out := io.Pipe()
	var done sync.WaitGroup
	done.Go(func() {
		_ = h.face.Stdio(context.Background(), gateway.Request{}, in, out)
		out.Close()
	})
	done.Go(func() {
		for i := range 65 {
			fmt.Fprintf(toFace, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"time_now",`+meta26+`}}`+"\n", i)
		}
		toFace.Close()
	})
	answered, refused := 0, 0
	lines := bufio.NewScanner(fromFace)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"overloaded"`) {
			if refused++; refused == 1 {
				close(proceed)
			}
			continue
		}
		answered++
	}
	done.Wait()
	if refused != 1 || answered != 64 {
		t.Errorf("%d were refused, %d answered", refused, answered)
	}
}

// TestStdioEnds: the end of its context ends the reading, and not what runs.
func TestStdioEnds(t *testing.T) {
	h := open(t, plan{})
	ctx, cancel := context.WithCancel(context.Background())
	in, toFace := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- h.face.Stdio(ctx, gateway.Request{}, in, io.Discard) }()
	cancel()
	toFace.CloseWithError(context.Canceled)
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it continues")
	}
	// A client that takes no answers is an error.
	var broken brokenPipe
	if err := h.face.Stdio(context.Background(), gateway.Request{}, strings.NewReader(begin+"\n"+begin), broken); err == nil {
		t.Error("answers were written nowhere, and nobody was told")
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
