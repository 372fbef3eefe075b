package eval_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/eval"
)

func judge(t testing.TB) *eval.Judge {
	t.Helper()
	c, err := configs.Default("")
	if err != nil {
		t.Fatal(err)
	}
	j, err := eval.New(app.KernelConfig(c, nil))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestCases: each built-in case ends as it is to, and the page has the figures.
func TestCases(t *testing.T) {
	cases, err := eval.BuiltInCases()
	if err != nil {
		t.Fatal(err)
	}
	j := judge(t)
	var results []eval.Result
	for i := range cases {
		for _, m := range eval.Models {
			r, err := j.Run(t.Context(), &cases[i], m.Name, m.New)
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, r)
		}
	}
	if n := eval.Failed(results, 3); n > 0 {
		t.Errorf("%d exchanges fail", n)
	}
	for _, o := range eval.OmittedCodes(cases) {
		if o.Reason == "no case has it yet" {
			t.Errorf("no case has the code %s", o.Name)
		}
	}
	page, err := os.ReadFile("../docs/grace.md")
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := eval.WriteTurns(&table, results); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), table.String()) {
		t.Errorf("docs/grace.md does not have this table:\n%s", table.String())
	}
}

func TestReadCases(t *testing.T) {
	for _, text := range []string{"", "{", `{"name":"a","code":"x"}`, `{"name":"a","name":"a"}`, `{"unknown":1}`} {
		if _, err := eval.ReadCases("x.jsonl", []byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
