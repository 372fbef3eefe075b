package policy

import "testing"

func TestRowsSpeakForThemselves(t *testing.T) {
	r := Row{File: "p.csv", Line: 3, Subject: "a", Domain: "*", Tool: "t.*", Effect: Deny}
	if got := r.String(); got != "p.csv:3: deny a in *, tool t.*" {
		t.Error(got)
	}
	r.Effect, r.Rule = Ask, "refunds"
	if got := r.String(); got != "p.csv:3: ask:refunds a in *, tool t.*" {
		t.Error(got)
	}
	for reach, want := range map[Reach]string{Never: "never", OnConditions: "on conditions", Asks: "asks", Always: "always", 9: "never"} {
		if reach.String() != want {
			t.Errorf("%d: %s", reach, reach)
		}
	}
	if Reach(0) != Never {
		t.Error("the zero value of Reach is not the strictest")
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

func TestMayMatch(t *testing.T) {
	row := Row{Subject: "a", Domain: "w/*", Tool: "x.*"}
	role := Row{Subject: "role:r", Domain: "*", Tool: "*"}
	for r, want := range map[*Request][2]bool{
		{Agent: "a", Workspace: "w", Project: "p", Tool: "x.y"}: {true, true},
		{Agent: "b", Workspace: "w", Project: "p", Tool: "x.y"}: {false, true},
		{Agent: "a", Workspace: "v", Project: "p", Tool: "x.y"}: {false, true},
		{Agent: "a", Workspace: "w", Project: "p", Tool: "x"}:   {false, true},
	} {
		if got := [2]bool{row.MayMatch(*r), role.MayMatch(*r)}; got != want {
			t.Errorf("%+v: found %v", *r, got)
		}
	}
}
