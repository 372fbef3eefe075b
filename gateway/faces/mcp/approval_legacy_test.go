package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
)

// requested waits until people can decide on so many calls, and returns the last's id. The log has
// an approval before the store has it.
func (d *desk) requested(t *testing.T, calls int) string {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		d.ledger.mu.Lock()
		found, id := 0, ""
		for _, r := range d.ledger.records {
			if r.Event == audit.Approval && r.Code == audit.Requested {
				found, id = found+1, r.CallID
			}
		}
		d.ledger.mu.Unlock()
		if found >= calls {
			if _, err := d.kernel.Desk().Get(t.Context(), id); err == nil {
				return id
			}
		}
	}
	t.Fatal("nobody was asked")
	return ""
}

// TestApprovalDuringCall: the user of an older client is asked in the middle of the call, which
// runs by a yes alone.
func TestApprovalDuringCall(t *testing.T) {
	for answer, want := range map[string]string{
		`{"action":"accept","content":{"decision":"allow once"}}`:    "",
		`{"action":"accept","content":{"decision":"allow for 1 h"}}`: "",
		`{"action":"accept","content":{"decision":"deny"}}`:          "approval_denied",
		`{"action":"decline"}`: "approval_denied",
		`{"action":"cancel"}`:  "approval_required",
		`{"action":"accept"}`:  "approval_required",
		`{"action":"accept","content":{"decision":"allow forever"}}`:    "approval_required",
		`{"action":"accept","content":{"decision":"allow once","n":1}}`: "approval_required",
		`{"action":"yes"}`: "approval_required",
		`{}`:               "approval_required",
		"":                 "approval_required", // an error
	} {
		for _, revision := range []string{"2025-11-25", "2025-06-18"} {
			d := openDesk(t, nil)
			c := begins(t, serves(t, d.fixture), revision, everything)
			k := c.call(`"name":"mine","arguments":{"n":1.50,"key":"hunter2"}`)
			q := k.question()
			if q.Method != "elicitation/create" || strings.Contains(q.raw, `"mode"`) || strings.Contains(q.raw, "hunter2") || !strings.Contains(q.raw, `{\"n\":1.50,`) || d.runs() != 0 {
				t.Fatalf("%s", q.raw)
			}
			if answer == "" {
				if r, body := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"error":{"code":-1,"message":"no"}}`, q.ID)); r.StatusCode != http.StatusAccepted {
					t.Fatalf("%d %s", r.StatusCode, body)
				}
			} else {
				c.answer(q, answer)
			}
			r := k.result()
			if r.code() != want || r.Result.IsError != (want != "") || d.runs() == 1 != (want == "") || d.face.Waiting() != 0 {
				t.Errorf("%s: %d runs: %s", answer, d.runs(), r.raw)
			}
			// A yes that stands asks no more, and nothing else does.
			k = c.call(`"name":"mine","arguments":{"n":1.50,"key":"hunter2"}`)
			if stands := strings.Contains(answer, "1 h"); stands {
				k.result()
			} else {
				k.question()
			}
		}
	}
}

// TestApprovalDuringCallEnds: silence, a client that leaves, and a gateway that drains, leave
// the call undecided.
func TestApprovalDuringCallEnds(t *testing.T) {
	d := openDesk(t, nil)
	c := begins(t, serves(t, d.fixture), "2025-11-25", everything)
	k := c.call(`"name":"mine"`)
	q := k.question()
	k.disconnect()
	d.empty(t)
	if r, body := c.post(q.says(`{"action":"accept","content":{"decision":"allow once"}}`)); r.StatusCode != 400 {
		t.Errorf("%d %s", r.StatusCode, body)
	}
	k = c.call(`"name":"mine"`) // it waits still, and is asked anew
	k.question()
	d.Drain()
	if r := k.result(); r.code() != "approval_required" || d.runs() != 0 {
		t.Errorf("%d runs: %s", d.runs(), r.raw)
	}
	if got := fmt.Sprint(d.acts()); got != "[requested "+audit.RuleVotes("mine", 1, true)+"]" {
		t.Errorf("%s", got)
	}
	quick := openDesk(t, nil, time.Millisecond)
	c = begins(t, serves(t, quick.fixture), "2025-11-25", everything)
	k = c.call(`"name":"mine"`)
	k.question()
	if r := k.result(); r.code() != "approval_required" || quick.runs() != 0 {
		t.Errorf("%d runs: %s", quick.runs(), r.raw)
	}
}

// TestApprovalPageDuringCall: where approvers decide, an older client is given their page, and its
// call waits for them; so does the call of a client that cannot be given it.
func TestApprovalPageDuringCall(t *testing.T) {
	for name, c := range map[string]struct {
		capabilities, answer string
		decide, yes          bool
		want                 string
	}{
		"opened":          {everything, `{"action":"accept"}`, true, true, ""},
		"opened, denied":  {everything, `{"action":"accept"}`, true, false, "approval_denied"},
		"not opened":      {everything, `{"action":"decline"}`, false, false, "approval_required"},
		"nothing":         {everything, `{}`, false, false, "approval_required"},
		"no page":         {`{"elicitation":{}}`, "", true, true, ""},
		"no page, denied": {`{}`, "", true, false, "approval_denied"},
	} {
		d := openDesk(t, func(c *gateway.Config, _ *calls.Deps) { c.ApprovalWait = patience })
		client := begins(t, serves(t, d.fixture), "2025-11-25", c.capabilities)
		result := make(chan reply, 1)
		var k *talk
		if c.answer != "" {
			k = client.call(`"name":"theirs"`)
			q := k.question()
			if !strings.Contains(q.raw, pages+d.requested(t, 1)) || !strings.Contains(q.raw, `"elicitationId"`) {
				t.Errorf("%s: %s", name, q.raw)
			}
			client.answer(q, c.answer)
		}
		go func() {
			if k == nil {
				k = client.call(`"name":"theirs"`)
			}
			result <- k.result()
		}()
		if c.decide {
			d.votes(t, d.requested(t, 1), c.yes)
		}
		if r := <-result; r.code() != c.want || d.runs() == 1 != (c.want == "") {
			t.Errorf("%s: %d runs: %s", name, d.runs(), r.raw)
		}
	}
}

// TestApprovalBothDuringCall: first the user is asked, then the page is given.
func TestApprovalBothDuringCall(t *testing.T) {
	d := openDesk(t, nil)
	c := begins(t, serves(t, d.fixture), "2025-11-25", everything)
	k := c.call(`"name":"both"`)
	c.answer(k.question(), `{"action":"accept","content":{"decision":"allow once"}}`)
	q := k.question()
	if !strings.Contains(q.raw, pages) || d.runs() != 0 {
		t.Fatalf("%s", q.raw)
	}
	c.answer(q, `{"action":"accept"}`)
	d.votes(t, d.requested(t, 1), true)
	if r := k.result(); r.Result.IsError || d.runs() != 1 {
		t.Errorf("%d runs: %s", d.runs(), r.raw)
	}
}

// TestStdioApprovals: over standard input and output it is the same, where nobody but the client's
// user can be asked.
func TestStdioApprovals(t *testing.T) {
	d := openDesk(t, func(_ *gateway.Config, p *calls.Deps) { p.NoApprovers = true })
	call := func(name, capabilities string) reply {
		line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capabilities + `}}}`
		return repliesTo(t, d.fixture, gateway.Subject{}, line)["1"]
	}
	for _, c := range [][2]string{{"theirs", formsAndPages}, {"both", formsAndPages}, {"mine", `{}`}, {"mine", `{"elicitation":{"url":{}}}`}} {
		if r := call(c[0], c[1]); r.code() != "approval_required" || !strings.Contains(r.raw, "no listener where people approve") {
			t.Errorf("%s: %s", c, r.raw)
		}
	}
	if len(d.acts()) != 0 {
		t.Errorf("asked: %q", d.acts())
	}
	if r := call("mine", forms); r.Result.Type != "input_required" {
		t.Errorf("%s", r.raw)
	}
	in, toFace := io.Pipe()
	fromFace, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := d.face.Stdio(context.Background(), gateway.Request{}, in, out)
		out.Close()
		ended <- err
	}()
	lines := json.NewDecoder(fromFace)
	send := func(line string) {
		if _, err := io.WriteString(toFace, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	next := func() (m streamMessage) {
		if err := lines.Decode(&m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	send(strings.Replace(begin, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1))
	next()
	send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mine"}}`)
	q := next()
	send(q.says(`{"action":"accept","content":{"decision":"allow once"}}`))
	if m := next(); strings.Contains(string(m.Result), `"isError"`) || d.runs() != 1 {
		t.Errorf("%d runs: %s", d.runs(), m.Result)
	}
	send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"mine","arguments":{"n":1}}}`)
	next()
	toFace.Close() // the client leaves
	go func() { _, _ = io.Copy(io.Discard, fromFace) }()
	if err := <-ended; err != nil || d.runs() != 1 {
		t.Errorf("%d runs: %v", d.runs(), err)
	}
}

// TestOfficialClientApproves: the official client of each revision shows the form and the page,
// and its call runs by them.
func TestOfficialClientApproves(t *testing.T) {
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		d := openDesk(t, nil)
		client := &http.Client{Transport: &http.Transport{}}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		var mu sync.Mutex
		var shown []string
		c := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, &sdk.ClientOptions{
			Capabilities: &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}},
			ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				mu.Lock()
				defer mu.Unlock()
				if r.Params.URL == "" {
					shown = append(shown, "form")
					return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"decision": "allow once"}}, nil
				}
				shown = append(shown, "page")
				d.votes(t, strings.TrimPrefix(r.Params.URL, pages), true)
				return &sdk.ElicitResult{Action: "accept"}, nil
			},
		})
		s, err := c.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: serves(t, d.fixture), HTTPClient: client, DisableStandaloneSSE: true}, &sdk.ClientSessionOptions{ProtocolVersion: revision})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"mine", "theirs", "both"} {
			r, err := s.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: map[string]any{"n": 1}})
			if err != nil || r.IsError {
				t.Errorf("%s, %s: %+v: %v", revision, name, r, err)
			}
		}
		if got := fmt.Sprint(shown); d.runs() != 3 || len(shown) != 4 || !strings.HasPrefix(got, "[form page ") {
			t.Errorf("%s: %d runs, shown %s", revision, d.runs(), got)
		}
		s.Close()
		cancel()
		client.CloseIdleConnections()
	}
}

// TestApprovalWaitEnds: a client that cannot be asked waits for approvers; if it leaves, or the
// gateway drains, nothing runs, also where they approve the call then.
func TestApprovalWaitEnds(t *testing.T) {
	d := openDesk(t, func(c *gateway.Config, _ *calls.Deps) { c.ApprovalWait = patience })
	c := &caller{t: t, url: serves(t, d.fixture), http: &http.Client{Transport: &http.Transport{}}, headers: modern("tools/call", "theirs")}
	t.Cleanup(c.http.CloseIdleConnections)
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"theirs",` + meta26 + `}}`
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(call))
		if err == nil {
			r.Header = http.Header{"Content-Type": {"application/json"}}
			for i := 0; i < len(c.headers); i += 2 {
				r.Header.Set(c.headers[i], c.headers[i+1])
			}
			_, err = c.http.Do(r) // it has no body: the client leaves
		}
		left <- err
	}()
	id := d.requested(t, 1)
	leave()
	if err := <-left; err == nil {
		t.Fatal("it was answered")
	}
	answered := make(chan string, 1)
	go func() {
		_, body := c.post(call)
		answered <- body
	}()
	for end := time.Now().Add(patience); len(d.decisions()) < 2; time.Sleep(time.Millisecond) { // it waits, too
		if time.Now().After(end) {
			t.Fatal("it was not judged")
		}
	}
	d.Drain()
	if body := <-answered; !strings.Contains(body, "approval_required") || !strings.Contains(body, `"isError":true`) {
		t.Errorf("%s", body)
	}
	d.votes(t, id, true)
	if d.runs() != 0 || len(d.acts()) != 2 {
		t.Errorf("%d runs, %q", d.runs(), d.acts())
	}
}

// decisions are those in the audit log.
func (d *desk) decisions() (lines []string) {
	for _, line := range d.ledger.lines() {
		if strings.HasPrefix(line, "decision") {
			lines = append(lines, line)
		}
	}
	return lines
}
