package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/detector"
)

// doubling is a schema of which 2^n branches apply to one value.
func doubling(n int) string {
	s := `{"type":"string"}`
	for range n {
		s = `{"anyOf":[` + s + `,` + s + `]}`
	}
	return `{"type":"object","properties":{"a":` + s + `}}`
}

func TestCostlySchemas(t *testing.T) {
	referring := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
		}
		return fmt.Sprintf(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{%s"d%d":{"type":"string"}}}`, b.String(), n)
	}
	wide := func(n int) string {
		return `{"type":"object","properties":{"a":{"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{"type":"string"},`, n), ",") + `]}}}`
	}
	patterns := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"^a%d$":{}`, i)
		}
		return `{"type":"object","patternProperties":{` + b.String()[1:] + `}}`
	}
	for why, c := range map[string]struct {
		schema string
		costly bool
	}{
		"200 patterns of anything":           {patterns(200), false},
		"300 patterns of anything":           {patterns(300), true},
		"2^14 branches":                      {doubling(10), true},
		"2^9 branches below not":             {`{"type":"object","properties":{"a":{"not":` + doubling(9) + `}}}`, true},
		"2^6 branches":                       {doubling(6), false},
		"2^40 branches by reference":         {referring(40), true},
		"2^5 branches by reference":          {referring(5), false},
		"200 branches":                       {wide(200), false},
		"300 branches":                       {wide(300), true},
		"items and contains recurse":         {`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"array","items":{"$ref":"#/$defs/n"},"contains":{"$ref":"#/$defs/n"}}}}`, true},
		"a tree":                             {`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"object","properties":{"left":{"$ref":"#/$defs/n"},"right":{"$ref":"#/$defs/n"}}}}}`, false},
		"items recurse":                      {`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"array","items":{"$ref":"#/$defs/n"}}}}`, false},
		"an expression with inline operands": {`{"type":"object","properties":{"a":{"$ref":"#/$defs/e"}},"$defs":{"e":{"type":"object","properties":{"and":{"type":"array","items":{"$ref":"#/$defs/e"}},"or":{"type":"array","items":{"$ref":"#/$defs/e"}}}}}}`, false},
		"a member evaluated twice recurses":  {`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"object","properties":{"c":{"$ref":"#/$defs/n"}},"patternProperties":{"^c":{"$ref":"#/$defs/n"}}}}}`, true},
	} {
		t.Run(why, func(t *testing.T) {
			_, err := compile(c.schema, Options{})
			if (err != nil) != c.costly {
				t.Errorf("found %v", err)
			}
			if c.costly && !strings.Contains(err.Error(), "at most 256 schemas apply to any one value") {
				t.Errorf("the error does not say the rule: %v", err)
			}
		})
	}
}

// TestStepsBound shows that a value too large for its schema is refused, and
// that 130,000 numbers can be evaluated by both evaluators.
func TestStepsBound(t *testing.T) {
	detector.OneGoroutine(t)
	numbers := make([]any, 520_000)
	for i := range numbers {
		numbers[i] = json.Number("1")
	}
	plain := compiled(t, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"number"}}}}`)
	if found := plain.Evaluate("web.search", map[string]any{"a": numbers[:130_000]}); found != nil {
		t.Errorf("found %v", found)
	}
	if found := plain.Evaluate("web.search", map[string]any{"a": numbers}); len(found) != 1 || found[0].Cause != errTooManySteps {
		t.Errorf("found %v", found)
	}
	branched := compiled(t, `{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"number"}]}}}}`)
	found := branched.Evaluate("web.search", map[string]any{"a": numbers})
	if len(found) != 1 || found[0].Cause != errTooManySteps || found[0].Code != "invalid_value" || len(found[0].Path) != 0 {
		t.Errorf("found %v", found)
	}
	long := strings.Repeat("a", 1<<20)
	pattern := compiled(t, `{"type":"object","properties":{"a":{"type":"string","pattern":"^[a-z_]+$"}}}`)
	if found := pattern.Evaluate("web.search", map[string]any{"a": long}); found != nil {
		t.Errorf("found %v", found)
	}
	steep := compiled(t, `{"type":"object","properties":{"a":{"type":"string","pattern":"^(([a-z]{0,30}x?){0,30})*$"}}}`)
	if found := steep.Evaluate("web.search", map[string]any{"a": long}); len(found) != 1 || found[0].Cause != errTooManySteps {
		t.Errorf("found %v", found)
	}
}

// TestManyFaults keeps the answer to a hostile call small, exact and in order.
func TestManyFaults(t *testing.T) {
	detector.OneGoroutine(t)
	e := compiled(t, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`)
	args := map[string]any{}
	items := make([]any, 20_000)
	for i := range items {
		items[i] = json.Number("1")
	}
	args["a"] = items
	for i := range 20_000 {
		args[fmt.Sprintf("x%05d", i)] = true
	}
	found := e.Evaluate("web.search", args)
	checkViolations(t, args, found)
	if len(found) != maxViolations || spelled(found[0])[:20] != "wrong_type /a/0 valu" || spelled(found[1])[:17] != "wrong_type /a/1 v" || spelled(found[2])[:18] != "wrong_type /a/10 v" {
		t.Errorf("%d found, first %v", len(found), found[:3])
	}
	delete(args, "a")
	found = e.Evaluate("web.search", args)
	if len(found) != maxViolations || found[99].Path[0] != "x00099" {
		t.Errorf("%d found, last %v", len(found), found[len(found)-1])
	}
}

// TestMalformedValues gives what no strict reader hands on.
func TestMalformedValues(t *testing.T) {
	e := compiled(t, `{"type":"object","properties":{"a":true}}`)
	var deep any = "x"
	for range maxValueDepth + 10 {
		deep = []any{deep}
	}
	for why, v := range map[string]any{
		"a float": 1.5, "an int": 1, "a number of astronomical size": json.Number("1e1000000"), "no number": json.Number("x"),
		"an empty number": json.Number(""), "a long number": json.Number(strings.Repeat("1", 300)), "a byte string": []byte("x"), "too deep": deep,
	} {
		if found := e.decide(ofArguments("web.search"), map[string]any{"a": v}, false); len(found) != 1 || found[0].Cause == nil {
			t.Errorf("%s: found %v", why, found)
		}
	}
}

// TestLibraryIsBounded gives what the library would ponder for minutes.
func TestLibraryIsBounded(t *testing.T) {
	detector.OneGoroutine(t)
	branches := strings.Repeat(`{"items":{"type":"string"}},`, 100)
	e := compiled(t, `{"type":"object","properties":{"a":{"type":"array","anyOf":[`+branches+`{"items":{"type":"number"}}]}}}`)
	numbers := func(n int) map[string]any {
		list := make([]any, n)
		for i := range list {
			list[i] = json.Number("1")
		}
		return map[string]any{"a": list}
	}
	if found := e.Evaluate("web.search", numbers(1_000)); found != nil {
		t.Errorf("found %v", found)
	}
	if found := e.Evaluate("web.search", numbers(400_000)); len(found) != 1 || found[0].Cause != errTooManySteps {
		t.Errorf("found %v", found)
	}
	named := compiled(t, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","patternProperties":{"^[a-z]{1,60}$":{"type":"string"}}}}}}`)
	if found := named.Evaluate("web.search", manyOf(300_000, map[string]any{})); len(found) != 1 || found[0].Cause != errTooManySteps {
		t.Errorf("found %v", found)
	}
}
