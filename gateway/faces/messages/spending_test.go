package messages_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/budgettest"
	"github.com/callgate/callgate/upstream"
)

// TestRequestsAreCharged: each turn is charged by the usage of its reply, whole and streamed; a count
// of tokens is not.
func TestRequestsAreCharged(t *testing.T) {
	const text = `{"type":"text","text":"hi"}`
	reply := func(reason, blocks string) string {
		return `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[` + blocks + `],"stop_reason":"` + reason +
			`","stop_sequence":null,"usage":{"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":5}}`
	}
	call := reply("tool_use", `{"type":"tool_use","id":"toolu_1","name":"time_now","input":{}}`)
	for _, more := range []string{"", streamed} {
		ledger, book := budgettest.Open(t, budgettest.One(1_000_000))
		h := open(t, says(call, reply("end_turn", text)), plan{budgets: ledger, rules: orchestrate})
		request := asks()
		if more != "" {
			request = asks(more)
		}
		w := h.create(request)
		if got := book.Words(); w.Code != http.StatusOK || !slices.Equal(got, []string{"settled 115", "settled 115"}) {
			t.Errorf("%q: %v: %d %s", more, got, w.Code, w.Body)
		}
		for i, end := range book.Ends() {
			if want := int64(len(h.model.body(t, i)) + 100); end.Reserved.Tokens != want {
				t.Errorf("%q: reserved %d, expected %d", more, end.Reserved.Tokens, want)
			}
		}
	}
}

// TestCompactionIsCharged: where the provider has compacted the conversation, every iteration is
// charged; what it states wrongly makes nothing cheaper.
func TestCompactionIsCharged(t *testing.T) {
	for iterations, want := range map[string]string{
		`[{"type":"compaction","input_tokens":180,"output_tokens":35},{"type":"message","input_tokens":10,"cache_creation_input_tokens":7,"output_tokens":5}]`: "settled 237",
		`[]`: "settled 15",
		`[1,{"input_tokens":-5,"output_tokens":"9"},null]`: "settled 15",
		`null`: "settled 15",
	} {
		ledger, book := budgettest.Open(t, budgettest.One(1_000_000))
		h := open(t, says(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn",`+
			`"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5,"iterations":`+iterations+`}}`), plan{budgets: ledger})
		if w := h.create(asks()); w.Code != http.StatusOK || !slices.Equal(book.Words(), []string{want}) {
			t.Errorf("%s: %v, expected %s: %d %s", iterations, book.Words(), want, w.Code, w.Body)
		}
	}
}

// TestCountsAreNotCharged: a count of tokens takes nothing, and needs no bound.
func TestCountsAreNotCharged(t *testing.T) {
	ledger, book := budgettest.Open(t, budgettest.One(1))
	h := open(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"input_tokens":12}`))
	}, plan{budgets: ledger})
	if w := h.post("/v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`); w.Code != http.StatusOK || len(book.Ends()) != 0 {
		t.Errorf("%d %s: %v", w.Code, w.Body, book.Words())
	}
}

// TestBudgetRefusesMessages: without room, and without a bound, nothing is asked of the model.
func TestBudgetRefusesMessages(t *testing.T) {
	ledger, book := budgettest.Open(t, budgettest.One(150))
	h := open(t, says(`{}`), plan{budgets: ledger, rules: func(r *upstream.Rules) { r.MaxRepairs = 0 }})
	w := h.create(asks())
	if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "rate_limited") || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w = h.create(strings.Replace(asks(), `"max_tokens":100,`, "", 1))
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "default_output_tokens") || h.model.times() != 0 || len(book.Ends()) != 0 {
		t.Errorf("%d %s, asked %d times", w.Code, w.Body, h.model.times())
	}
}
