package eval_test

import (
	"testing"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/eval"
	"github.com/callgate/callgate/refusal"
)

func judge(t testing.TB) *eval.Judge {
	t.Helper()
	c, err := configs.Default("")
	if err != nil {
		t.Fatal(err)
	}
	j, err := eval.New(app.KernelConfig(c, nil), func() eval.Engine { return app.NewEngine("test", engine.Options{}, nil) })
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestCases: each built-in case ends as it is to, within three turns.
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
	for i := range results {
		if eval.Failed(results[i:i+1], 3) > 0 {
			t.Errorf("%+v", results[i])
		}
	}
}

// TestEveryCode: a code has a case, or there is a reason why it reaches no model, and not both.
func TestEveryCode(t *testing.T) {
	cases, err := eval.BuiltInCases()
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, c := range cases {
		has[string(c.Code)] = true
	}
	untested := map[string]bool{}
	for _, o := range eval.OmittedCodes(nil) {
		untested[o.Name] = o.Reason != eval.NoCase
	}
	for _, code := range refusal.Codes() {
		switch name := string(code); {
		case has[name] && untested[name]:
			t.Errorf("%s has a case, and a reason why it has none", name)
		case !has[name] && !untested[name]:
			t.Errorf("%s has no case, and no reason why", name)
		}
		delete(untested, string(code))
	}
	for name := range untested {
		t.Errorf("%s is no code", name)
	}
}

func TestReadCases(t *testing.T) {
	for _, text := range []string{"", "{", `{"name":"a","code":"x"}`, `{"name":"a","name":"a"}`, `{"unknown":1}`,
		`{"name":"a","code":"rate_limited","ends":"text","scene":"nowhere","intent":{"tool":"web.search","arguments":{}}}`} {
		if _, err := eval.ReadCases("x.jsonl", []byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
