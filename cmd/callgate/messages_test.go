package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/refusal"
)

var update = flag.Bool("update", false, "write the golden files anew")

// spoken are completions that draw every message that a model can read from the
// stages that judge what it wrote.
var spoken = []struct {
	code       refusal.Code
	completion string
	truncated  bool
}{
	{refusal.OutputTooLarge, strings.Repeat("a", 65537), false},
	{refusal.InvalidUTF8, "ab\xff", false},
	{refusal.EmptyOutput, " ", false},
	{refusal.MalformedJSON, `{"tool":{"name":"web.search","arguments":{"query":"x",}}}`, false},
	{refusal.MalformedJSON, `{'tool': 1}`, false},
	{refusal.MalformedJSON, "{\"tool\":\"a\nb\"}", false},
	{refusal.MalformedJSON, `{"tool":`, false},
	{refusal.MalformedJSON, `{"tool":"\ud800"}`, false},
	{refusal.DuplicateKey, `{"tool":1,"tool":2}`, false},
	{refusal.TooDeep, `{"a":` + strings.Repeat("[", 20), false},
	{refusal.InvalidNumber, `{"a":1e999}`, false},
	{refusal.InvalidNumber, `{"a":` + strings.Repeat("1", 257) + `}`, false},
	{refusal.MixedOutput, `Sure: {"tool":{"name":"web.search","arguments":{"query":"x"}}}`, false},
	{refusal.MixedOutput, `{"tool":{"name":"web.search","arguments":{"query":"x"}}} Done.`, false},
	{refusal.MultipleCalls, `{"tool":1}{"tool":2}`, false},
	{refusal.NotAToolCall, `{"answer":42}`, false},
	{refusal.ForeignCallSyntax, `<tool_call>web.search</tool_call>`, false},
	{refusal.TruncatedOutput, `{"tool":{"name":"web.search"`, true},
	{refusal.UnexpectedField, `{"tool":{"name":"web.search","arguments":{"query":"x"}},"thought":"hm"}`, false},
	{refusal.UnexpectedField, `{"tool":{"id":"1","name":"web.search","arguments":{"query":"x"}}}`, false},
	{refusal.MissingField, `{"tool":{"name":"web.search"}}`, false},
	{refusal.MissingField, `{"tool":{"arguments":{}}}`, false},
	{refusal.WrongType, `{"tool":{"name":"web.search","arguments":"{\"query\":\"x\"}"}}`, false},
	{refusal.WrongType, `{"tool":null}`, false},
	{refusal.UnknownTool, `{"tool":{"name":"web_search","arguments":{}}}`, false},
	{refusal.UnknownTool, `{"tool":{"name":"teleport","arguments":{}}}`, false},
	{refusal.UnexpectedArgument, `{"tool":{"name":"web.search","arguments":{"query":"x","numResults":3}}}`, false},
	{refusal.UnexpectedArgument, `{"tool":{"name":"web.search","arguments":{"query":"x","extra":3}}}`, false},
	{refusal.UnexpectedArgument, `{"tool":{"name":"time.now","arguments":{"zone":"UTC"}}}`, false},
	{refusal.MissingArgument, `{"tool":{"name":"web.search","arguments":{}}}`, false},
	{refusal.MissingArgument, `{"tool":{"name":"data.vector_search","arguments":{"embedding":[1],"top_k":1,"filter":{}}}}`, false},
	{refusal.WrongType, `{"tool":{"name":"web.search","arguments":{"query":"x","num_results":"5"}}}`, false},
	{refusal.WrongType, `{"tool":{"name":"web.search","arguments":{"query":null}}}`, false},
	{refusal.WrongType, `{"tool":{"name":"payments.refund","arguments":{"payment_id":"pay_abc123","amount":1,"reason":7}}}`, false},
	{refusal.InvalidValue, `{"tool":{"name":"web.search","arguments":{"query":"x","num_results":500}}}`, false},
	{refusal.InvalidValue, `{"tool":{"name":"web.search","arguments":{"query":"x","lang":"EN"}}}`, false},
	{refusal.InvalidValue, `{"tool":{"name":"web.search","arguments":{"query":""}}}`, false},
	{refusal.InvalidValue, `{"tool":{"name":"payments.refund","arguments":{"payment_id":"PAY1","amount":5}}}`, false},
	{refusal.InvalidValue, `{"tool":{"name":"payments.refund","arguments":{"payment_id":"pay_abc123","amount":0}}}`, false},
	{refusal.InvalidValue, `{"tool":{"name":"files.read","arguments":{"path":"a","lines":[1]}}}`, false},
}

// TestMessages keeps the messages that models read in one file to look at.
func TestMessages(t *testing.T) {
	loaded, err := configs.Load(vectorConfig)
	if err != nil {
		t.Fatal(err)
	}
	k, err := app.NewChecker(loaded)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, s := range spoken {
		r := checkAs(t, k, s.completion, s.truncated)
		if r.Refusal == nil || r.Refusal.Code != s.code {
			t.Errorf("%.60q: %s, want %s", s.completion, codeOf(r), s.code)
			continue
		}
		excerpt := s.completion
		if len(excerpt) > 100 {
			excerpt = excerpt[:100] + "…"
		}
		quoted, _ := json.Marshal(excerpt)
		fmt.Fprintf(&got, "%s\n  %s\n  %s\n", s.code, quoted, r.Refusal.Message)
		for _, word := range []string{"panic", "goroutine", "kaptinlin", ".go:"} {
			if strings.Contains(r.Refusal.Message, word) {
				t.Errorf("%s: the message speaks of internals: %s", s.code, r.Refusal.Message)
			}
		}
	}
	golden(t, "testdata/messages.golden", got.String())
}

// golden holds text against a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what is said now; go test -run %s -update writes it anew:\n%s", file, t.Name(), got)
	}
}
