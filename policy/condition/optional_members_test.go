package condition

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// lintTool has a member of each kind that contradictions are found for.
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

func TestContradiction(t *testing.T) {
	for expression, want := range map[string]string{
		"args.n > 5":                                             "",
		"args.n >= 10":                                           "n",
		"args.n < 1":                                             "n",
		"args.n <= 1":                                            "",
		"10 <= args.n":                                           "n",
		"args.n > 5 && args.n < 5":                               "n",
		"args.n >= 5 && args.n <= 5":                             "",
		"args.n > 5 && args.n <= 5":                              "n",
		"args.n == 5 && args.n == 5.0":                           "",
		"args.n == 5 && args.n > 5":                              "n",
		"args.c == 'GBP'":                                        "", // an enum with null is passed over
		"args.c == 'EUR' && args.c == 'USD'":                     "c",
		"args.c in ['EUR', 'USD'] && args.c in ['GBP']":          "c",
		"args.c in ['EUR', 'USD'] && args.c == 'USD'":            "",
		"args.c in []":                                           "c",
		"args.k == 'y'":                                          "k",
		"args.k == 'x'":                                          "",
		"args['k'] == 'y'":                                       "k",
		"args.o.r == 'c'":                                        "o.r",
		"args.i == 6":                                            "i",
		"args.i == 'a'":                                          "", // types are the schema checker's affair
		"args.b == true && args.b == false":                      "b",
		"args.n >= 10 || args.n < 1":                             "n",
		"args.n >= 10 || args.n < 2":                             "",
		"args.n > 8 && (args.n < 3 || args.n == 5)":              "n",
		"args.n > 8 && (args.n < 3 || args.n == 9)":              "",
		"!(args.n > 5) && args.n > 5":                            "", // what is denied is not looked at
		"args.s > 'b' && args.s < 'a'":                           "",
		"args.s == 'b' && args.s > 5":                            "s",
		"args.n > 9007199254740993 && args.n < 9007199254740993": "",
		"agent == 'a' && agent == 'b'":                           "",
		"args.n == args.i":                                       "",
	} {
		if got := analyzed(t, expression).Contradiction(lintTool); got != want {
			t.Errorf("%s: found %q; expected %q", expression, got, want)
		}
	}
	// With several versions, every one must refuse it; without a schema, the condition alone.
	other := Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}}}`)}
	if got := analyzed(t, "args.n >= 10").Contradiction(lintTool, other); got != "" {
		t.Errorf("found %q in one of two versions", got)
	}
	if got := analyzed(t, "args.n > 5 && args.n < 5").Contradiction(); got != "n" {
		t.Errorf("found %q without a schema", got)
	}
}

// TestContradictionsByEvaluation evaluates random conditions of which a contradiction is said for
// every combination of values that the schema lets through: none is met.
func TestContradictionsByEvaluation(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	var build func(depth int) string
	build = func(depth int) string {
		if depth > 0 && r.IntN(3) > 0 {
			return "(" + build(depth-1) + pick(" && ", " && ", " || ") + build(depth-1) + ")"
		}
		switch r.IntN(4) {
		case 0:
			return "args.c " + pick("== ", "!= ") + pick("'EUR'", "'USD'", "'x'", "5")
		case 1:
			return "args.k in [" + pick("'x'", "'y', 'z'", "") + "]"
		case 2:
			return pick("1", "4.5", "9", "10", "12") + pick(" < ", " <= ", " == ", " > ", " >= ") + "args.n"
		}
		return "args.n" + pick(" < ", " <= ", " == ", " > ", " >= ") + pick("1", "4.5", "9", "10", "12")
	}
	compiler, err := NewCompiler(nil)
	if err != nil {
		t.Fatal(err)
	}
	expressions, least, said := 4000, 400, 0
	if testing.Short() {
		expressions, least = 1000, 100
	}
	for range expressions {
		expression := build(3)
		if analyzed(t, expression).Contradiction(lintTool) == "" {
			continue
		}
		said++
		compiled, issue := compiler.Compile(expression, "*")
		if issue != nil {
			continue
		}
		for _, n := range []string{"1", "1.0", "2", "4.5", "4.50000001", "8.999", "9", "9.99999", ""} {
			for _, c := range []any{"EUR", "USD", nil, json.Number("5"), json.Number("5.0"), false} {
				for _, k := range []any{"x", false} {
					args := map[string]any{}
					for name, v := range map[string]any{"n": json.Number(n), "c": c, "k": k} {
						if v != false && v != json.Number("") { // absent
							args[name] = v
						}
					}
					if met, err := compiled.Evaluate(t.Context(), &Variables{Arguments: args}); met && err == nil {
						t.Fatalf("%s is met by %s", expression, fmt.Sprint(args))
					}
				}
			}
		}
	}
	if said < least {
		t.Errorf("only %d contradictions", said)
	}
	t.Log(said)
}

func TestAnalyzeRefuses(t *testing.T) {
	if _, err := Analyze("args."); err == nil {
		t.Error("what does not parse is analyzed")
	}
	if got := plainSchema(Tool{InputSchema: json.RawMessage(`{`)}); got != nil {
		t.Error(got)
	}
}
