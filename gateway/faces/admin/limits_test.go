package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/store"
)

// usageFixture is the API of what is in use, over a kernel with limits and an empty store.
func usageFixture(t *testing.T, change func(*admin.Usage)) (*fixture, *gateway.Kernel, *store.Memory) {
	t.Helper()
	loaded := facetest.Config(t, map[string]string{
		"callgate.yaml": "registry: {files: [tools.yaml]}\nlimits: limits.yaml\n", "policy.csv": files["policy.csv"], "workspaces.yaml": files["workspaces.yaml"], "tools.yaml": files["tools.yaml"],
		"limits.yaml": "default: {rate: 60/m, burst: 10}\nagents: {Analyst: {concurrency: 2, tools: {web.search: {rate: 1/h, burst: 3}}}}\ncaller: {rate: 1/s, burst: 5}\n",
	})
	limiter, calls := ratelimit.NewLocal(time.Now), store.NewMemory(time.Now)
	k, err := gateway.New(configOf(loaded, nil), gateway.Deps{Limiter: limiter, Journal: &facetest.Journal{}})
	if err != nil {
		t.Fatal(err)
	}
	var breakers []admin.Breaker
	for i := range 130 {
		breakers = append(breakers, admin.Breaker{Tool: fmt.Sprint("tool.", i), State: "open"})
	}
	u := &admin.Usage{
		Kernel: k, Meter: limiter, Names: func() ([]string, []string) { return []string{"Analyst", "Intern"}, []string{"ada"} }, Breakers: func() []admin.Breaker { return breakers },
		Pools: func() []server.PoolUse { return []server.PoolUse{{Pool: "calls", Limit: 256, Taken: 3}} }, Unfinished: calls.Unfinished,
	}
	change(u)
	api := admin.New(admin.Options{Kernel: k, Loopback: true, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	api.Mount(u.Endpoints()...)
	f := &fixture{Server: httptest.NewServer(api), kernel: k}
	t.Cleanup(f.Close)
	return f, k, calls
}

// The next calls get the rest that the pages list, once each, by kind and name.
func TestLimits(t *testing.T) {
	f, _, _ := usageFixture(t, func(*admin.Usage) {})
	for range 2 {
		f.judge(t, "Analyst", goodCall)
	}
	all := get[admin.Limits](t, f, "/v1/limits")
	var found []string
	for _, l := range all.Limits {
		found = append(found, fmt.Sprint(l.Kind, " ", l.Name, " ", l.Of, " ", l.Limit, " ", l.Rate, " ", l.Left, "/", l.Size))
	}
	want := []string{
		"agent Analyst  default 60/m 8/10", "agent Intern  default 60/m 10/10", "agent_tool Analyst web.search agents.Analyst.tools.web.search 1/h 1/3",
		"caller ada  caller 1/s 5/5", "slots Analyst  agents.Analyst.concurrency  2/2",
	}
	if !slices.Equal(found, want) || all.Counted != "here" || len(all.Breakers) != 100 || all.Omitted != 30 || all.Pools[0].Taken != 3 || all.Limits[2].FullMillis < 7_000_000 {
		t.Errorf("found %q of %+v", found, all)
	}
	var paged []string
	for after := ""; ; {
		page := get[admin.Limits](t, f, "/v1/limits?limit=2&after="+after)
		for _, l := range page.Limits {
			paged = append(paged, string(l.Kind)+l.Name)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if len(paged) != len(want) || paged[4] != "slotsAnalyst" {
		t.Errorf("in pages: %v", paged)
	}
	if one := get[admin.Limits](t, f, "/v1/limits?kind=caller"); len(one.Limits) != 1 || one.Limits[0].Name != "ada" {
		t.Errorf("of one kind: %+v", one.Limits)
	}
	for _, query := range []string{"kind=agents", "after=x", "limit=0", "limit=501", "agent=Analyst"} {
		if answer, body := send(t, f.Server, sent{method: "GET", path: "/v1/limits?" + query}); answer.StatusCode != 400 {
			t.Errorf("%s: %d %s", query, answer.StatusCode, body)
		}
	}
}

// noMeter cannot be read.
type noMeter struct{}

func (noMeter) Levels(context.Context, *ratelimit.Limits, ratelimit.LevelQuery) (ratelimit.LevelPage, error) {
	return ratelimit.LevelPage{}, errors.New("Redis is away")
}

// Where limits cannot be read, that is said, and the rest is there.
func TestLimitsThatCannotBeRead(t *testing.T) {
	for _, meter := range []ratelimit.Meter{noMeter{}, nil} {
		f, _, _ := usageFixture(t, func(u *admin.Usage) { u.Meter, u.SharedLimits = meter, true })
		if got := get[admin.Limits](t, f, "/v1/limits"); got.Problem == "" || got.Limits == nil || len(got.Limits) != 0 || got.Counted != "redis" || len(got.Pools) != 1 {
			t.Errorf("found %+v", got)
		}
	}
}

// Calls under way are listed with their state, age, agent and tool, and those that have ended are
// not.
func TestCallsUnderWay(t *testing.T) {
	opened := time.Now()
	f, _, calls := usageFixture(t, func(u *admin.Usage) { u.Now = func() time.Time { return opened.Add(time.Minute) } })
	ctx := context.Background()
	for i, step := range []string{"opened", "dispatched", "waiting", "ended"} {
		id := fmt.Sprint("call_", i)
		_, err := calls.Open(ctx, store.Call{ID: id, Scope: store.Scope{Principal: "ada", Workspace: "acme", Project: "alpha"}})
		if i > 0 && err == nil {
			err = calls.Dispatch(ctx, id, store.Task{Tool: "web.search", Version: "1.0.0", Agent: "Analyst", Effect: "read", Arguments: []byte(canary)})
		}
		if step == "waiting" && err == nil {
			err = calls.Update(ctx, id, store.Defer{Until: opened.Add(time.Hour)})
		}
		if step == "ended" && err == nil {
			_, err = calls.Finish(ctx, id, store.Ending{State: store.Done, Attempt: "1"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(opened).Milliseconds() + 1
	page := get[admin.RunningCalls](t, f, "/v1/calls?limit=2")
	rest := get[admin.RunningCalls](t, f, "/v1/calls?limit=2&after="+page.Next)
	list := append(page.Calls, rest.Calls...)
	if len(list) != 3 || rest.Next != "" || list[0].State != "opened" || list[2].State != "waiting" || list[2].Until == nil || list[1].Until != nil {
		t.Fatalf("found %+v and %+v", page, rest)
	}
	if c := list[1]; c.Agent != "Analyst" || c.Tool != "web.search" || c.Principal != "ada" || c.Project != "alpha" || c.Attempts != 1 || c.AgeMillis < 60_000-took || c.AgeMillis > 60_000 {
		t.Errorf("found %+v", c)
	}
	if _, body := send(t, f.Server, sent{method: "GET", path: "/v1/calls"}); strings.Contains(body, canary) {
		t.Errorf("arguments are in %s", body)
	}
	away, _, _ := usageFixture(t, func(u *admin.Usage) {
		u.Unfinished = func(context.Context, string, int) ([]store.Call, error) { return nil, errors.New(canary) }
	})
	if answer, body := send(t, away.Server, sent{method: "GET", path: "/v1/calls"}); answer.StatusCode != 503 || codeOf(t, body) != "store_unavailable" || strings.Contains(body, canary) {
		t.Errorf("a store that is away: %d %s", answer.StatusCode, body)
	}
}
