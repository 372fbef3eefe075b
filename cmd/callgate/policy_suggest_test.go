package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/audit/search"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/policy"
)

// A suggestion that is wider, or that a call of the log would not survive, is an internal error.
func TestSuggestionsAreChecked(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(dir, audit.Options{Record: audit.Arguments, Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	arguments := map[string]json.RawMessage{"time.now": json.RawMessage(`{}`)}
	for id, tool := range map[string]string{"call_1": "time.now", "call_2": "payments.refund"} {
		err = errors.Join(err, log.Append(t.Context(), audit.Record{
			Time: time.Unix(1_790_000_000, 0), Event: audit.Decision, Mode: audit.Call, CallID: id, Verdict: audit.ToolCall,
			Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: tool, Arguments: arguments[tool],
		}))
	}
	err = errors.Join(err, log.Close())
	if err != nil {
		t.Fatal(err)
	}
	present, err := configs.Default("")
	if err != nil {
		t.Fatal(err)
	}
	source, err := present.ReadPolicy()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, now, want string }{
		"the same":                      {"# end", "# end", ""},
		"narrower, unused":              {"p, Analyst,         acme/alpha, notes.label,", "# p,", ""},
		"wider":                         {"# end", "p, Analyst, acme/*, web.fetch, , allow\n# end", "it is wider"},
		"narrower, used":                {"p, role:researcher, acme/*,     time.now,", "# p,", "1 calls of the log are newly_refused; the first is call_1"},
		"narrower, arguments not known": {"args.amount <= 100", "args.amount <= 99", "the call call_2, whose arguments are not known"},
	} {
		t.Run(name, func(t *testing.T) {
			logs, err := search.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer logs.Close()
			text := bytes.Replace(source.Data, []byte(c.old), []byte(c.now), 1)
			next, err := configs.LoadWithPolicy("", policy.Source{File: source.File, Data: text})
			if err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			err = checkSuggestion(t.Context(), env{Stderr: &stderr}, logs, present, next)
			var internal cli.InternalError
			if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &internal) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("found %v, expected %q", err, c.want)
			}
		})
	}
}
