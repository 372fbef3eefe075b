package policy

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestMatchingRows(t *testing.T) {
	p := mustLoad(t, `p, role:r, w/*, x.*, , allow
p, a, *, x.y, "args.n > 5", deny
p, a, w/q, x.y, , allow
p, b, *, *, , allow
g, a, role:r, w/p

`)
	met := func(n string) []bool {
		var all []bool
		for _, m := range p.Matches("a", "w", "p", "x.y") {
			applies, err := m.Evaluate(t.Context(), Request{"a", "w", "p", "x.y", map[string]any{"n": json.Number(n)}})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, applies)
		}
		return all
	}
	if small, big := met("1"), met("9"); !slices.Equal(small, []bool{true, false}) || !slices.Equal(big, []bool{true, true}) {
		t.Errorf("found %v and %v", small, big)
	}
	for _, r := range []Request{{"a*", "w", "p", "x.y", nil}, {"c", "w", "p", "x.y", nil}, {"", "w", "p", "x.y", nil}} {
		if found := p.Matches(r.Agent, r.Workspace, r.Project, r.Tool); len(found) > 0 {
			t.Errorf("%v matches %v", r, found)
		}
	}
	if _, err := p.Matches("a", "w", "p", "x.y")[1].Evaluate(t.Context(), Request{}); err == nil {
		t.Error("an absent member does not fail")
	}
}

func TestParseRow(t *testing.T) {
	p := mustLoad(t, "p, a, w/*, x.*, \"args.n > 5 || agent == \"\"b\"\"\", ask:one\n")
	row, err := ParseRow(`p,a , w/*, x.*, "args.n > 5 || agent == ""b""", ask:one`)
	if err != nil || row != p.Rows()[0].Content() {
		t.Errorf("found %+v, %v", row, err)
	}
	for _, written := range []string{"", "p", "g, a, role:r, w/*", "p, a, w, x, , allow", "p, a, *, *, , allow, x", "p, a, *, *, , \"allow", "p, a, *, *, , allow\n", "p, a, *, *, , \x00", "# p", "p, a, *, *, , maybe"} {
		if row, err := ParseRow(written); err == nil {
			t.Errorf("%q is %+v", written, row)
		}
	}
}
