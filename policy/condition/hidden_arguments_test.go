package condition

import (
	"encoding/json"
	"testing"
)

// answer is met, not met, or unknown.
type answer int

const (
	unknown answer = iota
	notMet
	met
	fails
)

func TestHidden(t *testing.T) {
	for expression, want := range map[string]answer{
		`agent == 'Analyst'`:                                     met,
		`agent == 'Intern'`:                                      notMet,
		`args.amount <= 100`:                                     unknown,
		`args.amount <= 100 && agent == 'Intern'`:                notMet,
		`agent == 'Intern' && args.amount <= 100`:                notMet,
		`args.amount <= 100 || agent == 'Analyst'`:               met,
		`args.amount <= 100 || agent == 'Intern'`:                unknown,
		`has(args.amount)`:                                       unknown,
		`has(args.a.b) && workspace == 'other'`:                  notMet,
		`!has(args.amount)`:                                      unknown,
		`args.list.exists(x, x == 'a')`:                          unknown,
		`args.list.all(x, x == 'a') && tool == 'x'`:              notMet,
		`'k' in args`:                                            unknown,
		`args['k'] == 1`:                                         unknown,
		`size(args) > 0`:                                         unknown,
		`args == args`:                                           unknown,
		`agent == 'Analyst' ? args.a == 1 : true`:                unknown,
		`agent == 'Intern' ? args.a == 1 : true`:                 met,
		`args.a == 1 ? true : true`:                              unknown,
		`args.text.matches('^a') && project == 'beta'`:           notMet,
		`args.amount * 2 > 10`:                                   unknown,
		`[args.a, 1].size() == 2`:                                unknown,
		`agent in ['Analyst', 'Intern']`:                         met,
		`args.a in ['x'] || tool.startsWith('payments.')`:        met,
		`int(agent) == 1`:                                        fails,
		`args.list.map(x, x.y).exists(y, y == 1)`:                unknown,
		`type(args.a) == string && agent == 'Nobody'`:            notMet,
		`timestamp(args.at) < timestamp('2026-01-01T00:00:00Z')`: unknown,
	} {
		compiler, err := NewCompiler(nil)
		if err != nil {
			t.Fatal(err)
		}
		c, issue := compiler.Compile(expression, "payments.*")
		if issue != nil {
			t.Errorf("%s: %v", expression, issue)
			continue
		}
		v := &Variables{Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: "payments.refund"}
		got := unknown
		switch is, known, err := c.Hidden(t.Context(), v); {
		case err != nil:
			got = fails
		case known && is:
			got = met
		case known:
			got = notMet
		}
		if got != want {
			t.Errorf("%s: found %d; expected %d", expression, got, want)
		}
		// Whatever the arguments are, the answer is what was said, or reading them fails.
		for _, arguments := range []string{`{}`, `{"amount":50}`, `{"amount":500,"a":1,"k":1}`, `{"list":["a"],"text":"abc","a":{"b":1},"at":"2025-01-01T00:00:00Z"}`, `{"a":"x","list":[{"y":1}]}`} {
			if err := json.Unmarshal([]byte(arguments), &v.Arguments); err != nil {
				t.Fatal(err)
			}
			if is, err := c.Evaluate(t.Context(), v); err == nil && (got == met && !is || got == notMet && is || got == fails) {
				t.Errorf("%s with %s: found %v, and without arguments %d", expression, arguments, is, got)
			}
			v.Arguments = nil
		}
	}
}
