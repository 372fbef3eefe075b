package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// billing is a provider that keeps its own account of a budget. A request is open from its arrival
// until just before its answer, so for less time than a gateway has it reserved: whatever gateways do
// in a right way, the account shows no more than they have counted.
type billing struct {
	*httptest.Server
	limit int64

	mu               sync.Mutex
	arrived          int
	open, taken, top int64 // tokens
	fault            string
}

// answerTokens is max_completion_tokens of each request.
const answerTokens = 50

func newBilling(t testing.TB, limit int64) *billing {
	b := &billing{limit: limit}
	b.Server = httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(b.Close)
	return b
}

// account is what was taken, the most that was taken or open at once, and the first fault.
func (b *billing) account() (taken, top int64, fault string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken, b.top, b.fault
}

// serve answers a request, whole or as a stream. Some answers do not say what they took, and some
// requests are refused.
func (b *billing) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	bound := int64(len(body)) + answerTokens
	b.mu.Lock()
	n := b.arrived
	b.arrived++
	b.open += bound
	if b.top = max(b.top, b.taken+b.open); b.taken+b.open > b.limit && b.fault == "" {
		b.fault = fmt.Sprintf("%d are taken and %d open, of %d", b.taken, b.open, b.limit)
	}
	b.mu.Unlock()
	input, output := 40, 1+n%40
	taken := int64(input + output)
	usage := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, input, output, taken)
	status := http.StatusOK
	switch n % 10 {
	case 3:
		usage, taken = "null", bound
	case 7:
		status, taken = http.StatusTooManyRequests, 0
	}
	b.mu.Lock()
	b.open, b.taken = b.open-bound, b.taken+taken
	b.mu.Unlock()
	switch {
	case status != http.StatusOK:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"error":{"message":"no","type":"t"}}`)
	case strings.Contains(string(body), `"stream":true`):
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`, "\n\n")
		fmt.Fprintf(w, "data: {\"id\":\"c\",\"choices\":[],\"usage\":%s}\n\ndata: [DONE]\n\n", usage)
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":%s}`, usage)
	}
}

// budgetShown is the only budget as GET /v1/limits shows it.
func (g *gate) budgetShown(t testing.TB) (used, reserved int64) {
	t.Helper()
	var page struct {
		Budgets []struct {
			Tokens struct{ Used, Reserved int64 }
		}
	}
	r := g.askAdmin(t, "/v1/limits?kind=budget")
	if err := json.Unmarshal([]byte(r.body), &page); err != nil {
		t.Fatalf("%d %s: %v", r.status, r.body, err)
	}
	if len(page.Budgets) != 1 { // Redis does not answer now
		return -1, -1
	}
	return page.Budgets[0].Tokens.Used, page.Budgets[0].Tokens.Reserved
}

// TestBudgetOfTwoGateways: two gateways share a budget on one Redis. Whatever they are asked at once, the
// provider never has more in hand than the budget; and in the end both show what it has taken.
func TestBudgetOfTwoGateways(t *testing.T) {
	t.Parallel()
	requests, workers := 300, 16
	if os.Getenv("CALLGATE_BUDGETS") == "long" {
		requests, workers = 10_000, 100
	}
	limit := int64(requests) * 20 // each takes at least 41, but for one in ten
	provider := newBilling(t, limit)
	redis := newRedis(t)
	redis.start(t)
	config := sharing(t, fmt.Sprintf("on_store_loss: refuse\nbudgets: [{name: all, window: month, tokens: %d}]\n", limit))
	for name, text := range map[string]string{
		"callgate.yaml":  "server: {" + anyPort + "}\nredis: {url: \"env:REDIS_URL\"}\nupstreams: upstreams.yaml\n",
		"upstreams.yaml": fmt.Sprintf("upstreams:\n  - {name: billing, base_url: %q, models: [m], retries: 0}\n", provider.URL+"/v1"),
	} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(config), name), []byte(text+"# end\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var gates []*gate
	for range 2 {
		gates = append(gates, serveGateIn(t, quickDir(t), config, "REDIS_URL=redis://"+redis.address()))
	}
	var next, answered, limited, away atomic.Int64
	began := time.Now()
	var group sync.WaitGroup
	for i := range 2 * workers {
		group.Go(func() {
			for next.Add(1) <= int64(requests) {
				body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"hi"}],"max_completion_tokens":%d,"stream":%v}`, answerTokens, i%4 < 2)
				r, err := gates[i%2].try(http.MethodPost, "http://"+gates[i%2].listen+"/v1/chat/completions", body, "Content-Type", "application/json")
				switch {
				case err != nil:
					t.Error(err)
				case r.status == http.StatusOK:
					answered.Add(1)
				case strings.Contains(r.body, `The budget \"all\"`):
					limited.Add(1)
				case strings.Contains(r.body, "limiter_unavailable"):
					away.Add(1) // Redis was slower than a gateway waits
				case !strings.Contains(r.body, "upstream_unavailable") && r.status != http.StatusTooManyRequests:
					t.Errorf("%d %s", r.status, r.body)
				}
			}
		})
	}
	group.Wait()
	took := time.Since(began)
	taken, top, fault := provider.account()
	if fault != "" {
		t.Error(fault)
	}
	if answered.Load() == 0 || limited.Load() == 0 && away.Load() == 0 {
		t.Errorf("answered %d, refused %d, while Redis was away %d", answered.Load(), limited.Load(), away.Load())
	}
	for _, g := range gates {
		eventually(t, "everything is settled", func() bool {
			used, reserved := g.budgetShown(t)
			return used == taken && reserved == 0 || used >= taken && away.Load() > 0
		})
	}
	t.Logf("%d requests in %s: %d answered, %d refused, %d while Redis was away; %d of %d tokens taken, at most %d taken or open",
		requests, took.Round(time.Millisecond), answered.Load(), limited.Load(), away.Load(), taken, limit, top)
}
