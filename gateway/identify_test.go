package gateway_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// asksOnce judgedCounts how often a credential is judged.
type asksOnce struct {
	knows
	requests int
}

func (a *asksOnce) Authenticate(credential string) *identity.Principal {
	a.requests++
	return a.knows.Authenticate(credential)
}

// judgements are the judgements to have the first step of a judgement done.
var judgements = map[string]func(*calls.Executor, gateway.Request) error{
	"Judge": func(k *calls.Executor, r gateway.Request) error {
		d := k.Kernel.Judge(context.Background(), r)
		d.Release()
		if r := d.Refusal(); r != nil {
			return r
		}
		return nil
	},
	"Check": func(k *calls.Executor, r gateway.Request) error {
		if r := k.Kernel.Check(context.Background(), r).Refusal; r != nil {
			return r
		}
		return nil
	},
	"Admit": func(k *calls.Executor, r gateway.Request) error {
		_, err := k.Kernel.Admit(context.Background(), r)
		return err
	},
	"Tools": func(k *calls.Executor, r gateway.Request) error {
		_, err := k.Kernel.Tools(context.Background(), r)
		return err
	},
	"Lookup": func(k *calls.Executor, r gateway.Request) error {
		if _, err := k.Lookup(context.Background(), r, "call_1"); refusedAs(err) != "request not_found" {
			return err
		}
		return nil
	},
	"Follow": func(k *calls.Executor, r gateway.Request) error {
		_, err := k.Follow(context.Background(), r, "call_1")
		return err
	},
	"Stream": func(k *calls.Executor, r gateway.Request) error {
		_, err := k.Kernel.Stream(context.Background(), r)
		return err
	},
}

// identifying is a kernel that asks for a credential, with a rate of the caller that
// suffices for so many requests.
func identifying(t *testing.T, burst int) (*calls.Executor, *gateway.Config, *asksOnce) {
	t.Helper()
	s := state(t, vectorConfig)
	a := &asksOnce{knows: knows{
		"key":   {Name: "app", Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}},
		"other": {Name: "other", Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}},
	}}
	rate, _ := ratelimit.ParseRate("1/h")
	s.Identity, s.Limits = a, &ratelimit.Limits{Replicas: 1, Caller: &ratelimit.Budget{Rate: rate, Burst: burst}}
	c := newClock()
	return kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(c.now), Journal: &journal{}}, Store: store.NewMemory(c.now)}), s, a
}

// TestIdentifiedCountsOnce: the judgement of a request whose caller was identified
// neither judges the credential nor takes the rate again; a second one does both.
func TestIdentifiedCountsOnce(t *testing.T) {
	for name, way := range judgements {
		k, _, requested := identifying(t, 1)
		request := completion(search)
		request.Credential, request.CallerAddress = "key", "127.0.0.1"
		caller, err := k.Kernel.Identify(context.Background(), &request)
		if caller != "app" || err != nil {
			t.Fatalf("%s: %q %v", name, caller, err)
		}
		if err := way(k, request); err != nil || requested.requests != 1 {
			t.Errorf("%s: %v, and the credential was judged %d times", name, err, requested.requests)
		}
		if err := way(k, request); refusedAs(err) != "identity caller_rate_limited" || requested.requests != 2 {
			t.Errorf("%s, again: %v, and the credential was judged %d times", name, err, requested.requests)
		}
	}
}

// TestIdentifiedIsOfTheRequest: who was identified stands in for no other credential or
// caller, and no other kernel.
func TestIdentifiedIsOfTheRequest(t *testing.T) {
	for name, change := range map[string]func(*gateway.Request){
		"nobody":         func(r *gateway.Request) { r.Credential = "" },
		"another":        func(r *gateway.Request) { r.Credential = "other" },
		"from elsewhere": func(r *gateway.Request) { r.CallerAddress = "10.0.0.1" },
	} {
		k, _, requested := identifying(t, 1)
		request := completion(search)
		request.Credential, request.CallerAddress = "key", "127.0.0.1"
		if _, err := k.Kernel.Identify(context.Background(), &request); err != nil {
			t.Fatal(err)
		}
		change(&request)
		want := map[string]string{"nobody": "identity unauthenticated", "another": "", "from elsewhere": "identity caller_rate_limited"}[name]
		if got := refusedBy(k.Kernel.Judge(context.Background(), request)); got != want || requested.requests != 2 {
			t.Errorf("%s: %q, and a credential was judged %d times", name, got, requested.requests)
		}
	}
	one, _, _ := identifying(t, 2)
	two, _, asked := identifying(t, 1)
	request := completion(search)
	request.Credential = "key"
	if _, err := one.Kernel.Identify(context.Background(), &request); err != nil {
		t.Fatal(err)
	}
	if got := refusedBy(two.Kernel.Judge(context.Background(), request)); got != "" || asked.requests != 1 {
		t.Errorf("another kernel: %q, and the credential was judged %d times", got, asked.requests)
	}
	if got := refusedBy(two.Kernel.Judge(context.Background(), request)); got != "identity caller_rate_limited" {
		t.Errorf("another kernel did not take the rate: %q", got)
	}
}

// TestIdentifiedAcrossReloads: where the configuration changes while a body arrives, the
// credential must be the same caller's still.
func TestIdentifiedAcrossReloads(t *testing.T) {
	app := &identity.Principal{Name: "app", Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}}
	other := *app
	other.Name = "other"
	narrower := *app
	narrower.Agents = []string{"Intern"}
	for name, c := range map[string]struct {
		now  gateway.Authenticator
		want string
	}{
		"as before":      {knows{"key": app}, ""},
		"removed":        {knows{}, "identity unauthenticated"},
		"another's":      {knows{"key": &other}, "identity unauthenticated"},
		"for less":       {knows{"key": &narrower}, "identity agent_mismatch"},
		"nobody asks":    {nil, "identity unauthenticated"},
		"nobody can say": {panics{}, "identity internal"},
	} {
		for way, judge := range judgements {
			k, s, _ := identifying(t, 1)
			request := completion(search)
			request.Credential, request.CallerAddress, request.Agent = "key", "127.0.0.1", "Analyst"
			if _, err := k.Kernel.Identify(context.Background(), &request); err != nil {
				t.Fatal(err)
			}
			next := *s
			next.Identity = c.now
			if err := k.Kernel.Swap(&next); err != nil {
				t.Fatal(err)
			}
			if got := refusedAs(judge(k, request)); got != c.want {
				t.Errorf("%s, %s: %q, want %q", name, way, got, c.want)
			}
		}
	}
}

// TestIdentifyRefuses: a caller who cannot be identified is refused, and nothing is
// recorded. The refusal is counted.
func TestIdentifyRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		credential string
		change     func(*gateway.Config, *calls.Deps)
		want       string
	}{
		"nobody":            {"", nil, "identity unauthenticated"},
		"unknown":           {"wrong", nil, "identity unauthenticated"},
		"panics":            {"key", func(s *gateway.Config, _ *calls.Deps) { s.Identity = panics{} }, "identity internal"},
		"no limiter":        {"key", func(_ *gateway.Config, p *calls.Deps) { p.Limiter = nil }, "identity limiter_unavailable"},
		"a broken limiter":  {"key", func(_ *gateway.Config, p *calls.Deps) { p.Limiter = brokenLimiter{} }, "identity internal"},
		"a rate of nothing": {"key", func(s *gateway.Config, _ *calls.Deps) { s.Limits.Caller.Burst = 0 }, "rate limiter_unavailable"},
		"over its rate":     {"spent", nil, "identity caller_rate_limited"},
	} {
		_, s, _ := identifying(t, 1)
		j, seen := &journal{}, &judgedCounts{}
		parts := calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(newClock().now), Journal: j, Observer: seen}}
		if c.change != nil {
			c.change(s, &parts)
		}
		k := kernelOf(t, s, parts)
		request := gateway.Request{Credential: c.credential, CallerAddress: "127.0.0.1"}
		if c.credential == "spent" {
			request.Credential = "key"
			if _, err := k.Kernel.Identify(context.Background(), &request); err != nil {
				t.Fatal(err)
			}
		}
		caller, err := k.Kernel.Identify(context.Background(), &request)
		if refusedAs(err) != c.want || caller != "" || len(j.all()) != 0 || seen.refused != 1 {
			t.Errorf("%s: %q %v; %d records, %d counted", name, caller, err, len(j.all()), seen.refused)
		}
	}
}

type brokenLimiter struct{ ratelimit.Limiter }

func (brokenLimiter) Caller(context.Context, *ratelimit.Limits, string) error {
	panic(errors.New("broken"))
}

// judgedCounts counts refusals, and remembers the last names.
type judgedCounts struct {
	gateway.Observer // nothing else is told
	refused          int
	agent, tool      string
	ended            string // agent and tool
}

func (*judgedCounts) Stage(refusal.Stage, time.Duration) {}
func (*judgedCounts) Recorded(bool, time.Duration)       {}
func (c *judgedCounts) Ended(_ string, _ time.Duration, agent, tool string) {
	c.ended = agent + " " + tool
}

func (c *judgedCounts) Judged(_ string, refused *refusal.Error, agent, tool string) {
	c.agent, c.tool = agent, tool
	if refused != nil {
		c.refused++
	}
}
