package chat_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/budgettest"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/upstream"
)

// bounded bounds the output of a request.
const bounded = `"max_completion_tokens":50`

// answersStatus answers with a status.
func answersStatus(status int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"error":{"message":"no","type":"t"}}`)
	}
}

// hangsUp breaks the connection before a byte of the answer.
func hangsUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// TestEveryEndOfATurnIsCharged: each way in which a request to the model can end is charged once, and
// as it must be. The book of the budgets fails the test where a reservation ended twice, or not.
func TestEveryEndOfATurnIsCharged(t *testing.T) {
	hi := content("hi")
	noUsage := answersBody(`{"id":"c","choices":[{"index":0,"message":` + hi + `,"finish_reason":"stop"}]}`)
	half := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", `{"id":"c","choices":[{"index":0,"delta":{"content":"h"}}]}`)
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	usage := func(members string) func(http.ResponseWriter, *http.Request) {
		return answersBody(`{"id":"c","choices":[{"index":0,"message":` + hi + `,"finish_reason":"stop"}],"usage":` + members + `}`)
	}
	const settled, kept, back = "settled 15", "as reserved", "given back"
	unknown := says(toolCalls("c1", "no_such", "{}"), "tool_calls")
	clock := says(toolCalls("c1", "time_now", "{}"), "tool_calls")
	for name, c := range map[string]struct {
		script []func(http.ResponseWriter, *http.Request)
		more   string
		rules  func(*upstream.Rules)
		retry  int
		want   []string
	}{
		"an answer":                     {script: inList(says(hi, "stop")), want: []string{settled}},
		"a stream":                      {script: inList(says(hi, "stop")), more: `"stream":true`, want: []string{settled}},
		"a turn refused and repaired":   {script: inList(unknown, says(hi, "stop")), more: tools("time_now"), want: []string{settled, settled}},
		"a turn refused for good":       {script: inList(unknown), rules: noRepairs, want: []string{settled}},
		"calls handed over":             {script: inList(clock), more: tools("time_now"), want: []string{settled}},
		"calls run here":                {script: inList(clock, says(hi, "stop")), rules: orchestrate, want: []string{settled, settled}},
		"a run that loops":              {script: inList(clock), rules: all(orchestrate, func(r *upstream.Rules) { r.MaxTurns, r.MaxRepairs = 1, 0 }), want: []string{settled, settled}},
		"no usage":                      {script: inList(noUsage), want: []string{kept}},
		"usage null":                    {script: inList(usage(`null`)), want: []string{kept}},
		"usage of nothing":              {script: inList(usage(`{}`)), want: []string{kept}},
		"usage without output":          {script: inList(usage(`{"prompt_tokens":10}`)), want: []string{kept}},
		"usage without input":           {script: inList(usage(`{"completion_tokens":10}`)), want: []string{kept}},
		"thinking in the total alone":   {script: inList(usage(`{"prompt_tokens":10,"completion_tokens":2,"total_tokens":40}`)), want: []string{"settled 40"}},
		"more than was reserved":        {script: inList(usage(`{"prompt_tokens":10,"completion_tokens":990}`)), want: []string{"settled 1000"}},
		"too many answers":              {script: inList(saysMany("stop", hi, hi)), want: []string{settled}},
		"a stream that breaks off":      {script: inList(half), more: `"stream":true`, want: []string{kept}},
		"an answer that is not JSON":    {script: inList(answersBody(`hello`)), want: []string{kept}},
		"a connection that breaks":      {script: inList(hangsUp), want: []string{kept}},
		"a second attempt":              {script: inList(answersStatus(503), says(hi, "stop")), retry: 1, want: []string{kept, settled}},
		"a second attempt after a 429":  {script: inList(answersStatus(429), says(hi, "stop")), retry: 1, want: []string{back, settled}},
		"a failure of the provider":     {script: inList(answersStatus(500)), want: []string{kept}},
		"a request that it refuses":     {script: inList(answersStatus(400)), want: []string{back}},
		"a key that it refuses":         {script: inList(answersStatus(401)), want: []string{back}},
		"a timeout that it reports":     {script: inList(answersStatus(408)), want: []string{kept}},
		"a redirect":                    {script: inList(answersStatus(302)), want: []string{kept}},
		"a member that is not read":     {script: inList(says(hi, "stop")), more: `"zz":1`},
		"a tool that is not registered": {script: inList(says(hi, "stop")), more: tools("no_such")},
	} {
		ledger, book := budgettest.Open(t, budgettest.One(1_000_000))
		h := open(t, inTurn(c.script...), plan{budgets: ledger, rules: c.rules, definition: func(d *upstream.Definition) { d.Retries = c.retry }})
		w := h.post(asks(strings.Trim(bounded+","+c.more, ",")))
		if got := book.Words(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, expected %v: %d %s", name, got, c.want, w.Code, w.Body)
		}
	}
}

func inList(all ...func(http.ResponseWriter, *http.Request)) []func(http.ResponseWriter, *http.Request) {
	return all
}

// TestUnreachedProviderIsNotCharged: where nobody listens, nothing was spent.
func TestUnreachedProviderIsNotCharged(t *testing.T) {
	ledger, book := budgettest.Open(t, budgettest.One(1_000_000))
	h := open(t, inTurn(says(content("hi"), "stop")), plan{budgets: ledger})
	h.model.Close()
	if w := h.post(asks(bounded)); w.Code != http.StatusBadGateway || !slices.Equal(book.Words(), []string{"given back"}) {
		t.Errorf("%d %s: %v", w.Code, w.Body, book.Words())
	}
}

// TestCallerThatLeavesIsCharged: a request that was given up stays charged as reserved.
func TestCallerThatLeavesIsCharged(t *testing.T) {
	for _, streamed := range []string{"", `,"stream":true`} {
		ledger, book := budgettest.Open(t, budgettest.One(1_000_000))
		ctx, leave := context.WithCancel(t.Context())
		h := open(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
			leave()
			<-r.Context().Done()
		}, plan{budgets: ledger})
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(asks(bounded+streamed))).WithContext(ctx)
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(httptest.NewRecorder(), r)
		if got := book.Words(); !slices.Equal(got, []string{"as reserved"}) {
			t.Errorf("%q: %v", streamed, got)
		}
	}
}

// TestBoundOfOutput: a request without a bound gets the upstream's, or is refused with the names of
// both settings; what is reserved covers every answer that is asked for.
func TestBoundOfOutput(t *testing.T) {
	for name, c := range map[string]struct {
		more     string
		standard int64
		reserved int64 // beside the bytes of the body; 0: refused
		sent     string
	}{
		"its own":          {bounded, 0, 50, `"max_completion_tokens":50`},
		"the older member": {`"max_tokens":60`, 10, 60, `"max_tokens":60`},
		"both":             {bounded + `,"max_tokens":60`, 0, 60, `"max_tokens":60`},
		"the upstream's":   {"", 77, 77, `"max_completion_tokens":77`},
		"null":             {`"max_completion_tokens":null`, 77, 77, `"max_completion_tokens":77`},
		"four answers":     {bounded + `,"n":4`, 0, 200, `"n":4`},
		"none":             {"", 0, 0, ""},
		"a text":           {`"max_tokens":"60"`, 77, 0, ""},
		"below nothing":    {`"max_tokens":-60`, 77, 0, ""},
		"a fraction":       {`"max_tokens":6.5`, 77, 0, ""},
		"endless":          {`"max_tokens":99999999999999999999`, 77, 0, ""},
	} {
		ledger, book := budgettest.Open(t, budgettest.One(1_000_000))
		h := open(t, inTurn(says(content("hi"), "stop")), plan{budgets: ledger, rules: func(r *upstream.Rules) { r.DefaultOutputTokens = c.standard }})
		w := h.post(asks(c.more))
		if c.reserved == 0 {
			if w.Code != http.StatusBadRequest || h.model.times() != 0 || len(book.Ends()) != 0 {
				t.Errorf("%s: %d %s, asked %d times", name, w.Code, w.Body, h.model.times())
			}
			if c.more == "" && (!strings.Contains(w.Body.String(), "max_completion_tokens") || !strings.Contains(w.Body.String(), "default_output_tokens")) {
				t.Errorf("%s: the message names no setting: %s", name, w.Body)
			}
			continue
		}
		sent := string(h.model.body(t, 0))
		if got := book.Ends(); len(got) != 1 || got[0].Reserved.Tokens != int64(len(sent))+c.reserved || !strings.Contains(sent, c.sent) {
			t.Errorf("%s: %+v for %s", name, got, sent)
		}
	}
	h := open(t, inTurn(says(content("hi"), "stop")), plan{rules: func(r *upstream.Rules) { r.DefaultOutputTokens = 77 }})
	if h.post(asks("")); strings.Contains(string(h.model.body(t, 0)), "77") {
		t.Errorf("no budget covers it, and %s was sent", h.model.body(t, 0))
	}
}

// TestUsageOfStreamsIsAsked: under a budget a provider must say what a stream took, and the
// application is not told what it did not ask for.
func TestUsageOfStreamsIsAsked(t *testing.T) {
	for more, want := range map[string]any{"": nil, `,"stream_options":{"include_usage":true}`: 15.0, `,"stream_options":{"include_usage":false}`: nil} {
		ledger, _ := budgettest.Open(t, budgettest.One(1_000_000))
		h := open(t, inTurn(says(content("hi"), "stop")), plan{budgets: ledger})
		got := reads(t, h.post(asks(bounded+`,"stream":true`+more)))
		if got.Usage["total_tokens"] != want || !got.done || !strings.Contains(string(h.model.body(t, 0)), `"include_usage":true`) {
			t.Errorf("%s: %v, %s", more, got.Usage, h.model.body(t, 0))
		}
	}
}

// TestSpentBudget: the request for which there is no room is refused before the model is asked, and
// the answer says which budget it is and when to come again.
func TestSpentBudget(t *testing.T) {
	for _, streamed := range []string{"", `,"stream":true`} {
		ledger, book := budgettest.Open(t, budgettest.One(200))
		h := open(t, inTurn(says(content("hi"), "stop")), plan{budgets: ledger})
		for h.post(asks(bounded+streamed)).Code == http.StatusOK {
		}
		w := h.post(asks(bounded + streamed))
		got := reads(t, w)
		if w.Code != http.StatusTooManyRequests || got.Error.Code != "rate_limited" || w.Header().Get("Retry-After") == "" || w.Header().Get("X-Should-Retry") != "false" ||
			!strings.Contains(got.Error.Message, `"all" of this month`) || !strings.Contains(got.Error.Message, "renewed at") {
			t.Errorf("%q: %d %v %s", streamed, w.Code, w.Header(), w.Body)
		}
		states, err := book.Read(t.Context(), ledger.Current().Charges(budget.Scope{}))
		if err != nil || states[0].Spent.Tokens != int64(15*h.model.times()) || h.model.times() == 0 {
			t.Errorf("%q: %+v, asked %d times, %v", streamed, states, h.model.times(), err)
		}
	}
}

// TestBudgetEndsARun: a run whose budget ends in the middle fails then, and is not to be sent again:
// a tool has run.
func TestBudgetEndsARun(t *testing.T) {
	ledger, _ := budgettest.Open(t, budgettest.One(40_000))
	h := open(t, inTurn(says(toolCalls("c1", "time_now", "{}"), "tool_calls")), plan{budgets: ledger, rules: func(r *upstream.Rules) { orchestrate(r); r.MaxTurns = 1000 }})
	w := h.post(asks(bounded))
	if got := reads(t, w); got.Error.Code != "rate_limited" || h.model.times() < 1 || w.Header().Get("X-Should-Retry") != "false" {
		t.Errorf("%d %s, asked %d times", w.Code, w.Body, h.model.times())
	}
}
