package callback_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

const respondAt = "http://127.0.0.1:9/chosen?secret=1"

// asks is a message by which the tool of a call asks a person.
func (c waiting) asks(prompt string, more ...any) string {
	return c.message("user_choice", append([]any{"prompt", prompt, "choices", []string{"yes", "no", "later"}, "default", 1, "response_url", respondAt}, more...)...)
}

// open is the id of the choice that is open.
func (c waiting) open() string {
	c.w.t.Helper()
	var s struct{ Choice struct{ ID string } }
	if err := json.Unmarshal([]byte(c.state().raw), &s); err != nil || s.Choice.ID == "" {
		c.w.t.Fatalf("no choice is open: %s", c.state().raw)
	}
	return s.Choice.ID
}

// choose answers a choice of a call.
func (c waiting) choose(body string, headers ...string) (int, string) {
	r := httptest.NewRequest(http.MethodPost, "/v1/calls/"+c.id+"/choice", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer := httptest.NewRecorder()
	c.w.ServeHTTP(answer, r)
	return answer.Code, answer.Body.String()
}

func picks(id string, selected int) string {
	return fmt.Sprintf(`{"id":%q,"selected":%d}`, id, selected)
}

// chosen is what was sent to tools about choices.
func (w *world) chosen() []string {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	return slices.Clone(w.engine.chosen)
}

// The question of a tool is shown to those who follow its call, and the call waits. The choice is
// sent to the tool once; then the tool answers.
func TestUCH01AChoice(t *testing.T) {
	w := newWorld(t)
	c := w.begin("later.do", "t")
	follower := c.follow()
	next(t, follower)
	body := c.asks("Which?\u202e")
	for range 3 {
		c.says(200, body)
	}
	got := next(t, follower)
	want := `"choice":{"id":"` + c.open() + `","prompt":"Which?\\u202e","choices":["yes","no","later"],"default":1}`
	if !strings.HasPrefix(got, "state ") || !strings.Contains(got, `"state":"choice"`) || !strings.Contains(got, want) || strings.Contains(got, "secret") {
		t.Errorf("found %s; expected %s", got, want)
	}
	id := c.open()
	if n := len(w.Journal.Find(c.id, outcome)); n > 0 {
		t.Errorf("the call has %d outcomes", n)
	}
	if status, body := c.choose(picks(id, 2), "Callgate-Thread", "t"); status != 200 || !strings.Contains(body, `"state":"pending"`) {
		t.Errorf("%d %s", status, body)
	}
	c.says(200, body) // the tool sends it again, late
	c.pending()
	if status, body := c.choose(picks(id, 2)); status != 200 {
		t.Errorf("the same again: %d %s", status, body)
	}
	if status, body := c.choose(picks(id, 0)); status != 409 || !strings.Contains(body, "idempotency_conflict") {
		t.Errorf("another: %d %s", status, body)
	}
	if got := w.chosen(); !slices.Equal(got, []string{c.id + " " + respondAt + " 2"}) {
		t.Errorf("sent %q", got)
	}
	c.says(200, c.asks("And now?"))
	if status, body := c.choose(`{"id":"` + c.open() + `","dismissed":true}`); status != 200 {
		t.Errorf("dismissed: %d %s", status, body)
	}
	if got := w.chosen(); len(got) != 2 || !strings.HasSuffix(got[1], " 1") {
		t.Errorf("sent %q", got)
	}
	c.says(200, c.result("text", "done"))
	if got := c.output(); got != `{"text":"done"}` || strings.Contains(c.state().raw, "choice") {
		t.Errorf("found %s, %s", got, c.state().raw)
	}
}

// Nothing is sent for a choice that is not open, and nothing twice.
func TestUCH01NothingElseIsSent(t *testing.T) {
	w := newWorld(t)
	c, other := w.begin("later.do", "t"), w.begin("later.do", "other")
	c.says(200, c.asks("First?"))
	first := c.open()
	c.says(200, c.asks("Second?"))
	second := c.open()
	for name, got := range map[string]struct {
		c       waiting
		body    string
		headers []string
		status  int
	}{
		"one that was replaced":   {c, picks(first, 0), nil, 404},
		"an unknown one":          {c, picks("unknown", 0), nil, 404},
		"of another call":         {other, picks(second, 0), nil, 404},
		"of no call":              {waiting{w: w, id: "call_UNKNOWN"}, picks(second, 0), nil, 404},
		"from another thread":     {c, picks(second, 0), []string{"Callgate-Thread", "other"}, 404},
		"none of the choices":     {c, picks(second, 3), nil, 400},
		"below the first":         {c, picks(second, -1), nil, 400},
		"no number":               {c, `{"id":"` + second + `","selected":"0"}`, nil, 400},
		"a fraction":              {c, `{"id":"` + second + `","selected":0.0}`, nil, 400},
		"no answer":               {c, `{"id":"` + second + `"}`, nil, 400},
		"both":                    {c, `{"id":"` + second + `","selected":0,"dismissed":true}`, nil, 400},
		"not dismissed":           {c, `{"id":"` + second + `","dismissed":false}`, nil, 400},
		"no id":                   {c, `{"selected":0}`, nil, 400},
		"an unknown member":       {c, `{"id":"` + second + `","selected":0,"to":"http://elsewhere"}`, nil, 400},
		"a member twice":          {c, `{"id":"` + second + `","selected":0,"selected":1}`, nil, 400},
		"a body that is too long": {c, picks(second, 0) + strings.Repeat(" ", 5000), nil, 413},
	} {
		if status, body := got.c.choose(got.body, got.headers...); status != got.status || strings.Contains(body, "secret") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	w.engine.responds = errors.New("the tool is away")
	if got := w.chosen(); len(got) > 0 {
		t.Errorf("sent %q", got)
	}
	if status, body := c.choose(picks(second, 0)); status != 502 || !strings.Contains(body, "tool_unavailable") {
		t.Errorf("%d %s", status, body)
	}
	w.engine.responds = nil
	if status, body := c.choose(picks(second, 0)); status != 502 || !strings.Contains(body, "outcome_unknown") {
		t.Errorf("again: %d %s", status, body)
	}
	if got := w.chosen(); len(got) != 1 {
		t.Errorf("sent %q", got)
	}
	c.pending()
}

// A choice ends with its call: when it is answered, cancelled, or out of time. Then nothing is
// sent, the default neither.
func TestUCH01EndsWithItsCall(t *testing.T) {
	for name, end := range map[string]func(c waiting){
		"answered":    func(c waiting) { c.says(200, c.result("text", "done")) },
		"cancelled":   func(c waiting) { c.cancel() },
		"out of time": func(c waiting) { c.w.advance(maxAge + 1) },
	} {
		w := newWorld(t)
		c := w.begin("later.do", "t")
		c.says(200, c.asks("Which?"))
		id := c.open()
		end(c)
		if status, body := c.choose(picks(id, 0)); status != 404 {
			t.Errorf("%s: %d %s", name, status, body)
		}
		c.says(404, c.asks("Again?"))
		if got := w.chosen(); len(got) > 0 {
			t.Errorf("%s: sent %q", name, got)
		}
	}
}

// A choice is kept with its call: it is shown and answered at another gateway, or after a
// restart. Of two answers at the same time at two gateways, one is sent.
func TestUCH01AtAnotherGateway(t *testing.T) {
	w := newWorld(t)
	c := w.begin("later.do", "t")
	c.says(200, c.asks("Which?"))
	other := w.again()
	there, id := c.at(other), c.open()
	if there.open() != id {
		t.Errorf("found %s", there.state().raw)
	}
	w.calls.once("before Note", func() {
		if status, body := there.choose(picks(id, 1)); status != 200 {
			t.Errorf("%d %s", status, body)
		}
	})
	if status, body := c.choose(picks(id, 0)); status != 409 {
		t.Errorf("%d %s", status, body)
	}
	if got := w.chosen(); !slices.Equal(got, []string{c.id + " " + respondAt + " 1"}) {
		t.Errorf("sent %q", got)
	}
	// So it is where they are the same. Until the tool has taken it, that is not known to the other.
	c.says(200, c.asks("The same twice?"))
	id = c.open()
	w.calls.once("before Note", func() {
		if status, body := there.choose(picks(id, 1)); status != 200 {
			t.Errorf("%d %s", status, body)
		}
	})
	w.engine.accepting = func() {
		w.engine.accepting = nil
		if status, body := c.choose(picks(id, 1)); status != 409 || !strings.Contains(body, "call_in_progress") {
			t.Errorf("while it is sent: %d %s", status, body)
		}
	}
	if status, body := c.choose(picks(id, 1)); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if got := w.chosen(); len(got) != 2 {
		t.Errorf("sent %q", got)
	}
	// Where neither learns of it, that is told of once the time of a tool is over.
	c.says(200, c.asks("And by nobody?"))
	id = c.open()
	w.engine.accepting = func() { w.calls.fail("Note") }
	if status, body := c.choose(picks(id, 1)); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	w.engine.accepting = nil
	w.calls.fail()
	for _, code := range []string{"call_in_progress", "outcome_unknown"} {
		if status, body := c.choose(picks(id, 1)); !strings.Contains(body, code) {
			t.Errorf("%d %s", status, body)
		}
		w.advance(time.Minute)
	}
	// An authorization leaves what was asked as it is.
	c.says(200, c.asks("And now?"))
	c.says(200, c.message("oauth", "auth_url", "https://example.com/login"))
	if there.open() == id {
		t.Errorf("found %s", there.state().raw)
	}
	c.says(200, c.asks("Which?")) // what was answered is not asked again
	if there.open() == id {
		t.Errorf("found %s", there.state().raw)
	}
}

// Nothing is asked that could not be shown or answered, and no call asks forever.
func TestUCH02HostileChoices(t *testing.T) {
	w := newWorld(t)
	c := w.begin("later.do", "t")
	many := make([]string, 33)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for name, body := range map[string]string{
		"no prompt":          c.asks(""),
		"a long prompt":      c.asks(strings.Repeat("a", 4<<10+1)),
		"a long escape":      c.asks(strings.Repeat("\u202e", 1<<10)),
		"no choices":         c.asks("x", "choices", []string{}),
		"choices absent":     c.asks("x", "choices", nil),
		"too many":           c.asks("x", "choices", many),
		"no texts":           c.asks("x", "choices", []int{1, 2}),
		"an empty one":       c.asks("x", "choices", []string{"a", ""}),
		"a long one":         c.asks("x", "choices", []string{"a", "b", strings.Repeat("a", 513)}),
		"two that are equal": c.asks("x", "choices", []string{"a", "a"}),
		"no default":         c.asks("x", "default", nil),
		"default behind":     c.asks("x", "default", 3),
		"default before":     c.asks("x", "default", -1),
		"default a fraction": c.asks("x", "default", 0.5),
		"default a text":     c.asks("x", "default", "1"),
		"elsewhere":          c.asks("x", "response_url", "http://169.254.169.254/latest"),
		"nowhere":            c.asks("x", "response_url", nil),
		"a hidden character": c.asks("x", "response_url", respondAt+"\u202e"),
		"a long URL":         c.asks("x", "response_url", respondAt+strings.Repeat("a", 2<<10)),
		"the token":          c.asks("x", "response_url", "http://127.0.0.1:9/"+c.token),
	} {
		if r := w.post(c.token, body); r.Code != 400 {
			t.Errorf("%s: %d %s", name, r.Code, r.Body)
		}
	}
	c.pending()
	c.says(200, c.asks("Is it "+c.token+"?"))
	if strings.Contains(c.state().raw, c.token) {
		t.Errorf("found %s", c.state().raw)
	}
	for n := range 14 {
		c.says(200, c.asks(fmt.Sprint(n)))
	}
	c.says(200, c.asks("the last"))
	for n := range 5 {
		c.says(400, c.asks(fmt.Sprint("more ", n)))
	}
	other := w.begin("later.do", "other")
	c.says(404, other.asks("of another call"))
	if status, _ := c.choose(picks(c.open(), 0)); status != 200 {
		t.Errorf("the last one cannot be answered: %d", status)
	}
}
