package console_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/boltstore"
	"github.com/callgate/callgate/store/redisstore"
)

// anyCredential knows many callers, of whom none may have all approvals that wait, and one operator that
// approves.
type anyCredential struct{}

func (anyCredential) Authenticate(credential string) *identity.Principal {
	if credential == "ops" {
		return &identity.Principal{Name: "ops", Operator: true, Approves: []string{"refunds"}}
	}
	return &identity.Principal{Name: credential, Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}}
}

// durable are the stores of a gateway that is started again.
var durable = map[string]func(testing.TB) backend{
	"file": func(t testing.TB) backend { return onFile(t) },
	"redis": func(t testing.TB) backend {
		redistest.Require(t)
		s := redistest.Start(t)
		r, err := redisstore.New(context.Background(), redisstore.Options{
			Options: redisconn.Options{URL: func() string { return "redis://" + s.Address() }, Prefix: redistest.Prefix()}, Node: "node", Wait: 10 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		for ready := false; !ready; time.Sleep(5 * time.Millisecond) {
			ready, _ = r.Ready()
		}
		return r
	},
}

func onFile(t testing.TB) *boltstore.Store {
	f, err := boltstore.Open(t.TempDir(), boltstore.Options{Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestDecidedAtOnce: the page after a vote, and after a revocation, counts what still waits, and leads to it; the list has
// it before what was decided.
func TestDecidedAtOnce(t *testing.T) {
	f := newFixtureOf(t, staff{}, asking("Pays.", "look"))
	var ids []string
	for i := range 3 {
		ids = append(ids, f.ask(t, gateway.Request{Credential: "bot"}, fmt.Sprintf(`{"amount":%d}`, i)))
		time.Sleep(time.Millisecond) // their order is that of asking
	}
	if err := f.executor.Desk().Measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := func(who, path string) string {
		_, body := f.do(t, f.Client(), sent{path: path, header: bearer(who)})
		return body
	}
	waiting := func(n int) bool {
		return strings.Contains(page("ops", "/console"), fmt.Sprintf(`<span class="badge">%d<`, n))
	}
	if !waiting(3) {
		t.Fatal("three are not counted")
	}
	path := "/console/approvals/" + ids[0]
	if answer, body := f.do(t, f.browser(t), sent{method: "POST", path: path, form: url.Values{"vote": {"yes"}, "digest": {f.see(t, "ada", ids[0]).Digest}}, header: bearer("ada")}); answer.StatusCode != 303 {
		t.Fatal(answer.StatusCode, body)
	}
	if !waiting(2) {
		t.Error("one that is approved is counted as waiting")
	}
	if body := page("ada", path); !strings.Contains(body, `<a href="/console/approvals/`+ids[1]+`">Next`) {
		t.Errorf("the page of what is decided does not lead on: %s", body)
	}
	if body := page("bot", path); strings.Contains(body, ">Next") {
		t.Error("it leads to what the caller may not decide")
	}
	list := page("ada", "/console/approvals")
	if second, third, first := strings.Index(list, ids[1]), strings.Index(list, ids[2]), strings.Index(list, ids[0]); second < 0 || second > third || third > first {
		t.Errorf("what waits is not first: %s", list)
	}
	if n := strings.Count(list, `<td data-label="You can decide">yes</td>`); n != 2 {
		t.Errorf("%d can be decided, of two", n)
	}
	if answer, _ := f.do(t, f.browser(t), sent{method: "POST", path: "/console/approvals/" + ids[1] + "/revoke", form: url.Values{}, header: bearer("ops")}); answer.StatusCode != 303 {
		t.Fatal(answer.StatusCode)
	}
	if !waiting(1) {
		t.Error("one that is revoked is counted as waiting")
	}
}

// BenchmarkWaiting answers the list of approvals, and the pages that have it, while as many wait
// as may, with short and with the longest arguments.
func BenchmarkWaiting(b *testing.B) {
	for name, open := range durable {
		for _, length := range []int{100, 60 << 10} {
			b.Run(fmt.Sprintf("%s/arguments=%d", name, length), func(b *testing.B) {
				f := newFixtureOn(b, anyCredential{}, asking("Pays somebody.", "look it up"), open(b))
				for i := range store.MaxLive {
					f.ask(b, gateway.Request{Credential: fmt.Sprint("bot-", i%20)}, fmt.Sprintf(`{"amount":%d,"note":%q}`, i, strings.Repeat("x", length)))
				}
				for _, path := range []string{"/v1/approvals?state=waiting", "/v1/approvals?state=waiting&limit=500", "/console/approvals", "/console"} {
					b.Run(path, func(b *testing.B) {
						size := 0
						for b.Loop() {
							answer, body := f.do(b, f.Client(), sent{path: path, header: bearer("ops")})
							if size = len(body); answer.StatusCode != 200 {
								b.Fatal(answer.StatusCode, body)
							}
						}
						b.ReportMetric(float64(size), "bytes")
					})
				}
			})
		}
	}
}
