package approvals_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store/approval"
)

// asked waits until people are asked and can answer, and returns the id of the call. The record of
// that is written before the approval is stored.
func (o *office) asked(t *testing.T) string {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if ids := o.opened(); len(ids) > 0 {
			if _, err := o.Executor.Desk().Get(t.Context(), ids[0]); err == nil {
				return ids[0]
			}
		}
	}
	t.Fatal("nobody is asked")
	return ""
}

// TestWhileTheRequestWaits: on every face a request waits for people, and then has its result, or
// is refused with what they said. Where its caller leaves, or the gateway is to stop, it ends, nothing
// runs, and a yes is for the next one that makes the call.
func TestWhileTheRequestWaits(t *testing.T) {
	yes := func(t *testing.T, o *office, id string, _ func()) { o.vote(t, id, vote{By: "ada", Yes: true}) }
	for name, c := range map[string]struct {
		happens func(t *testing.T, o *office, id string, leave func())
		runs    bool // by this request
		code    refusal.Code
		waits   bool // the approval is still there
	}{
		"silence": {func(*testing.T, *office, string, func()) {}, false, refusal.ApprovalRequired, true},
		"yes":     {yes, true, "", false},
		"no":      {func(t *testing.T, o *office, id string, _ func()) { o.vote(t, id, vote{By: "ada"}) }, false, refusal.ApprovalDenied, false},
		"called off": {func(t *testing.T, o *office, id string, _ func()) {
			if _, err := o.Executor.Desk().End(t.Context(), id, approval.EndWithdrawn, "app", ""); err != nil {
				t.Error(err)
			}
		}, false, refusal.ApprovalRequired, false},
		"the caller leaves": {func(_ *testing.T, _ *office, _ string, leave func()) { leave() }, false, "", true},
		"drain":             {func(_ *testing.T, o *office, _ string, _ func()) { o.Drain() }, false, "", true},
	} {
		for _, f := range faces() {
			if !f.waits {
				continue
			}
			t.Run(name+"/"+f.name, func(t *testing.T) {
				wait, prefer := "wait: 5m", "wait=300"
				if name == "silence" {
					wait, prefer = "wait: 50ms", "wait=1"
				}
				o := newOffice(t, with("approvals.yaml", strings.Replace(rulesFile, "wait: 0s", wait, 1)))
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				o.requests, o.prefer = ctx, prefer
				pay := call{Arguments: `{"amount":7}`}
				done := make(chan *httptest.ResponseRecorder, 1)
				go func() { done <- f.send(o, pay) }()
				id := o.asked(t)
				c.happens(t, o, id, leave)
				w := <-done
				if err := o.Executor.Kernel.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				ran := 0
				if c.runs && !f.handsOver {
					ran = 1
				}
				o.mu.Lock()
				if len(o.ran) != ran {
					t.Errorf("%d calls ran", len(o.ran))
				}
				o.mu.Unlock()
				if c.runs && w.Code != http.StatusOK {
					t.Errorf("%d %s", w.Code, w.Body)
				}
				found := c.code == ""
				for _, r := range o.Journal.Records() {
					found = found || r.Code == c.code
				}
				if !found && !strings.Contains(w.Body.String(), string(c.code)) {
					t.Errorf("nothing says %s: %d %s", c.code, w.Code, w.Body)
				}
				if !c.waits {
					return
				}
				o.requests, o.prefer = t.Context(), ""
				a, err := o.Executor.Desk().Get(t.Context(), id)
				if err != nil || o.Executor.Desk().State(&a) != approval.Waiting {
					t.Fatalf("%+v, %v", a, err)
				}
				yes(t, o, id, nil)
				// By another face: the model may still answer the request that has ended.
				if again := o.bring(t, faces()[0], pay); again.code != "" {
					t.Errorf("the next one that makes the call: %q", again.code)
				}
			})
		}
	}
}
