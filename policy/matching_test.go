package policy

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestMatching(t *testing.T) {
	p := mustLoad(t, `p, role:r, acme/*, web.*, args.n == 1, allow
p, a, *, *, , deny
p, a, acme/alpha, web.search, , ask:x
p, b, acme/alpha, web.search, , allow
g, a, role:r, acme/alpha`)
	lines := func(agent, workspace, project, tool string) []int {
		var lines []int
		for _, r := range p.Matching(agent, workspace, project, tool) {
			lines = append(lines, r.Line)
		}
		return lines
	}
	for _, c := range []struct {
		agent, workspace, project, tool string
		want                            []int
	}{
		{"a", "acme", "alpha", "web.search", []int{1, 2, 3}},
		{"a", "acme", "alpha", "web.fetch", []int{1, 2}},
		{"a", "acme", "beta", "web.search", []int{2}},
		{"b", "acme", "alpha", "web.search", []int{4}},
		{"role:r", "acme", "alpha", "web.search", nil},
		{"a", "acme", "*", "web.search", nil},
		{"", "acme", "alpha", "web.search", nil},
	} {
		if got := lines(c.agent, c.workspace, c.project, c.tool); !slices.Equal(got, c.want) {
			t.Errorf("%v: found the lines %v", c, got)
		}
	}
	if got, want := p.Grants(), []Grant{{5, "a", "role:r", "acme/alpha"}}; !slices.Equal(got, want) {
		t.Errorf("the grants are %v", got)
	}
	var none *Policy
	if none.Grants() != nil || none.Matching("a", "acme", "alpha", "web.search") != nil {
		t.Error("no policy has rows")
	}
}

func TestMet(t *testing.T) {
	p := mustLoad(t, "p, a, acme/*, web.*, args.n == 1, allow\n\np, a, acme/*, web.*, , allow")
	for _, c := range []struct {
		line   int
		args   map[string]any
		met    bool
		failed bool
	}{
		{1, map[string]any{"n": json.Number("1")}, true, false},
		{1, map[string]any{"n": json.Number("2")}, false, false},
		{1, nil, false, true},
		{3, nil, true, false},
		{2, nil, false, true}, // no row
		{4, nil, false, true},
	} {
		met, err := p.Met(t.Context(), c.line, Request{Agent: "a", Arguments: c.args})
		if met != c.met || (err != nil) != c.failed {
			t.Errorf("%v: found %v, %v", c, met, err)
		}
	}
}
