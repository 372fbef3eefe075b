package condition

import (
	"reflect"
	"testing"
)

func TestPaths(t *testing.T) {
	path := func(names ...string) [][]string {
		var paths [][]string
		for _, name := range names {
			paths = append(paths, []string{name})
		}
		return paths
	}
	for expression, want := range map[string][][]string{
		"true":                                 nil,
		"args.b":                               path("b"),
		"!args['b']":                           path("b"),
		"args.n <= 100":                        path("n"),
		"-1.5e-3 < args.n":                     path("n"),
		"args.n > 3u ? args.b : args.c == 'x'": path("b", "c", "n"),
		"args.currency in ['EUR', 'USD', 5, null]":      path("currency"),
		"has(args.a) && !('b' in args) || args.a == -2": path("a", "b"),
		"agent == 'A' && tool.startsWith('web.')":       nil,
		"has(args.a.b) && args.a['c'] == 1":             {{"a", "b"}, {"a", "c"}},
		"args.s < 'b'":                                  path("s"),
		"args.s == agent":                               path("s"),
		"args.a == args.b":                              path("a", "b"),
		"args.n + 1 <= 100":                             path("n"),
		"args.a.b == 1":                                 {{"a", "b"}},
		"'x' in args.l":                                 path("l"),
		"args.l == [1]":                                 path("l"),
		"size(args.l) > 2":                              path("l"),
		"args.s.matches('^a+$')":                        path("s"),
		"args.l.exists(e, e == 'x')":                    path("l"),
		"size(args) > 1":                                nil,
		"args[agent] == 1":                              nil,
		"args.n == 9007199254740993":                    path("n"),
		"args.n <= 0.12345678901234567":                 path("n"),
		"[1].exists(args, args == 1)":                   nil,
		"[[1]].exists(args, args[0] == 1)":              nil,
		"args.t == timestamp('2026-01-01Z')":            path("t"),
		"args.n in [args.m]":                            path("m", "n"),
		"args.n == 1 && (args.s + 'x' == '')":           path("n", "s"),
	} {
		got, err := Paths(expression)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%v, %v\nexpected\n%v", expression, got, err, want)
		}
	}
	if _, err := Paths("args."); err == nil {
		t.Error("an expression that does not compile has paths")
	}
}
