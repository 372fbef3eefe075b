package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/refusal"
)

func judge(t testing.TB) *Judge {
	t.Helper()
	c, err := configs.Default("")
	if err != nil {
		t.Fatal(err)
	}
	j, err := New(app.KernelConfig(c, nil), func() Engine { return app.NewEngine("test", engine.Options{}, nil, nil) })
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestCases: each built-in case ends as it is to, within three turns.
func TestCases(t *testing.T) {
	cases, err := BuiltInCases()
	if err != nil {
		t.Fatal(err)
	}
	j := judge(t)
	var results []Result
	for i := range cases {
		for _, m := range Models {
			r, err := j.Run(t.Context(), &cases[i], m.Name, m.New)
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, r)
		}
	}
	for i := range results {
		if Failed(results[i:i+1], 3) > 0 {
			t.Errorf("%+v", results[i])
		}
	}
}

// TestOmittedCodes: a code that is said to reach no model is one, and has no case. A code may have
// neither a case nor a reason.
func TestOmittedCodes(t *testing.T) {
	cases, err := BuiltInCases()
	if err != nil {
		t.Fatal(err)
	}
	for code := range untested {
		if !slices.Contains(refusal.Codes(), code) {
			t.Errorf("%s is no code", code)
		}
		if slices.ContainsFunc(cases, func(c Case) bool { return c.Code == code }) {
			t.Errorf("%s has a case, and a reason why it has none", code)
		}
	}
}

func TestReadCases(t *testing.T) {
	for _, text := range []string{"", "{", `{"name":"a","code":"x"}`, `{"name":"a","name":"a"}`, `{"unknown":1}`,
		`{"name":"a","code":"rate_limited","ends":"text","scene":"nowhere","intent":{"tool":"web.search","arguments":{}}}`} {
		if _, err := ReadCases("x.jsonl", []byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// TestRun: each fault of the flags and files is said, by the exit code that callers decide by.
func TestRun(t *testing.T) {
	t.Setenv("CALLGATE_CORPORA", "")
	const asked = `"completion":"{\"tool\":{\"name\":\"web.search\",\"arguments\":{\"query\":\"a\"%s}}}",` +
		`"intent":{"tool":"web.search","arguments":{"query":"a"}},"call":{"tool":"web.search","arguments":{"query":"a"}}}`
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "cases.jsonl")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	start := `{"name":"a page","code":"unexpected_argument","ends":"call",`
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, 0, "\nmixed_output "},
		{[]string{"-json"}, 0, `{"kind":"summary",`},
		{[]string{"-max-turns", "1"}, 1, "did not end as they were to, within 1 turns"},
		{[]string{"-max-turns", "0"}, 2, "max-turns"},
		{[]string{"-corpora", "nowhere"}, 2, "nowhere is no folder"},
		{[]string{"-cases", file(start + fmt.Sprintf(asked, `,\"page\":2`)), "-json"}, 0, `"failed":0`},
		{[]string{"-cases", file(start + fmt.Sprintf(asked, ""))}, 2, `the case "a page": found no refusal; expected that it is refused with unexpected_argument`},
		{[]string{"-cases", file(`{"name":"a page"`)}, 2, "cases.jsonl:1: "},
		{[]string{"-cases", "nowhere.jsonl"}, 2, "nowhere.jsonl"},
	} {
		var out strings.Builder
		if code := run(t.Context(), c.args, &out, &out); code != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("eval %q ends with %d, want %d, and says %q, want %q in it", c.args, code, c.code, out.String(), c.says)
		}
	}
}
