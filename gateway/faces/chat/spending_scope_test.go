package chat_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/internal/testkit/budgettest"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/upstream"
)

// TestNamesSpendNoOtherBudget: a request that names another project than it acts in, or none, spends
// what every request outside of a project spends, and is covered by the budgets of each project. So no
// name is a new budget, and none escapes one.
func TestNamesSpendNoOtherBudget(t *testing.T) {
	for name, c := range map[string]struct {
		headers []string
		subject string
		covered bool // by a budget of acme/alpha
	}{
		"its project":                        {[]string{"Callgate-Project", "alpha"}, "acme/alpha", true},
		"another project of its own":         {[]string{"Callgate-Project", "beta"}, "acme/beta", false},
		"a project that does not exist":      {[]string{"Callgate-Project", "made-up-7"}, "", true},
		"a workspace that does not exist":    {[]string{"Callgate-Workspace", "made-up", "Callgate-Project", "alpha"}, "", true},
		"a project that its agent is not in": {[]string{"Callgate-Workspace", "globex", "Callgate-Project", "gamma"}, "", true},
		"a project of another workspace":     {[]string{"Callgate-Project", "gamma"}, "", true},
	} {
		set := budgettest.One(1_000_000)
		set.Budgets[0].Per = budget.PerProject
		alpha := set.Budgets[0]
		alpha.Name, alpha.Per, alpha.Projects = "alpha", budget.PerAll, []string{"acme/alpha"}
		set.Budgets = append(set.Budgets, alpha)
		ledger, book := budgettest.Open(t, set)
		h := open(t, inTurn(says(content("hi"), "stop")), plan{budgets: ledger})
		if w := h.post(asks(bounded), append(c.headers, "Callgate-Agent", "Analyst")...); w.Code != 200 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
			continue
		}
		states, err := book.Read(t.Context(), []budget.Charge{{Budget: &set.Budgets[0], Subject: c.subject}, {Budget: &set.Budgets[1]}})
		if err != nil || states[0].Spent.Tokens != 15 || (states[1].Spent.Tokens == 15) != c.covered {
			t.Errorf("%s: charged %+v, %v", name, states, err)
		}
	}
}

// TestBoundOfOutputOfOtherServers: members by which servers other than OpenAI's bound the output, or
// make more of it, are in the bound.
func TestBoundOfOutputOfOtherServers(t *testing.T) {
	for more, want := range map[string]int64{
		`"max_tokens":60,"n_predict":700`:                              700,
		`"n_predict":70`:                                               70,
		`"max_tokens":60,"best_of":5`:                                  300,
		`"max_tokens":60,"n":2,"best_of":5`:                            300,
		`"max_tokens":60,"n":4,"best_of":2`:                            240,
		`"max_tokens":60,"best_of":null`:                               60,
		`"max_tokens":60,"enable_thinking":true,"thinking_budget":500`: 560,
		`"max_tokens":60,"n_predict":-1`:                               0,
		`"max_tokens":60,"best_of":1.5`:                                0,
		`"max_tokens":60,"n":5000000000`:                               0,
	} {
		ledger, book := budgettest.Open(t, budgettest.One(1_000_000))
		h := open(t, inTurn(says(content("hi"), "stop")), plan{budgets: ledger})
		w := h.post(asks(more))
		if want == 0 {
			if w.Code != 400 || h.model.times() != 0 {
				t.Errorf("%s: %d %s", more, w.Code, w.Body)
			}
			continue
		}
		var got []string
		for _, end := range book.Ends() {
			got = append(got, fmt.Sprint(end.Reserved.Tokens-int64(len(h.model.body(t, 0)))))
		}
		if !slices.Equal(got, []string{fmt.Sprint(want)}) {
			t.Errorf("%s: reserved %v beside the input, expected %d: %d %s", more, got, want, w.Code, w.Body)
		}
	}
}

// TestRunSaysWhatItWasCharged: the record of a run has what all its requests were charged with, also
// attempts and turns that failed.
func TestRunSaysWhatItWasCharged(t *testing.T) {
	clock := says(toolCalls("c1", "time_now", "{}"), "tool_calls")
	for name, c := range map[string]struct {
		script   []func(http.ResponseWriter, *http.Request)
		budgets  int64
		answered int64 // requests of 10 tokens of input and 5 of output
		reserved int   // requests that are charged as reserved, the first ones
		none     bool
	}{
		"two turns":                      {script: inList(clock, says(content("hi"), "stop")), budgets: 1_000_000, answered: 2},
		"a failure, and another attempt": {script: inList(answersStatus(503), says(content("hi"), "stop")), budgets: 1_000_000, answered: 1, reserved: 1},
		"a turn that fails":              {script: inList(clock, answersStatus(500), answersStatus(400)), budgets: 1_000_000, answered: 1, reserved: 1},
		"no room":                        {script: inList(clock), budgets: 1},
		"no budget":                      {script: inList(says(content("hi"), "stop")), none: true},
	} {
		set := budgettest.One(c.budgets)
		set.Currency, set.Prices = "EUR", []budget.ModelPrice{{Model: "m", Price: budget.Price{Input: 1_000_000, CachedInput: 1_000_000, Output: 2_000_000}}}
		if c.none {
			set.Budgets = nil
		}
		ledger, book := budgettest.Open(t, set)
		h := open(t, inTurn(c.script...), plan{budgets: ledger, rules: orchestrate, definition: func(d *upstream.Definition) { d.Retries = 1 }})
		w := h.post(asks(bounded))
		run := h.runs.FindAny(w.Header().Get("Callgate-Run-Id"))
		if run == nil {
			t.Fatalf("%s: no run: %d %v %s", name, w.Code, w.Header(), w.Body)
		}
		if c.none {
			if run.Charged != nil {
				t.Errorf("%s: %+v", name, run.Charged)
			}
			continue
		}
		want := runs.Charged{Tokens: 15 * c.answered, Currency: "EUR", AsReserved: c.reserved > 0}
		micros := 20 * c.answered
		for _, end := range book.Ends() {
			if end.String() == "as reserved" {
				want.Tokens, micros = want.Tokens+end.Reserved.Tokens, micros+end.Reserved.Micros
				c.reserved--
			}
		}
		want.Money = budget.FormatMoney(micros)
		if run.Charged == nil || *run.Charged != want || c.reserved != 0 {
			t.Errorf("%s: %+v, expected %+v, %v", name, run.Charged, want, book.Words())
		}
	}
}
