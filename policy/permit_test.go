package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/casbin/casbin/v2/effector"

	"github.com/callgate/callgate/internal/testkit/detector"
)

func load(t *testing.T) *Policy {
	t.Helper()
	p, warnings, err := Load(Source{File: "policy.csv", Data: exampleCSV(t)}, testTools(), testSpaces())
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	return p
}

func TestExample(t *testing.T) {
	p := load(t)
	for _, c := range []struct {
		agent, domain, tool, arguments string
		line                           int // of the deciding row, 0 for none
		reach                          Reach
	}{
		{"Analyst", "acme/alpha", "web.search", `{}`, 2, Always},
		{"Analyst", "acme/alpha", "web", `{}`, 0, Never},
		{"Analyst", "acme/alpha", "web.", `{}`, 0, Never},
		{"Analyst", "acme/alpha", "website.search", `{}`, 0, Never},
		{"Analyst", "acme/alpha", "web.a.b", `{}`, 2, Always},
		{"Analyst", "acme/alpha", "files.read", `{}`, 5, Always},
		{"Analyst", "acme/beta", "files.read", `{}`, 0, Never},
		{"Analyst", "acme/beta", "notes.label", `{}`, 4, Always},
		{"Analyst", "acme/beta", "web.search", `{}`, 2, Always},
		{"Analyst", "acme/alpha", "notes.label", `{}`, 0, Never},
		{"Analyst", "globex/gamma", "web.search", `{}`, 0, Never},
		{"analyst", "acme/alpha", "web.search", `{}`, 0, Never},
		{"Analyst", "acme/alpha", "payments.refund", `{"currency":"EUR","amount":100}`, 6, OnConditions},
		{"Analyst", "acme/alpha", "payments.refund", `{"currency":"EUR","amount":1e2}`, 6, OnConditions},
		{"Analyst", "acme/alpha", "payments.refund", `{"currency":"EUR","amount":100.0}`, 6, OnConditions},
		{"Analyst", "acme/alpha", "payments.refund", `{"currency":"EUR","amount":100.01}`, 0, OnConditions},
		{"Analyst", "acme/alpha", "payments.refund", `{"currency":"EUR","amount":100.00000000000000001}`, 0, OnConditions},
		{"Analyst", "acme/alpha", "payments.refund", `{"currency":"USD","amount":1}`, 0, OnConditions},
		{"Analyst", "acme/alpha", "payments.refund", `{"amount":1}`, 0, OnConditions},
		{"Intern", "acme/alpha", "files.read", `{}`, 7, Always},
		{"Intern", "acme/alpha", "files.delete", `{}`, -9, Never},
		{"Intern", "acme/alpha", "payments.refund", `{"amount":1}`, -8, Never},
		{"Intern", "acme/alpha", "payments", `{}`, 7, Always},
		{"Intern", "no/where", "made.up", `{}`, 7, Always},
		{"Intern", "acme/alpha", "web.fetch", `{"url":"http://x"}`, -10, OnConditions},
		{"Intern", "acme/alpha", "web.fetch", `{"url":"https://x"}`, 7, OnConditions},
		{"Intern", "acme/alpha", "web.fetch", `{}`, -10, OnConditions},
		{"Intern", "acme/alpha", "web.fetch", `{"url":5}`, -10, OnConditions},
		{"Intern", "acme/beta", "web.fetch", `{}`, 7, Always},
		{"role:researcher", "acme/alpha", "web.search", `{}`, 0, Never},
		{"Ghost", "acme/alpha", "web.search", `{}`, 0, Never},
		{"Intern", "acme/*", "web.search", `{}`, 0, Never},
		{"Intern", "acme/alpha", "*", `{}`, 0, Never},
		{"Intern", "acme/alpha", "web.*", `{}`, 0, Never},
		{"Intern", "acme/a/b", "web.search", `{}`, 0, Never},
		{"Intern", "acme/", "web.search", `{}`, 0, Never},
		{"Intern", "/alpha", "web.search", `{}`, 0, Never},
		{"Intern", "acme/alpha", "", `{}`, 0, Never},
		{"", "acme/alpha", "web.search", `{}`, 0, Never},
	} {
		name := fmt.Sprintf("%s %s %s %s", c.agent, c.domain, c.tool, c.arguments)
		workspace, project, _ := strings.Cut(c.domain, "/")
		// Twice: the second answer comes from the table.
		for range 2 {
			d, err := p.Permit(t.Context(), Request{c.agent, workspace, project, c.tool, decode(t, c.arguments), nil})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			line := 0
			if d.Row != nil {
				if line = d.Row.Line; !d.Allowed {
					line = -line
				}
			}
			if line != c.line || d.Allowed != (c.line > 0) {
				t.Errorf("%s: allowed %v by line %d, want %d", name, d.Allowed, line, c.line)
			}
		}
		if reach, err := p.Reach(c.agent, workspace, project, c.tool); reach != c.reach || err != nil {
			t.Errorf("%s: reach %v (%v), want %v", name, reach, err, c.reach)
		}
	}
}

// Roles: inheritance, its domains, and the longest chain that is allowed.
func TestRoles(t *testing.T) {
	var chain strings.Builder
	chain.WriteString("p, role:r9, acme/alpha, web.search, , allow\ng, Analyst, role:r0, acme/*\n")
	for i := range 9 {
		fmt.Fprintf(&chain, "g, role:r%d, role:r%d, *\n", i, i+1)
	}
	p := mustLoad(t, chain.String())
	if d, err := p.Permit(t.Context(), Request{"Analyst", "acme", "alpha", "web.search", nil, nil}); !d.Allowed || err != nil {
		t.Errorf("a chain of ten roles: %v, %v", d, err)
	}
	// Opposite grants that never hold in one domain are no cycle.
	p = mustLoad(t, "p, role:a, *, web.search, , allow\ng, role:b, role:a, acme/alpha\ng, role:a, role:b, acme/beta\ng, Analyst, role:b, *\n")
	for project, want := range map[string]bool{"alpha": true, "beta": false} {
		if d, err := p.Permit(t.Context(), Request{"Analyst", "acme", project, "web.search", nil, nil}); d.Allowed != want || err != nil {
			t.Errorf("%s: %v, %v, want %v", project, d, err, want)
		}
	}
	// A deny of a role reaches its members.
	p = mustLoad(t, "p, Analyst, *, *, , allow\np, role:a, acme/alpha, web.*, , deny\ng, Analyst, role:a, acme/*\n")
	for _, c := range []struct {
		project, tool string
		want          bool
	}{{"alpha", "web.search", false}, {"beta", "web.search", true}, {"alpha", "files.read", true}} {
		if d, err := p.Permit(t.Context(), Request{"Analyst", "acme", c.project, c.tool, nil, nil}); d.Allowed != c.want || err != nil {
			t.Errorf("%v: %v, %v", c, d, err)
		}
	}
}

// Made-up names share the entries of what the file can tell apart.
func TestNamesDoNotGrowMemory(t *testing.T) {
	detector.OneGoroutine(t)
	p := load(t)
	for i := range 100_000 {
		name := fmt.Sprintf("n%d", i)
		for _, r := range []Request{
			{name, "acme", "alpha", "web.search", nil, nil}, {"Intern", name, "alpha", "web.search", nil, nil},
			{"Intern", "acme", name, "web.search", nil, nil}, {"Intern", "acme", "alpha", name, nil, nil},
			{"Intern", "acme", name, "payments." + name, nil, nil}, {"Analyst", name, name, "web." + name + ".x", nil, nil},
		} {
			if _, err := p.Permit(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(p.settled.verdicts) + len(p.enforcers.verdicts); n > 20 {
		t.Errorf("%d entries after 600,000 requests of made-up names", n)
	}
}

// The number of distinguishable requests is bounded too.
func TestTableIsBounded(t *testing.T) {
	for when, entries := range map[string]func(p *Policy) *verdictCache{
		"":        func(p *Policy) *verdictCache { return &p.settled },
		"args.ok": func(p *Policy) *verdictCache { return &p.enforcers },
	} {
		var rows strings.Builder
		const tools, most = 300, 100
		for i := range tools {
			fmt.Fprintf(&rows, "p, Intern, *, t.n%d, %s, allow\n", i, when)
		}
		p := mustLoad(t, rows.String())
		entries(p).limit = most
		for i := range tools {
			r := Request{"Intern", "acme", "alpha", fmt.Sprintf("t.n%d", i), map[string]any{"ok": true}, nil}
			if d, err := p.Permit(t.Context(), r); !d.Allowed || err != nil {
				t.Fatal(i, d, err)
			}
		}
		if n := len(p.settled.verdicts) + len(p.enforcers.verdicts); n != most || len(entries(p).verdicts) != most {
			t.Errorf("%q: %d entries, want %d", when, n, most)
		}
	}
}

func TestNilAndZeroPermitNothing(t *testing.T) {
	r := Request{"Intern", "acme", "alpha", "web.search", nil, nil}
	for name, p := range map[string]*Policy{"nil": nil, "zero": {}} {
		if d, err := p.Permit(t.Context(), r); d.Allowed || err == nil {
			t.Errorf("%s: %v, %v", name, d, err)
		}
		if reach, err := p.Reach(r.Agent, r.Workspace, r.Project, r.Tool); reach != Never || err == nil {
			t.Errorf("%s: %v, %v", name, reach, err)
		}
		if e, err := p.Explain(t.Context(), r); e.Allowed || err == nil {
			t.Errorf("%s: %v, %v", name, e, err)
		}
	}
}

// wrongEffector gives one answer to everything.
type wrongEffector struct {
	effect   effector.Effect
	deciding int
	err      error
}

func (w wrongEffector) MergeEffects(string, []effector.Effect, []float64, int, int) (effector.Effect, int, error) {
	return w.effect, w.deciding, w.err
}

// A panic, an error or a false answer inside casbin is an error, never a permit.
func TestFaultsInsideTheEnforcer(t *testing.T) {
	r := Request{"Analyst", "acme", "alpha", "payments.refund", decode(t, `{"currency":"EUR","amount":1}`), nil}
	breakWith := map[string]func(verdict){
		"a panic":            func(v verdict) { v.enforcer.casbin.SetEffector(nil) },
		"an error":           func(v verdict) { v.enforcer.casbin.SetEffector(wrongEffector{effector.Allow, 0, errors.New("broken")}) },
		"allowed by no row":  func(v verdict) { v.enforcer.casbin.SetEffector(wrongEffector{effector.Allow, -1, nil}) },
		"denied by no row":   func(v verdict) { v.enforcer.casbin.SetEffector(wrongEffector{effector.Deny, -1, nil}) },
		"allowed too early":  func(v verdict) { v.enforcer.rows = append(v.enforcer.rows, &rule{}) },
		"a row not yet read": func(v verdict) { v.enforcer.casbin.SetEffector(wrongEffector{effector.Allow, 1, nil}) },
		"another effect":     func(v verdict) { v.enforcer.rows[0].Effect = Deny },
		"a wrong effect":     func(v verdict) { v.enforcer.casbin.SetEffector(wrongEffector{effector.Deny, 0, nil}) },
		"turned off":         func(v verdict) { v.enforcer.casbin.EnableEnforce(false) },
		"no role": func(v verdict) {
			v.enforcer.casbin.GetModel()["g"]["g"].Policy = nil
			_ = v.enforcer.casbin.BuildRoleLinks()
			v.enforcer.agent = "Other"
		},
	}
	for name, fault := range breakWith {
		p := load(t)
		if d, err := p.Permit(t.Context(), r); !d.Allowed || err != nil {
			t.Fatal(d, err)
		}
		for _, v := range p.enforcers.verdicts {
			v.enforcer.answers.Clear()
			fault(v)
		}
		d, err := p.Permit(t.Context(), r)
		if d.Allowed || err == nil {
			t.Errorf("%s: %v, %v", name, d, err)
		}
		if err != nil && strings.Contains(err.Error(), "goroutine") {
			t.Errorf("%s: a stack trace: %v", name, err)
		}
	}
	p := load(t)
	for _, rule := range p.rules {
		rule.Tool = "other"
	}
	if d, err := p.Permit(t.Context(), r); d.Allowed || err == nil {
		t.Errorf("rows that only the index matches: %v, %v", d, err)
	}
}

func TestInterruptedIsAnError(t *testing.T) {
	p := load(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tool := range []string{"payments.refund"} {
		d, err := p.Permit(ctx, Request{"Analyst", "acme", "alpha", tool, decode(t, `{"currency":"EUR","amount":1}`), nil})
		if d.Allowed || !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v", d, err)
		}
	}
	var none context.Context
	if d, err := p.Permit(none, Request{"Analyst", "acme", "alpha", "payments.refund", decode(t, `{"currency":"EUR","amount":1}`), nil}); d.Allowed || err == nil {
		t.Errorf("no context: %v, %v", d, err)
	}
}

func TestConcurrentUse(t *testing.T) {
	p := load(t)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 300 {
				amount := (g + i) % 200
				args := map[string]any{"currency": "EUR", "amount": json.Number(fmt.Sprint(amount))}
				d, err := p.Permit(t.Context(), Request{"Analyst", "acme", "alpha", "payments.refund", args, nil})
				if err != nil || d.Allowed != (amount <= 100) {
					t.Errorf("%d: %v, %v", amount, d, err)
				}
				tool := fmt.Sprintf("web.t%d", i%7)
				if d, err := p.Permit(t.Context(), Request{"Analyst", "acme", "alpha", tool, nil, nil}); err != nil || !d.Allowed {
					t.Errorf("%s: %v, %v", tool, d, err)
				}
				if reach, err := p.Reach("Intern", "acme", "alpha", "files.delete"); reach != Never || err != nil {
					t.Errorf("reach %v, %v", reach, err)
				}
				if e, err := p.Explain(t.Context(), Request{"Intern", "acme", "alpha", "web.fetch", nil, nil}); err != nil || e.Allowed {
					t.Errorf("explain %v, %v", e, err)
				}
			}
		})
	}
	wg.Wait()
}
