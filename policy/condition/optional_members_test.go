package condition

import (
	"encoding/json"
	"strings"
	"testing"
)

// lintTool has members that are required and members that are not, and members of members.
var lintTool = Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object","required":["n","o"],"properties":{
	"n":{"type":"number","minimum":1,"exclusiveMaximum":10},
	"i":{"type":"integer","minimum":0,"maximum":5},
	"c":{"enum":["EUR","USD",null,5]},
	"k":{"const":"x"},
	"s":{"type":"string"},
	"b":{"type":"boolean"},
	"o":{"type":"object","required":["r"],"properties":{"r":{"enum":["a","b"]},"q":{"type":"string"}}},
	"m":{"type":"object","properties":{"r":{"type":"string"}}}}}`)}

func analyzed(t testing.TB, expression string) *Analysis {
	t.Helper()
	a, err := Analyze(expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return a
}

func TestOptionalMembers(t *testing.T) {
	for expression, want := range map[string]string{
		"args.n > 5":                                "",
		"args.s == 'x'":                             "s",
		"args['s'] == 'x' && args.b":                "b s",
		"has(args.s) && args.s == 'x'":              "",
		"'s' in args && args.s == 'x'":              "",
		"!has(args.s) || args.s == args.k":          "k",
		"args.o.r == 'a'":                           "",
		"args.o.q == 'a'":                           "o.q",
		"has(args.o.q) && args.o.q == 'a'":          "",
		"args.m.r == 'a'":                           "m",
		"has(args.m) && args.m.r == 'a'":            "m.r",
		"has(args.m.r) && args.m.r == 'a'":          "m",
		"args.unknown.x == 'a'":                     "",
		"agent == 'a'":                              "",
		"[1, 2].exists(e, e == args.i) || args.n>1": "i",
	} {
		if got := strings.Join(analyzed(t, expression).OptionalMembers(lintTool), " "); got != want {
			t.Errorf("%s: found %q; expected %q", expression, got, want)
		}
	}
	for expression, want := range map[string][2]bool{"true": {}, "agent == 'a'": {false, true}, "size(args) > 1": {true, false}, "args.a == tool": {true, true}} {
		if a := analyzed(t, expression); a.ReadsArguments != want[0] || a.ReadsCaller != want[1] {
			t.Errorf("%s: found %v and %v", expression, a.ReadsArguments, a.ReadsCaller)
		}
	}
}

func TestAnalyzeRefuses(t *testing.T) {
	if _, err := Analyze("args."); err == nil {
		t.Error("what does not parse is analyzed")
	}
	if got := plainSchema(Tool{InputSchema: json.RawMessage(`{`)}); got != nil {
		t.Error(got)
	}
}
