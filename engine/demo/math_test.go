package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

func evaluated(t testing.TB, expression string) (string, *refusal.Error) {
	t.Helper()
	raw, err := json.Marshal(expression)
	if err != nil {
		t.Fatal(err)
	}
	value, refused := evaluate(t.Context(), tool.Call{}, arguments{"expression": raw})
	if refused != nil {
		return "", refused
	}
	body, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("%q gives what is not JSON: %v", expression, err)
	}
	return string(body), nil
}

func TestExpressions(t *testing.T) {
	raw, err := os.ReadFile("testdata/expressions.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for line := range bytes.Lines(raw) {
		expression, want, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), " => ")
		if !ok || expression[0] == '#' {
			continue
		}
		cases++
		got, refused := evaluated(t, expression)
		switch {
		case refused == nil && got != want:
			t.Errorf("%s: got %s, want %s", expression, got, want)
		case refused != nil && (refused.Code != refusal.ToolFailed || !strings.Contains(refused.Message, want)):
			t.Errorf("%s: got %v, want %s", expression, refused, want)
		}
	}
	if cases < 40 {
		t.Errorf("only %d cases", cases)
	}
	for name, expression := range map[string]string{
		"nested":        strings.Repeat("(", 65) + "1" + strings.Repeat(")", 65),
		"negated":       strings.Repeat("-", 65) + "1",
		"long":          strings.Repeat("1", 4097),
		"long, flat":    "1" + strings.Repeat("+1", 2048),
		"large":         strings.Repeat("9", 200),
		"growing":       "2" + strings.Repeat("*2222222", 100),
		"growing below": "1" + strings.Repeat("/2222222", 100),
		"empty":         "",
		"spaces":        " \t ",
		"line":          "1\n+1",
	} {
		if got, refused := evaluated(t, expression); refused == nil || refused.Code != refusal.ToolFailed {
			t.Errorf("%s: got %s %v", name, got, refused)
		}
	}
	if got, refused := evaluated(t, strings.Repeat("(", 63)+"1"+strings.Repeat(")", 63)); refused != nil || got != `{"value":1}` {
		t.Errorf("nested within bounds: %s %v", got, refused)
	}
	if got, refused := evaluated(t, "1"+strings.Repeat("+1", 2000)); refused != nil || got != `{"value":2001}` {
		t.Errorf("long but flat: %s %v", got, refused)
	}
}

// tree draws an expression and its value; nil where it divides by zero.
func tree(t *rapid.T, depth int) (string, *big.Rat) {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		s := fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "number"))
		if rapid.Bool().Draw(t, "decimal") {
			s += fmt.Sprintf(".%02d", rapid.IntRange(0, 99).Draw(t, "decimals"))
		}
		v, _ := new(big.Rat).SetString(s)
		return s, v
	}
	a, x := tree(t, depth-1)
	if rapid.IntRange(0, 4).Draw(t, "negated") == 0 {
		if x == nil {
			return "-(" + a + ")", nil
		}
		return "-(" + a + ")", new(big.Rat).Neg(x)
	}
	b, y := tree(t, depth-1)
	op := rapid.SampledFrom([]string{"+", "-", "*", "/"}).Draw(t, "op")
	space := rapid.SampledFrom([]string{"", " ", "\t"}).Draw(t, "space")
	s := "(" + a + ")" + space + op + space + "(" + b + ")"
	if x == nil || y == nil {
		return s, nil
	}
	v := new(big.Rat)
	switch op {
	case "+":
		v.Add(x, y)
	case "-":
		v.Sub(x, y)
	case "*":
		v.Mul(x, y)
	default:
		if y.Sign() == 0 {
			return s, nil
		}
		v.Quo(x, y)
	}
	return s, v
}

func TestEvaluateAgreesWithFractions(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		expression, want := tree(r, 4)
		got, refused := evaluated(t, expression)
		if want == nil {
			if refused == nil {
				r.Fatalf("%s divides by zero and gave %s", expression, got)
			}
			return
		}
		if refused != nil {
			r.Fatalf("%s: %v", expression, refused)
		}
		var result struct {
			Value    json.Number
			Fraction string
		}
		if err := json.Unmarshal([]byte(got), &result); err != nil {
			r.Fatal(err)
		}
		exact := result.Fraction
		if exact == "" {
			exact = result.Value.String()
		}
		if v, ok := new(big.Rat).SetString(exact); !ok || v.Cmp(want) != 0 {
			r.Fatalf("%s: got %s, want %s", expression, got, want.RatString())
		}
	})
}

func FuzzEvaluate(f *testing.F) {
	for _, s := range []string{"1", "(1+2)*-3/4.5", "1/3", "((((", "9/0", "--------1", "1 2", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		got, refused := evaluated(t, expression)
		if refused == nil && (!json.Valid([]byte(got)) || len(got) > 1024) {
			t.Errorf("%q gave %s", expression, got)
		}
		if refused != nil && refused.Code != refusal.ToolFailed {
			t.Errorf("%q: %v", expression, refused)
		}
	})
}
