package condition

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// evaluate evaluates one condition on a pattern of tools, where args is untyped.
func evaluate(t testing.TB, ctx context.Context, expression, arguments string) (bool, error) {
	t.Helper()
	c, err := NewCompiler(nil)
	if err != nil {
		t.Fatal(err)
	}
	condition, issue := c.Compile(expression, "web.*")
	if issue != nil {
		t.Fatalf("%s: %s", expression, issue.Found)
	}
	return condition.Evaluate(ctx, &Variables{Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: "web.search", Arguments: decodeArguments(t, arguments)})
}

func TestConditions(t *testing.T) {
	for _, c := range []struct {
		expression, arguments string
		want                  bool
		failed                error
	}{
		{"args.amount <= 100", `{"amount":100}`, true, nil},
		{"args.amount <= 100", `{"amount":100.0}`, true, nil},
		{"args.amount <= 100", `{"amount":1e2}`, true, nil},
		{"args.amount <= 100", `{"amount":100.01}`, false, nil},
		{"args.amount <= 100", `{"amount":-5}`, true, nil},
		{"args.amount <= 100.5", `{"amount":100}`, true, nil},
		{"args.amount <= 100.5", `{"amount":101}`, false, nil},
		{"args.amount == 5", `{"amount":5.0}`, true, nil},
		{"args.amount == 5.0", `{"amount":5}`, true, nil},
		{"args.amount == 5.0", `{"amount":5.00}`, true, nil},
		{"args.amount == 100", `{"amount":1e2}`, true, nil},
		{"100 == args.amount", `{"amount":10000e-2}`, true, nil},
		{"args.amount != 100", `{"amount":1E+2}`, false, nil},
		{"args.amount == 0", `{"amount":-0.0e5}`, true, nil},
		{"args.amount == 0.1", `{"amount":0.1000000000000000000000}`, true, nil},
		{"args.amount in [1, 2.5, 100]", `{"amount":1e2}`, true, nil},
		{"args.amount in [1, 2.5, 100]", `{"amount":2.50}`, true, nil},
		{"args.amount in [1.0, 2.0]", `{"amount":2}`, true, nil},
		{"args.amount in [1, 2]", `{"amount":2.0}`, true, nil},
		{"args.amount in [1, 2]", `{"amount":3}`, false, nil},
		{"5 in args.list", `{"list":[1,5.0]}`, true, nil},
		{"5.0 in args.list", `{"list":[1,5]}`, true, nil},
		{"args.amount + 1 == 6", `{"amount":5.0}`, true, nil},
		{"double(args.amount) * 1.5 == 7.5", `{"amount":5}`, true, nil},
		{"args.amount * 1.5 == 7.5", `{"amount":5}`, false, errMismatch},
		{"args.a == args.b", `{"a":5,"b":5.0}`, true, nil},
		{"args.a == args.b", `{"a":[5,{"x":1e0}],"b":[5.0,{"x":1}]}`, true, nil},
		{"[1, 2] == args.list", `{"list":[1.0,2e0]}`, true, nil},
		{"{'a': 1} == args.o", `{"o":{"a":1.0}}`, true, nil},

		{"args.n <= 9223372036854775807", `{"n":9223372036854775807}`, true, nil},
		{"args.n == 9007199254740993", `{"n":9007199254740993}`, true, nil},
		{"args.n == 9007199254740992", `{"n":9007199254740993}`, false, nil},
		{"args.n == -9223372036854775808", `{"n":-9223372036854775808}`, true, nil},
		{"args.n == 9000000000000000000", `{"n":9e18}`, true, nil},
		{"args.n > 0", `{"n":9223372036854775808}`, false, errUnrepresentable},
		{"args.n > 0", `{"n":12345678901234567890}`, false, errUnrepresentable},
		{"args.n > 0", `{"n":100000000000000000000}`, true, nil},
		{"args.n == 1e20", `{"n":1e20}`, true, nil},
		{"args.n > 0", `{"n":1.234567890123456}`, false, errUnrepresentable},
		{"args.n > 0", `{"n":1.23456789012345}`, true, nil},
		{"args.n > 0", `{"n":100.00000000000000000001}`, false, errUnrepresentable},
		{"args.n > 0", `{"n":1e400}`, false, errUnrepresentable},
		{"args.n > 0", `{"n":1e-400}`, false, errUnrepresentable},
		{"args.n > 0", `{"n":4.9e-324}`, false, errUnrepresentable},
		{"args.n > 0", `{"n":1e308}`, true, nil},

		// Only a number that is read fails, and no operator hides that it was.
		{"has(args.n)", `{"n":12345678901234567890}`, true, nil},
		{"'n' in args", `{"n":12345678901234567890}`, true, nil},
		{"size(args.list) == 1", `{"list":[12345678901234567890]}`, true, nil},
		{"size(args) == 1", `{"n":12345678901234567890}`, true, nil},
		{"args.ok || args.n > 0", `{"ok":true,"n":12345678901234567890}`, true, nil},
		{"args.n > 0 || args.ok", `{"ok":true,"n":12345678901234567890}`, false, errUnrepresentable},
		{"!(args.n > 0 && args.no)", `{"no":false,"n":12345678901234567890}`, false, errUnrepresentable},
		{"7 in args.list", `{"list":[12345678901234567890,1]}`, false, errUnrepresentable},
		{"!(7 in args.list)", `{"list":[12345678901234567890,1]}`, false, errUnrepresentable},
		{"args.list != [1, 2]", `{"list":[12345678901234567890,2]}`, false, errUnrepresentable},
		{"[1, 2] != args.list", `{"list":[12345678901234567890,2]}`, false, errUnrepresentable},
		{"args.o != {'a': 1}", `{"o":{"a":12345678901234567890}}`, false, errUnrepresentable},
		{"{'a': 1} != args.o", `{"o":{"a":12345678901234567890}}`, false, errUnrepresentable},
		{"args.list.exists(x, has(x.n))", `{"list":[{"n":12345678901234567890}]}`, true, nil},
		{"has(args.o.n)", `{"o":{"n":12345678901234567890}}`, true, nil},
		{"has(args.o.n.x)", `{"o":{"n":12345678901234567890}}`, false, errUnrepresentable},
		{"args.list.exists(x, x == 1)", `{"list":[1,12345678901234567890]}`, true, nil},
		{"args.list.exists(x, x == 1)", `{"list":[12345678901234567890,1]}`, false, errUnrepresentable},
		{"args.list[1] == 1", `{"list":[12345678901234567890,1]}`, true, nil},
		{"args.list[0] == 1", `{"list":[12345678901234567890,1]}`, false, errUnrepresentable},
		{"args.list + [1] == [1, 1]", `{"list":[1]}`, true, nil},
		{"size(args.list + args.list) == 4", `{"list":[1,2]}`, true, nil},
		{"size([1] + args.list) == 3", `{"list":[1,2]}`, true, nil},
		{"args.list.map(x, x * 2) == [2, 4]", `{"list":[1,2]}`, true, nil},
		{"args.list.filter(x, x > 1) == [2]", `{"list":[1,2]}`, true, nil},

		{"args.missing == 1", `{}`, false, errAbsent},
		{"!(args.missing == 1)", `{}`, false, errAbsent},
		{"has(args.missing) && args.missing == 1", `{}`, false, nil},
		{"!has(args.missing) || args.missing == 1", `{}`, true, nil},
		{"has(args.a.b)", `{"a":{"b":null}}`, true, nil},
		{"has(args.a.b)", `{"a":{}}`, false, nil},
		{"has(args.a.b)", `{}`, false, errAbsent},
		{"args['x-y'] == 'z'", `{"x-y":"z"}`, true, nil},
		{"args.`x-y` == 'z'", `{"x-y":"z"}`, true, nil},
		{"args[args.key] == 'z'", `{"key":"k","k":"z"}`, true, nil},
		{"args[args.key] == 'z'", `{"key":"secret"}`, false, errAbsent},
		{"args[args.n] == 'z'", `{"n":5,"5":"z"}`, false, errMismatch},
		{"args.list[5] == 1", `{"list":[1]}`, false, errAbsent},
		{"args.list['a'] == 1", `{"list":[1]}`, false, errEvaluation},
		{"args.a == null", `{"a":null}`, true, nil},
		{"args.a == 'x'", `{"a":null}`, false, nil},
		{"args.a == '1'", `{"a":1}`, false, nil},
		{"args.a < 'b'", `{"a":1}`, false, errMismatch},
		{"args.a", `{"a":true}`, true, nil},
		{"args.a", `{"a":"true"}`, false, errNotBool},
		{"args.a", `{"a":{}}`, false, errNotBool},
		{"args.a / args.b > 1", `{"a":1,"b":0}`, false, errArithmetic},
		{"args.a + 1 > 1", `{"a":9223372036854775807}`, false, errArithmetic},
		{"timestamp(args.t) > timestamp('2020-01-01T00:00:00Z')", `{"t":"secret"}`, false, errEvaluation},
		{"int(args.t) > 0", `{"t":"secret"}`, false, errMismatch},
		{"args.q.matches('^[a-z]+$')", `{"q":"abc"}`, true, nil},
		{"args.q.matches(args.p)", `{"q":"abc","p":"(?=x)"}`, false, errEvaluation},
		{"type(args.o) == map && type(args.l) == list", `{"o":{},"l":[]}`, true, nil},
		{"args.o.all(k, k != 'b')", `{"o":{"a":1,"c":2}}`, true, nil},
		{"args.o.map(k, k) == ['a', 'b', 'c']", `{"o":{"c":1,"a":1,"b":1}}`, true, nil},
		{"agent == 'Analyst' && workspace == 'acme' && project == 'alpha' && tool == 'web.search'", `{}`, true, nil},
		{"args.args == 1", `{"args":1}`, true, nil},
		{"args.list.exists(args, args == 1)", `{"list":[1]}`, true, nil},
	} {
		got, err := evaluate(t, t.Context(), c.expression, c.arguments)
		if got != c.want || !errors.Is(err, c.failed) || (err == nil) != (c.failed == nil) {
			t.Errorf("%s on %s: %v, %v; want %v, %v", c.expression, c.arguments, got, err, c.want, c.failed)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error quotes the call: %v", c.expression, err)
		}
	}
}

// Conditions that load against the schema of the tool.
func TestConditionsThatFitTheSchema(t *testing.T) {
	schema, err := os.ReadFile(filepath.Join("testdata", "refund.json"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCompiler([]Tool{{Name: "payments.refund", InputSchema: schema}})
	if err != nil {
		t.Fatal(err)
	}
	for _, expression := range []string{
		"args.amount <= 100", "args.amount == 100", "args.amount == 100.5", "args.count == 5.0", "args.count < 5.5",
		"args.amount in [1, 2.5]", "args.amount > args.count", "args.amount * 2 > 5", "double(args.amount) * 1.19 > 5.0",
		"args.currency == 'EUR'", "args['currency'] == 'EUR'", "has(args.currency)", "'currency' in args", "args.`user-id` == 'x'", "args['user-id'] == 'x'",
		"args.reason == null", "args.reason == 'x'", "args.urgent", "!args.urgent", "args.tag.startsWith('x')", "size(args.tag) < 5",
		"args.tree.left.left.leaf", "args.tree == {'leaf': true}", "args.labels.anything == 'x'", "args.labels['x y'] == 'z'", "'x' in args.labels", "args.labels.all(k, k != 'x')",
		"args.extra.known == 'x'", "args.extra.unknown == 5", "args.either.a == 'x'", "args.either.b == 'x'", "5 in args.lines", "args.lines.all(l, l > 0)", "args.lines[0] == 1", "size(args.lines) == 2",
		"args.items.exists(i, i.name == 'x' && i.price <= 5)", "args.items.exists(i, i['name'] == 'x')", "args.items.exists(i, i == {'name': 'x'})", "args.items[0].name == 'x'", "args.items[0] == {}",
		"size(args) == 2", "args == {}", "args.all(k, k != 'x')", "args[agent] == 'x'", "(args.urgent ? args.currency : args.tag) == 'x'",
		"args.items.all(x, args.items.all(y, x.name == y.name))", "args.long.all(x, x != 'y')", "[args.amount, 1][0] == 1", "{'a': args}['a'] == args",
	} {
		if _, issue := c.Compile(expression, "payments.refund"); issue != nil {
			t.Errorf("%s: found %s, expected %s", expression, issue.Found, issue.Expected)
		}
	}
}

// A root that its tool opens may be asked for any member; one of several
// versions of a tool is enough.
func TestOpenToolsAndVersions(t *testing.T) {
	open := Tool{Name: "x.y", InputSchema: json.RawMessage(`{"type":"object","additionalProperties":true}`), Open: true}
	closed := Tool{Name: "x.y", InputSchema: json.RawMessage(`{"type":"object","additionalProperties":true}`)}
	newer := Tool{Name: "x.y", InputSchema: json.RawMessage(`{"type":"object","properties":{"more":{"type":"integer"}}}`)}
	broken := Tool{Name: "x.y", InputSchema: json.RawMessage(`{"type":`)}
	for _, c := range []struct {
		name  string
		tools []Tool
		ok    bool
	}{
		{"open", []Tool{open}, true}, {"closed", []Tool{closed}, false}, {"a version", []Tool{closed, newer}, true},
		{"no tool", nil, true}, {"broken", []Tool{broken}, false}, {"no schema", []Tool{{Name: "x.y"}}, false},
		{"true", []Tool{{Name: "x.y", InputSchema: json.RawMessage(`true`)}}, false},
	} {
		compiler, err := NewCompiler(c.tools)
		if err != nil {
			t.Fatal(err)
		}
		if _, issue := compiler.Compile("args.more == 1", "x.y"); (issue == nil) != c.ok {
			t.Errorf("%s: %+v", c.name, issue)
		}
	}
}

// A loop over more than was foreseen stops at the limit, or with its context.
func TestCostAndInterruption(t *testing.T) {
	long := `{"a":[` + strings.Repeat("1,", 200_000) + `1]}`
	if _, err := evaluate(t, t.Context(), "args.a.all(x, x + 1 > 0 && x + 2 > 0)", long); !errors.Is(err, errCost) {
		t.Errorf("a long loop: %v", err)
	}
	text := `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
	if _, err := evaluate(t, t.Context(), "args.a.matches('(x+x+)+y(x+x+)+y(x+x+)+y(x+x+)+y(x+x+)+y(x+x+)+y')", text); !errors.Is(err, errCost) {
		t.Errorf("a long match: %v", err)
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if _, err := evaluate(t, ctx, "args.a.all(x, x > 0)", `{"a":[1]}`); !errors.Is(err, errInterrupted) {
		t.Errorf("a past deadline: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	c, err := NewCompiler(nil)
	if err != nil {
		t.Fatal(err)
	}
	condition, issue := c.Compile("args.a.all(x, x > 0)", "*")
	if issue != nil {
		t.Fatal(issue.Found)
	}
	// The context ends while the loop runs: at the thousandth look at it.
	looked := &countdown{Context: ctx, left: 3, stop: stop}
	if _, err := condition.Evaluate(looked, &Variables{Arguments: decodeArguments(t, long)}); !errors.Is(err, errInterrupted) {
		t.Errorf("interrupted in the loop: %v", err)
	}
}

// countdown cancels itself after some looks at it.
type countdown struct {
	context.Context
	left int
	stop func()
}

func (c *countdown) Done() <-chan struct{} {
	if c.left--; c.left == 0 {
		c.stop()
	}
	return c.Context.Done()
}

// decodeArguments reads JSON as the gateway hands it over.
func decodeArguments(t testing.TB, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}
