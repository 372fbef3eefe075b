package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
)

// candidateReport is what the admin API says of the candidate.
func (g *gate) candidateReport(t testing.TB) (r struct {
	Active bool
	Fault  string
	Counts map[string]int
	Groups []struct{ Change, Agent, Tool, Rows string }
}) {
	t.Helper()
	got := g.askAdmin(t, "/v1/candidate")
	if err := json.Unmarshal([]byte(got.body), &r); got.status != http.StatusOK || err != nil {
		t.Fatalf("found %d, %v: %s", got.status, err, got.body)
	}
	return r
}

// answer is the answer to a vector.
func (g *gate) answer(t testing.TB, v corpora.Vector) reply {
	t.Helper()
	body, headers, _ := asText(t, v)
	return g.ask(t, http.MethodPost, "/v1/calls", body, headers...)
}

// All vectors are answered as without a candidate, whatever the candidate says; where it differs
// is counted. A candidate that is saved half holds nothing back.
func TestCandidateAnswersNobody(t *testing.T) {
	t.Parallel()
	config, data := unlimitedVectors(t)
	plain := serveGate(t, config)
	vectors := corpora.Vectors(t)
	var answers []reply
	for _, v := range vectors {
		answers = append(answers, plain.answer(t, v))
	}
	if r := plain.candidateReport(t); r.Active {
		t.Errorf("there is a candidate: %+v", r)
	}
	plain.stop(t)

	beside, sideData := unlimitedVectors(t)
	next := filepath.Join(filepath.Dir(beside), "policy.next.csv")
	write := func(policy string) {
		if err := os.WriteFile(next, []byte(policy), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("p, Intern, *, *, , allow\n# end\n") // the Analyst may do nothing
	main, err := os.ReadFile(beside)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(beside, []byte(strings.Replace(string(main), "# end\n", "candidate: {policy: policy.next.csv}\n# end\n", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	g := serveGate(t, beside)
	for i, v := range vectors {
		got, want := g.answer(t, v), answers[i]
		if got.status != want.status || got.code() != want.code() {
			t.Errorf("%s: found %d %s; expected %d %s", v.ID, got.status, got.body, want.status, want.body)
		}
	}
	eventually(t, "calls are compared", func() bool { r := g.candidateReport(t); return r.Counts["newly_refused"] > 5 && r.Counts["same"] > 5 })
	r := g.candidateReport(t)
	if !r.Active || len(r.Groups) == 0 || r.Groups[0].Change != "newly_refused" || r.Groups[0].Agent != "Analyst" {
		t.Errorf("found %+v", r)
	}
	if metrics := g.askAdmin(t, "/metrics").body; !strings.Contains(metrics, `callgate_candidate_total{change="newly_refused"}`) || !strings.Contains(metrics, "callgate_candidate_failed 0") {
		t.Error("the metrics do not count the candidate")
	}
	write("p, Intern, *, *, ")
	eventually(t, "the candidate's fault is said", func() bool { return strings.Contains(g.candidateReport(t).Fault, "policy.next.csv") })
	if metrics := g.askAdmin(t, "/metrics").body; !strings.Contains(metrics, "callgate_candidate_failed 1") {
		t.Error("the metrics do not say that the candidate does not load")
	}
	if got := g.answer(t, vectors[0]); got.status != answers[0].status {
		t.Errorf("with a broken candidate the answer is %d; expected %d", got.status, answers[0].status)
	}
	g.stop(t)
	verified(t, sideData)
	verified(t, data)
}
