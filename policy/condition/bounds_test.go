package condition

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestImplies(t *testing.T) {
	for _, c := range []struct {
		a, b        string
		met, failed bool // Implies, FailsWithin
	}{
		{"args.n <= 100", "args.n <= 1000", true, true},
		{"args.n <= 1000", "args.n <= 100", false, false},
		{"args.body.amount <= 100", "args.body.amount <= 1000", true, true},
		{"args.body.amount <= 100", "args.amount <= 1000", false, false},
		{`args.body["amount-due"] < 100.0`, `100.5 >= args.body["amount-due"]`, true, true},
		{"args.body.amount <= 100", "args.body['amount'] <= 1000", false, false}, // written otherwise
		{"args.n < 100", "args.n <= 100", true, true},
		{"args.n <= 100", "args.n < 100", false, false},
		{"args.n > 5", "args.n >= 5", true, true},
		{"args.n >= 6", "args.n <= 5", false, false},
		{"args.n == 5", "args.n <= 5", true, true},
		{"args.n == 5", "args.n < 5", false, false},
		{"args.n in [1, 2.0]", "args.n in [2, 3, 1]", true, true},
		{"args.n in [1, 'x']", "args.n <= 5", false, false},
		{"args.n <= 5 && args.n >= 5", "args.n == 5", false, false}, // only pairs are looked at
		{"args.c == 'EUR'", "args.c in ['EUR', 'USD']", true, true},
		{"args.c in ['EUR']", "args.c == 'EUR'", true, true},
		{"args.c == null", "args.c in [null, true]", true, true},
		{"args.n <= 9007199254740993", "args.n <= 9007199254740995", false, false}, // would be rounded
		{"args.n <= args.m", "args.n <= args.m", true, true},
		{"args.n <= 5 && args.c == 'EUR'", "args.n <= 5", true, true},
		{"args.n <= 5", "args.n <= 5 && args.c == 'EUR'", false, false},
		// Where c is no number that can be held, the first fails and the second is false.
		{"args.c == 'EUR' && args.n <= 5", "args.n <= 5", true, false},
		{"args.c == 'EUR' && args.n <= 5", "args.n <= 5 && args.c == 'EUR'", true, false},
		{"has(args.n) && args.n <= 5", "args.n <= 5", true, true},
		{"args.n <= 5", "has(args.n) && args.n <= 5", true, false}, // n may be absent
		{"args.a.b == 'x'", "has(args.a)", true, false},
		{"has(args.a.b)", "has(args.a)", true, false},
		{"has(args.a)", "has(args.ab)", false, false},
		{"args.l.exists(e, e == 'x') && args.n <= 5", "args.n <= 6 && args.l.exists(e, e == 'x')", true, false},
		{"args.n <= 5 && args.l.exists(e, e == 'x')", "args.n <= 6 && args.l.exists(e,e=='x')", true, true},
		{"args.n <= 5 || args.k == 1", "args.n <= 5 || args.k == 1", true, true},
		{"args.n <= 5", "args.n <= 5 || args.k == 1", false, false},
		{"args.n <= 5", "", true, true},
		{"", "args.n <= 5", false, false},
		{"", "", true, true},
	} {
		a, b := ReadConjunction(c.a), ReadConjunction(c.b)
		if met, failed := a.Implies(b), a.FailsWithin(b); met != c.met || failed != c.failed {
			t.Errorf("%s | %s: found %v and %v", c.a, c.b, met, failed)
		}
	}
}

func TestContradiction(t *testing.T) {
	for expression, want := range map[string]string{
		"args.n > 5 && args.n < 5":                                                         "n",
		"args.n >= 5 && args.n <= 5":                                                       "",
		"args.n > 5 && args.n <= 5":                                                        "n",
		"args.n < 5 && 5 <= args.n":                                                        "n",
		"args.n < 5 && args.n < 4":                                                         "",
		"args.n == 5 && args.n == 5.0":                                                     "",
		"args.n == 5 && args.n > 5":                                                        "n",
		"args.body.c == 'EUR' && args.body.c == 'USD'":                                     "body.c",
		"args.c in ['EUR', 'USD'] && args.c in ['GBP']":                                    "c",
		"args.c in ['EUR', 'USD'] && args.c == 'USD'":                                      "",
		"args.b == true && has(args.b) && args.b == false":                                 "b",
		"args.s == 'b' && args.s > 5":                                                      "s",
		"args.n > 5 && args.m < 5":                                                         "",
		"args.n > 8 && (args.n < 3 || args.n == 5)":                                        "", // only && is looked at
		"!(args.n > 5) && args.n > 5":                                                      "",
		"args.s > 'b' && args.s < 'a'":                                                     "",
		"args.n > 9007199254740993 && args.n < 9007199254740993":                           "",
		"has(args.n) && args.n > 5 && size(args.c) > 1 && 'n' in args && size(args.c) > 2": "",
	} {
		if got := ReadConjunction(expression).Contradiction(); got != want {
			t.Errorf("%s: found %q; expected %q", expression, got, want)
		}
	}
}

// TestImpliesByEvaluation evaluates pairs of random conditions of which one is said to imply the
// other, to fail within it, or never to be met, on arguments of all types.
func TestImpliesByEvaluation(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	members := []string{"args.n", "args.c", "args.o.n", "args.o['n']", "args['n']"}
	element := func() string {
		member := pick(members...)
		switch r.IntN(8) {
		case 0:
			return pick("has(args.n)", "has(args.o)", "has(args.o.n)", "has(args.c)", "'n' in args")
		case 1:
			return member + " == " + pick("1", "2.5", "'x'", "null", "true")
		case 2:
			return member + " in [" + pick("", "1", "1, 'x'", "'x', 'y'", "2.5, 1, null") + "]"
		case 3:
			return pick("size(args.c) <= 1", "args.n == args.c", "(args.n <= 1 || args.c == 'x')", "!(args.n > 1)")
		case 4:
			return pick("1", "2.5", "3") + pick(" < ", " <= ", " == ", " > ", " >= ") + member
		}
		return member + pick(" < ", " <= ", " > ", " >= ") + pick("1", "2.5", "3")
	}
	build := func() string {
		parts := []string{}
		for range 1 + r.IntN(3) {
			parts = append(parts, element())
		}
		return strings.Join(parts, " && ")
	}
	// The other asks for the same, mostly, in a like order.
	edit := func(text string) string {
		parts := strings.Split(text, " && ")
		at := r.IntN(len(parts))
		switch r.IntN(4) {
		case 0:
			parts = append(parts, element())
		case 1:
			parts = append(parts[:at], parts[at+1:]...)
		case 2:
			parts[0], parts[at] = parts[at], parts[0]
		default:
			parts[at] = element()
		}
		if len(parts) == 0 {
			return "true"
		}
		return strings.Join(parts, " && ")
	}
	compiler, err := NewCompiler(nil)
	if err != nil {
		t.Fatal(err)
	}
	pairs := 3_000
	if testing.Short() {
		pairs = 1_000
	}
	values := []any{
		nil, true, "x", "y", "", []any{}, []any{"x"}, map[string]any{}, map[string]any{"n": json.Number("1")}, json.Number("12345678901234567890123"),
		json.Number("0"), json.Number("1"), json.Number("1.0"), json.Number("2"), json.Number("2.5"), json.Number("2.75"), json.Number("3"), json.Number("4"),
	}
	implied, within, never := 0, 0, 0
	for range pairs {
		a := build()
		b := edit(a)
		met, failed := ReadConjunction(a).Implies(ReadConjunction(b)), ReadConjunction(a).FailsWithin(ReadConjunction(b))
		contradicts := ReadConjunction(a).Contradiction() != ""
		if !met && !failed && !contradicts {
			continue
		}
		x, issue := compiler.Compile(a, "*")
		y, other := compiler.Compile(b, "*")
		if issue != nil || other != nil {
			continue
		}
		implied, within, never = implied+btoi(met), within+btoi(failed), never+btoi(contradicts)
		for range 60 {
			args := map[string]any{}
			for _, name := range []string{"n", "c", "o"} {
				if r.IntN(4) > 0 {
					args[name] = values[r.IntN(len(values))]
				}
			}
			if r.IntN(2) == 0 {
				args["o"] = map[string]any{"n": values[r.IntN(len(values))]}
			}
			xMet, xErr := x.Evaluate(t.Context(), &Variables{Arguments: args})
			yMet, yErr := y.Evaluate(t.Context(), &Variables{Arguments: args})
			if contradicts && xMet || met && xMet && !yMet || failed && (xMet || xErr != nil) && !yMet && yErr == nil {
				t.Fatalf("%s | %s (%v, %v): %s gives %v %v and %v %v", a, b, met, failed, fmt.Sprint(args), xMet, xErr, yMet, yErr)
			}
		}
	}
	t.Logf("%d implied, %d within, %d never met", implied, within, never)
	if implied < pairs/20 || within < pairs/50 || never < pairs/200 {
		t.Errorf("only %d were implied, %d within, and %d never met", implied, within, never)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
