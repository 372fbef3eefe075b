package gateway_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/store"
)

// The record of a decision names the policy rows that decided, where the policy did.
func TestDecidingRowsAreRecorded(t *testing.T) {
	const refund = `{"tool":{"name":"payments.refund","arguments":{"payment_id":"pay_abc123","amount":AMOUNT,"currency":"EUR"}}}`
	s := state(t, "../configs/callgate.yaml")
	s.Limits = &ratelimit.Limits{Replicas: 1}
	for name, c := range map[string]struct {
		agent, completion string
		lines             []string
	}{
		"allowed always":          {"Analyst", `{"tool":{"name":"time.now","arguments":{}}}`, []string{"6"}},
		"allowed on conditions":   {"Analyst", strings.Replace(refund, "AMOUNT", "50", 1), []string{"10"}},
		"no row on conditions":    {"Analyst", strings.Replace(refund, "AMOUNT", "500", 1), nil},
		"denied always":           {"Intern", strings.Replace(refund, "AMOUNT", "50", 1), []string{"12"}},
		"no row matches":          {"Analyst", `{"tool":{"name":"files.delete","arguments":{"path":"a"}}}`, nil},
		"refused by the schema":   {"Analyst", `{"tool":{"name":"time.now","arguments":{"zone":"UTC"}}}`, nil},
		"refused behind":          {"Analyst", `{"tool":{"name":"files.read","arguments":{"path":"../../etc/passwd"}}}`, []string{"8"}},
		"unknown tool":            {"Analyst", `{"tool":{"name":"time.then","arguments":{}}}`, nil},
		"no call":                 {"Analyst", `{"tool":`, nil},
		"text":                    {"Analyst", `It is noon.`, nil},
		"agent of another's rows": {"Nobody", `{"tool":{"name":"time.now","arguments":{}}}`, nil},
	} {
		j := &journal{}
		k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}, Engine: &engine{}, Store: store.NewMemory(time.Now)})
		r := completion(c.completion)
		r.Agent = c.agent
		handle(k, r, "")
		for i, record := range j.all() {
			want := []string{}
			for _, line := range c.lines {
				want = append(want, "policy.csv:"+line)
			}
			got := []string{}
			for _, row := range record.Rows {
				got = append(got, row[strings.LastIndexByte(row, '/')+1:])
			}
			if i > 0 {
				want = nil // the record of its outcome
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: record %d (%s) has the rows %q, want %q", name, i, record.Code, got, want)
			}
		}
		if len(j.all()) == 0 {
			t.Errorf("%s: nothing was recorded", name)
		}
	}
}
