package condition

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestInspect(t *testing.T) {
	path := func(names ...string) [][]string {
		var paths [][]string
		for _, name := range names {
			paths = append(paths, []string{name})
		}
		return paths
	}
	for expression, want := range map[string]Facts{
		"true":                                 {Exact: true},
		"args.b":                               {Paths: path("b"), Exact: true},
		"!args['b']":                           {Paths: path("b"), Exact: true},
		"args.n <= 100":                        {Paths: path("n"), Numbers: []json.Number{"100"}, Exact: true},
		"-1.5e-3 < args.n":                     {Paths: path("n"), Numbers: []json.Number{"-0.0015"}, Exact: true},
		"args.n > 3u ? args.b : args.c == 'x'": {Paths: path("b", "c", "n"), Numbers: []json.Number{"3"}, Texts: []string{"x"}, Exact: true},
		"args.currency in ['EUR', 'USD', 5, null]":      {Paths: path("currency"), Texts: []string{"EUR", "USD"}, Numbers: []json.Number{"5"}, Exact: true},
		"has(args.a) && !('b' in args) || args.a == -2": {Paths: path("a", "b"), Numbers: []json.Number{"-2"}, Exact: true},
		"agent == 'A' && tool.startsWith('web.')":       {Texts: []string{"A", "web."}, ReadsCaller: true, Exact: true},

		// Forms that tell more apart than one value for each case shows.
		"args.s < 'b'":                        {Paths: path("s"), Texts: []string{"b"}},
		"args.s == agent":                     {Paths: path("s"), ReadsCaller: true},
		"args.a == args.b":                    {Paths: path("a", "b")},
		"args.n + 1 <= 100":                   {Paths: path("n"), Numbers: []json.Number{"1", "100"}},
		"args.a.b == 1":                       {Paths: [][]string{{"a", "b"}}, Numbers: []json.Number{"1"}},
		"'x' in args.l":                       {Paths: path("l"), Texts: []string{"x"}},
		"args.l == [1]":                       {Paths: path("l"), Numbers: []json.Number{"1"}},
		"size(args.l) > 2":                    {Paths: path("l"), Numbers: []json.Number{"2"}},
		"args.s.matches('^a+$')":              {Paths: path("s"), Patterns: []string{"^a+$"}},
		"args.l.exists(e, e == 'x')":          {Paths: path("l"), Texts: []string{"x"}},
		"size(args) > 1":                      {Numbers: []json.Number{"1"}},
		"args[agent] == 1":                    {Numbers: []json.Number{"1"}, ReadsCaller: true},
		"args.n == 9007199254740993":          {Paths: path("n"), Numbers: []json.Number{"9007199254740993"}},
		"args.n <= 0.12345678901234567":       {Paths: path("n"), Numbers: []json.Number{"0.12345678901234566"}},
		"[1].exists(args, args == 1)":         {Numbers: []json.Number{"1"}},
		"[[1]].exists(args, args[0] == 1)":    {Numbers: []json.Number{"0", "1"}},
		"args.t == timestamp('2026-01-01Z')":  {Paths: path("t"), Texts: []string{"2026-01-01Z"}},
		"args.n in [args.m]":                  {Paths: path("m", "n")},
		"args.n == 1 && (args.s + 'x' == '')": {Paths: path("n", "s"), Numbers: []json.Number{"1"}, Texts: []string{"", "x"}},
	} {
		got, err := Inspect(expression)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, %v\nexpected\n%+v", expression, got, err, want)
		}
	}
	if _, err := Inspect("args."); err == nil {
		t.Error("an expression that does not compile has facts")
	}
}
