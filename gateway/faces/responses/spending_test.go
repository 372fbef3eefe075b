package responses_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/budgettest"
	"github.com/callgate/callgate/upstream"
)

// TestRequestsAreCharged: each request to the model is charged by the usage of its reply, whole and
// streamed, those of rounds of approvals included; one that does not say what it took stays as
// reserved.
func TestRequestsAreCharged(t *testing.T) {
	const bounded = `"max_output_tokens":50`
	approving := func(r *upstream.Rules) { orchestrate(r); r.Responses.MCPServers = []string{"web"} }
	noUsage := func(w http.ResponseWriter, _ bool) {
		w.Header().Set("Content-Type", "application/json")
		body := whole("resp_1", "completed", message("hi"))
		_, _ = io.WriteString(w, body[:strings.Index(body, `,"usage"`)]+"}")
	}
	failing := func(w http.ResponseWriter, streamed bool) {
		if !streamed {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"id":"r","object":"response","status":"failed","error":{"code":"server_error","message":"no"},"output":[]}`)
			return
		}
		sends(`{"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","created_at":7,"status":"in_progress","model":"model-1","output":[]}}`)(w, streamed)
	}
	for name, c := range map[string]struct {
		script []answer
		rules  func(*upstream.Rules)
		whole  bool // it is not streamed
		want   []string
	}{
		"an answer":          {script: []answer{says(message("hi"))}, want: []string{"settled 7"}},
		"calls run here":     {script: []answer{says(function("c1", "time_now", "{}")), says(message("hi"))}, rules: orchestrate, want: []string{"settled 7", "settled 7"}},
		"a refused call":     {script: []answer{says(function("c1", "no_such", "{}"))}, rules: noRepairs, want: []string{"settled 7"}},
		"a round of consent": {script: []answer{says(approval), says(message("hi"))}, rules: approving, want: []string{"settled 7", "settled 7"}},
		"no usage":           {script: []answer{noUsage}, whole: true, want: []string{"as reserved"}},
		"a failure":          {script: []answer{failing}, want: []string{"as reserved"}},
	} {
		for _, streamed := range []bool{false, true} {
			if streamed && c.whole {
				continue
			}
			ledger, book := budgettest.Open(t, budgettest.One(1_000_000))
			h := open(t, plan{budgets: ledger, rules: c.rules}, c.script...)
			request := asks(bounded)
			if streamed {
				request = asksStream(bounded)
			}
			w := h.post(request)
			if got := book.Words(); !slices.Equal(got, c.want) {
				t.Errorf("%s, streamed %v: %v, expected %v: %d %s", name, streamed, got, c.want, w.Code, w.Body)
			}
		}
	}
}

// TestBudgetRefusesResponses: without room, and without a bound, nothing is asked of the model; the
// upstream's own bound is put into a request that has none.
func TestBudgetRefusesResponses(t *testing.T) {
	ledger, book := budgettest.Open(t, budgettest.One(150))
	h := open(t, plan{budgets: ledger}, says(message("hi")))
	if w := h.post(asks(`"max_output_tokens":150`)); w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "rate_limited") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := h.post(asks()); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "default_output_tokens") || len(book.Ends()) != 0 || h.model.times() != 0 {
		t.Errorf("%d %s, asked %d times", w.Code, w.Body, h.model.times())
	}
	h = open(t, plan{budgets: ledger, rules: func(r *upstream.Rules) { r.DefaultOutputTokens = 20 }}, says(message("hi")))
	if w := h.post(asks()); w.Code != http.StatusOK || string(h.model.asked(t, 0)["max_output_tokens"]) != "20" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
