package threads_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/policy/lab"
	"github.com/callgate/callgate/store"
)

// TestCandidate: a candidate sees what each thread has done, of threads that have begun since it is there; nothing that is
// served changes, not for a request without a thread either. Once it is served, it knows those threads, and fails for those
// from before.
func TestCandidate(t *testing.T) {
	served := &story{rows: []string{`p, Analyst, *, clock.now, thread.calls('clock.now') <= 100, allow`, "p, Analyst, *, pay.refund, , allow", "p, Analyst, *, web.fetch, , allow", "p, Analyst, *, files.write, , allow"}}
	next := &story{rows: append(slices.Clone(served.rows), `p, Analyst, *, pay.refund, "thread.sum('pay.refund', 'amount', {'currency': args.currency}) > 10", deny`, `p, Analyst, *, files.write, "'untrusted' in thread.labels", deny`)}
	clock := call{tool: "clock.now", arguments: "{}"}
	fetch, write := call{tool: "web.fetch", arguments: `{"url":"https://a.example/"}`}, call{tool: "files.write", arguments: `{"path":"a"}`}
	refund := func(amount int) call {
		return call{tool: "pay.refund", arguments: fmt.Sprintf(`{"amount":%d,"currency":"EUR"}`, amount)}
	}
	for _, w := range ways() {
		if w.session || w.handsOver {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			var ledger *store.Engine
			o := open(t, served, func(t *testing.T, now func() time.Time) *store.Engine { ledger = inMemory(t, now); return ledger })
			candidate := next.config(t)
			judge, err := candidate.DryRun()
			if err != nil {
				t.Fatal(err)
			}
			var seen []string
			o.shadow = func(s gateway.ShadowJudgement) {
				j := judge.Judge(t.Context(), lab.Call{Agent: s.Subject.Agent, Workspace: s.Subject.Workspace, Project: s.Subject.Project, Tool: s.Tool, Arguments: bytes.Clone(s.Arguments), Past: s.Past})
				if j.NeedsPast {
					j.Verdict = "skipped"
				}
				seen = append(seen, string(j.Verdict))
			}
			swap := func(change func(*gateway.Config)) {
				o.mu.Lock()
				o.now = o.now.Add(time.Millisecond)
				o.mu.Unlock()
				config := *o.Executor.Kernel.Config()
				change(&config)
				if err := o.Executor.Kernel.Swap(&config); err != nil {
					t.Fatal(err)
				}
				terms, _, err := o.Executor.Kernel.Config().Terms()
				if err == nil {
					_, err = ledger.KeepTerms(t.Context(), terms, nil)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			tell := func(thread, code, verdict string, calls ...call) {
				t.Helper()
				seen = nil
				st := &step{calls: calls, thread: thread, by: "ada"}
				codes, answer := o.tell(w, st)
				if !slices.Equal(codes, slices.Repeat([]string{code}, len(calls))) || verdict != "" && (len(seen) == 0 || seen[len(seen)-1] != verdict) {
					t.Errorf("in %q: %q, the candidate %q; want %q, %q: %s", thread, codes, seen, code, verdict, answer.Body)
				}
			}
			tell("old", "", "", clock)
			swap(func(c *gateway.Config) { c.Beside = candidate.Policy })
			tell("new", "", "allowed", refund(6))
			tell("new", "", "refused", refund(6))
			tell("old", "", "skipped", refund(6))
			tell("", "", "skipped", refund(6)) // no thread is needed for what is served
			tell("labelled", "", "allowed", fetch)
			tell("labelled", "", "refused", write)
			if !w.single {
				tell("answer", "", "refused", refund(6), refund(6))
				tell("together", "", "allowed", fetch, write)
			}
			swap(func(c *gateway.Config) { c.Policy, c.Beside = candidate.Policy, nil })
			tell("new", "permission_denied", "", refund(6))
			tell("old", "permission_denied", "", refund(1))
			tell("newer", "", "", refund(6))
			tell("labelled", "permission_denied", "", write)
		})
	}
}
