package approvals_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/upstream"
)

// asksMine is a policy by which the caller itself is asked.
var asksMine = map[string]string{"policy.csv": "p, Analyst, *, pay, , ask:mine\np, Clerk, *, pay, , ask:mine\n"}

// ownEntry is how a client of Responses says that its user answers requests for approval.
const ownEntry = `{"type":"mcp","server_label":"callgate","server_url":"https://gate.example/v1","require_approval":"always"}`

// confirmer is a client of Responses whose user answers them.
type confirmer struct {
	*office
	t      *testing.T
	stream bool
	entry  string // of its tools; empty: ownEntry
	mode   string // empty: orchestrate
}

// send sends the items of a conversation behind its first message. The model makes a call, or answers.
func (c confirmer) send(makes *call, by call, items ...string) *httptest.ResponseRecorder {
	c.t.Helper()
	if !app.Speaks(upstream.ResponsesWire) {
		c.t.Skip("skipped: this program has no face of OpenAI Responses")
	}
	c.mu.Lock()
	c.next, c.read = makes, ""
	c.mu.Unlock()
	input := strings.Join(append([]string{`{"role":"user","content":"hi"}`}, items...), ",")
	body := fmt.Sprintf(`{"model":%q,"input":[%s],"tools":[%s,{"type":"function","name":"pay","parameters":{"type":"object"}}],"stream":%v}`,
		upstream.ResponsesWire, input, or(c.entry, ownEntry), c.stream)
	return c.post("/v1/responses", body, by, "Callgate-Mode", or(c.mode, string(upstream.Orchestrate)))
}

// request is the item by which a client is asked.
type request struct {
	Type, ID, Name, Arguments string
	Label                     string `json:"server_label"`
}

// output reads the items of a response.
func (c confirmer) output(w *httptest.ResponseRecorder) []json.RawMessage {
	c.t.Helper()
	raw := w.Body.String()
	if c.stream {
		_, raw, _ = strings.Cut(raw, "event: response.completed\ndata: ")
		raw, _, _ = strings.Cut(raw, "\n")
		raw = strings.TrimSuffix(raw[max(0, strings.Index(raw, `{"id":"resp`)):], "}")
	}
	var got struct {
		Status string
		Output []json.RawMessage
	}
	if err := json.Unmarshal([]byte(raw), &got); err != nil || got.Status != "completed" {
		c.t.Fatalf("%v: %d %s", err, w.Code, w.Body)
	}
	return got.Output
}

// asked has the model make a call, and returns the one item of the answer, by which the client is asked.
func (c confirmer) asked(makes call) (request, string) {
	c.t.Helper()
	items := c.output(c.send(&makes, makes))
	var q request
	if len(items) != 1 || json.Unmarshal(items[0], &q) != nil || q.Type != "mcp_approval_request" {
		c.t.Fatalf("not asked: %s", items)
	}
	return q, string(items[0])
}

// answer is the item by which a client answers.
func answer(id string, yes bool, more string) string {
	return fmt.Sprintf(`{"type":"mcp_approval_response","approval_request_id":%q,"approve":%v%s}`, id, yes, more)
}

// result is what the model read last of a call.
func (o *office) result(t *testing.T, id string) string {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	var got struct {
		Input []struct {
			Type, Name, Arguments, Output string
			CallID                        string `json:"call_id"`
		}
		Tools []struct{ Type string }
	}
	if err := json.Unmarshal([]byte(o.read), &got); err != nil {
		t.Fatalf("the model got %q: %v", o.read, err)
	}
	if len(got.Tools) > 1 || len(got.Tools) == 1 && got.Tools[0].Type != "function" || strings.Contains(o.read, "mcp_approval") {
		t.Errorf("the model got %s", o.read)
	}
	at := slices.IndexFunc(got.Input, func(item struct {
		Type, Name, Arguments, Output string
		CallID                        string `json:"call_id"`
	}) bool {
		return item.Type == "function_call_output" && item.CallID == id
	})
	if at < 1 || got.Input[at-1].Type != "function_call" || got.Input[at-1].CallID != id || got.Input[at-1].Name != "pay" {
		t.Fatalf("no call with its result: %s", o.read)
	}
	return got.Input[at].Output
}

// runs are the arguments that the tool has got.
func (o *office) runs() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.ran)
}

const saidSo = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"Done."}]}`

// TestCallerConfirms: the client is asked by an item of the answer, and a yes lets the very call run,
// once, whatever is sent again; a no does not, and is not asked about again in this conversation.
func TestCallerConfirms(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprint("streamed ", stream), func(t *testing.T) {
			c := confirmer{office: newOffice(t, asksMine), t: t, stream: stream}
			pay := call{Arguments: `{ "amount": 7, "note": "a b" }`}
			q, item := c.asked(pay)
			if ids := c.opened(); len(ids) != 1 || q.ID != ids[0] || q.Name != "pay" || q.Label != "callgate" || q.Arguments != pay.Arguments || len(c.runs()) != 0 {
				t.Fatalf("asked %+v of %q, and ran %q", q, ids, c.runs())
			}
			yes := answer(q.ID, true, "")
			for range 3 { // the same request again
				c.output(c.send(nil, pay, item, yes))
				if got := c.result(t, q.ID); !strings.Contains(got, `"output":{}`) || !slices.Equal(c.runs(), []string{pay.Arguments}) {
					t.Fatalf("%s; ran %q", got, c.runs())
				}
			}
			c.output(c.send(nil, pay, item, yes, saidSo, `{"role":"user","content":"thanks"}`))
			if got := c.result(t, q.ID); !strings.Contains(got, `"output":{}`) || len(c.runs()) != 1 {
				t.Errorf("later: %s; ran %q", got, c.runs())
			}
			if w := c.send(nil, pay, item, answer(q.ID, false, "")); w.Code != http.StatusConflict && !stream || !strings.Contains(w.Body.String(), "approval_conflict") || len(c.runs()) != 1 {
				t.Errorf("a no to what has run: %d %s", w.Code, w.Body)
			}
			again, item := c.asked(pay)
			no := answer(again.ID, false, `,"reason":"too much","id":null`)
			for range 2 {
				c.output(c.send(nil, pay, item, no))
				if got := c.result(t, again.ID); again.ID == q.ID || codeIn(got) != "approval_denied" || !strings.Contains(got, "too much") || len(c.runs()) != 1 {
					t.Fatalf("%s: %s; ran %q", again.ID, got, c.runs())
				}
			}
			c.output(c.send(nil, pay, item, answer(again.ID, true, "")))
			if got := c.result(t, again.ID); codeIn(got) != "approval_denied" || len(c.runs()) != 1 {
				t.Errorf("a yes after a no: %s; ran %q", got, c.runs())
			}
			if third, _ := c.asked(pay); third.ID == again.ID {
				t.Error("a no of a caller stands")
			}
		})
	}
}

// TestConfirmationRefused: an answer that is not one to the very call of this caller and place is
// refused, and lets nothing run; the right one still does.
func TestConfirmationRefused(t *testing.T) {
	pay := call{Arguments: `{"amount":7}`}
	other := func(change func(*call)) call { c := pay; change(&c); return c }
	for name, c := range map[string]struct {
		by    call
		entry string
		mode  string
		items func(item, yes string) []string
		code  string
	}{
		"unanswered":      {items: func(item, _ string) []string { return []string{item} }, code: "bad_request"},
		"no item":         {items: func(_, yes string) []string { return []string{yes} }, code: "bad_request"},
		"before its item": {items: func(item, yes string) []string { return []string{yes, item} }, code: "bad_request"},
		"two answers":     {items: func(item, yes string) []string { return []string{item, yes, yes} }, code: "bad_request"},
		"a yes and a no":  {items: func(item, yes string) []string { return []string{item, yes, strings.Replace(yes, "true", "false", 1)} }, code: "bad_request"},
		"two items":       {items: func(item, yes string) []string { return []string{item, item, yes} }, code: "bad_request"},
		"a result": {items: func(item, yes string) []string {
			return []string{item, strings.NewReplacer("mcp_approval_response", "function_call_output", "approval_request_id", "call_id", `"approve":true`, `"output":"ok"`).Replace(yes)}
		}, code: "bad_request"},
		"another label": {items: func(item, yes string) []string {
			return []string{strings.Replace(item, `"callgate"`, `"docs"`, 1), yes}
		}, code: "bad_request"},
		"no label": {items: func(item, yes string) []string {
			return []string{strings.Replace(item, `,"server_label":"callgate"`, "", 1), yes}
		}, code: "bad_request"},
		"a member too many": {items: func(item, yes string) []string { return []string{strings.Replace(item, "{", `{"output":"x",`, 1), yes} }, code: "bad_request"},
		"remember": {items: func(item, yes string) []string {
			return []string{item, strings.Replace(yes, "{", `{"remember":"1h",`, 1)}
		}, code: "bad_request"},
		"approve is a text": {items: func(item, yes string) []string { return []string{item, strings.Replace(yes, "true", `"true"`, 1)} }, code: "bad_request"},
		"no approve": {items: func(item, yes string) []string {
			return []string{item, strings.Replace(yes, `"approve":true`, `"approve":null`, 1)}
		}, code: "bad_request"},
		"a reason too long": {items: func(item, yes string) []string {
			return []string{item, strings.Replace(yes, "{", `{"reason":"`+strings.Repeat("é", 501)+`",`, 1)}
		}, code: "bad_request"},
		"arguments are no object": {items: func(item, yes string) []string {
			return []string{strings.Replace(item, `"{\"amount\":7}"`, `"7"`, 1), yes}
		}, code: "bad_request"},
		"other arguments": {items: func(item, yes string) []string { return []string{strings.Replace(item, `\":7`, `\":8`, 1), yes} }, code: "approval_conflict"},
		"an argument more": {items: func(item, yes string) []string {
			return []string{strings.Replace(item, `\":7`, `\":7,\"note\":\"x\"`, 1), yes}
		}, code: "approval_conflict"},
		"another tool": {items: func(item, yes string) []string { return []string{strings.Replace(item, `"pay"`, `"refund"`, 1), yes} }, code: "approval_conflict"},
		"another id": {items: func(item, yes string) []string {
			r := strings.NewReplacer("call_", "call_A")
			return []string{r.Replace(item), r.Replace(yes)}
		}, code: "not_found"},
		"another principal": {by: other(func(c *call) { c.Caller = "mallory" }), code: "not_found"},
		"another agent":     {by: other(func(c *call) { c.Agent = "Clerk" }), code: "approval_conflict"},
		"another project":   {by: other(func(c *call) { c.Project = "beta" }), code: "approval_conflict"},
		"no entry":          {entry: `{"type":"function","name":"refund","parameters":{"type":"object"}}`, code: "bad_request"},
		"enforced":          {mode: string(upstream.Enforce), code: "bad_request"},
	} {
		t.Run(name, func(t *testing.T) {
			o := confirmer{office: newOffice(t, asksMine), t: t}
			q, item := o.asked(pay)
			yes := answer(q.ID, true, "")
			items, bad := []string{item, yes}, o
			if c.items != nil {
				items = c.items(item, yes)
			}
			if c.by.Arguments == "" {
				c.by = pay
			}
			bad.entry, bad.mode = c.entry, c.mode
			w := bad.send(nil, c.by, items...)
			if want := refusal.New(refusal.Code(c.code), "").Status(); w.Code != want || codeIn(w.Body.String()) != c.code || o.read != "" || len(o.runs()) != 0 {
				t.Errorf("%d %s; the model read %q; ran %q", w.Code, w.Body, o.read, o.runs())
			}
			o.output(o.send(nil, pay, item, yes))
			if got := o.result(t, q.ID); !strings.Contains(got, `"output":{}`) || len(o.runs()) != 1 {
				t.Errorf("the right one: %s; ran %q", got, o.runs())
			}
		})
	}
}

// TestConfirmedThenChanged: a call that its caller has confirmed is judged by what holds when the
// answer comes. A call that is not permitted then does not run, and the model reads why.
func TestConfirmedThenChanged(t *testing.T) {
	pay := call{Arguments: `{"amount":7}`}
	policy := func(rows string) func(t *testing.T, o *office, id string) {
		return func(t *testing.T, o *office, _ string) { o.reload(t, map[string]string{"policy.csv": rows}) }
	}
	end := func(e approval.End, by string) func(t *testing.T, o *office, id string) {
		return func(t *testing.T, o *office, id string) {
			if _, err := o.Executor.Desk().End(t.Context(), id, e, by, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		happens func(t *testing.T, o *office, id string)
		code    string // empty: it runs
		back    bool   // it runs once the policy is what it was
	}{
		"nothing":              {happens: func(*testing.T, *office, string) {}},
		"the policy denies":    {happens: policy("p, Analyst, *, pay, , ask:mine\np, Analyst, *, pay, , deny\n"), code: "permission_denied", back: true},
		"asks no more":         {happens: policy("p, Analyst, *, pay, , allow\n")},
		"asks approvers too":   {happens: policy("p, Analyst, *, pay, , ask:mine\np, Analyst, *, pay, , ask:one\n"), code: "approval_required", back: true},
		"asks approvers alone": {happens: policy("p, Analyst, *, pay, , ask:one\n"), code: "approval_required", back: true},
		"the rule is for approvers": {happens: func(t *testing.T, o *office, _ string) {
			o.reload(t, map[string]string{"policy.csv": asksMine["policy.csv"], "approvals.yaml": strings.Replace(rulesFile, "by: caller, ", "", 1)})
		}, code: "approval_required", back: true},
		"another definition": {happens: func(t *testing.T, o *office, _ string) {
			o.reload(t, map[string]string{"policy.csv": asksMine["policy.csv"], "tools.yaml": strings.Replace(toolsFile, "Pays.", "Pays it.", 1)})
		}, code: "approval_required", back: true},
		"quarantined": {happens: func(_ *testing.T, o *office, _ string) { o.Executor.Kernel.Quarantine(map[string]bool{"pay": true}) }, code: "tool_quarantined"},
		"expired":     {happens: func(_ *testing.T, o *office, _ string) { o.later.Store(int64(2 * time.Hour)) }, code: "approval_expired"},
		"revoked":     {happens: end(approval.EndRevoked, "op"), code: "approval_denied"},
		"called off":  {happens: end(approval.EndWithdrawn, "app"), code: "approval_required"},
	} {
		t.Run(name, func(t *testing.T) {
			o := confirmer{office: newOffice(t, asksMine), t: t}
			q, item := o.asked(pay)
			c.happens(t, o.office, q.ID)
			check := func(code string) {
				t.Helper()
				o.output(o.send(nil, pay, item, answer(q.ID, true, "")))
				got, ran := o.result(t, q.ID), 0
				if code == "" {
					ran = 1
				}
				if codeIn(got) != code || len(o.runs()) != ran {
					t.Errorf("want %q: %s; ran %q", code, got, o.runs())
				}
			}
			check(c.code)
			if c.back {
				o.reload(t, asksMine)
				check("")
			}
		})
	}
}

// TestConfirmedBesideApprovers: a yes of the caller is one of two that are needed. Nothing runs behind
// the back of an application once its conversation has gone on.
func TestConfirmedBesideApprovers(t *testing.T) {
	o := confirmer{office: newOffice(t, map[string]string{"policy.csv": "p, Analyst, *, pay, , ask:mine\np, Analyst, *, pay, , ask:one\n"}), t: t}
	pay := call{Arguments: `{"amount":7}`}
	q, item := o.asked(pay)
	yes := answer(q.ID, true, "")
	for _, c := range []struct {
		votes bool
		items []string
		code  string
	}{
		{items: []string{item, yes}, code: "approval_required"},
		{items: []string{item, yes, saidSo}, code: "approval_required", votes: true},
		{items: []string{item, yes}},
		{items: []string{item, yes, saidSo}},
	} {
		if c.votes {
			o.vote(t, q.ID, vote{By: "ada", Yes: true})
		}
		o.output(o.send(nil, pay, c.items...))
		ran := 0
		if c.code == "" {
			ran = 1
		}
		if got := o.result(t, q.ID); codeIn(got) != c.code || len(o.runs()) != ran {
			t.Errorf("%d items, voted %v: %s; ran %q", len(c.items), c.votes, got, o.runs())
		}
	}
	// A call that waits for approvers alone is told to the model, as ever.
	o.reload(t, asking)
	o.output(o.send(&pay, pay))
	if got := o.read; codeIn(got) != "approval_required" || !strings.Contains(got, "call_1") {
		t.Errorf("%s", got)
	}
}

// TestConfirmedAtOnce: of equal requests at once one runs the call.
func TestConfirmedAtOnce(t *testing.T) {
	o := confirmer{office: newOffice(t, asksMine), t: t}
	for n := range 20 {
		pay := call{Arguments: fmt.Sprintf(`{"amount":%d}`, n)}
		q, item := o.asked(pay)
		body := fmt.Sprintf(`{"model":%q,"input":[%s,%s],"tools":[%s]}`, upstream.ResponsesWire, item, answer(q.ID, true, ""), ownEntry)
		var racers sync.WaitGroup
		for range 8 {
			racers.Go(func() {
				if w := o.post("/v1/responses", body, pay, "Callgate-Mode", "orchestrate"); w.Code != http.StatusOK {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			})
		}
		racers.Wait()
		if ran := o.runs(); len(ran) != n+1 || ran[n] != pay.Arguments {
			t.Fatalf("ran %q", ran)
		}
	}
}
