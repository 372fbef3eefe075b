package console_test

import (
	"context"
	"fmt"
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
