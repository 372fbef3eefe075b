package registry_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
)

// TestCancelSubscription: a tool of type cancel_subscription takes an id, and nothing else.
func TestCancelSubscription(t *testing.T) {
	const good = `{"type":"object","required":["tool_call_id"],"properties":{"tool_call_id":{"type":"string","maxLength":64}}}`
	for name, c := range map[string]struct {
		run    tool.Run
		schema string
		open   bool
		fault  string // empty: it loads
	}{
		"good":              {schema: good},
		"no arguments":      {schema: `{"type":"object"}`, fault: "input_schema: found other arguments; expected the one argument tool_call_id"},
		"another type":      {schema: strings.Replace(good, `"string"`, `"integer"`, 1), fault: "input_schema: found other arguments"},
		"not required":      {schema: strings.Replace(good, `"required":["tool_call_id"],`, "", 1), fault: "input_schema: found other arguments"},
		"one more argument": {schema: strings.Replace(good, `"properties":{`, `"properties":{"all":{"type":"boolean"},`, 1), fault: "input_schema: found other arguments"},
		"open":              {schema: good, open: true, fault: "open: found open: true"},
		"a url":             {schema: good, run: tool.Run{URL: "http://x"}, fault: "run.url: found a url"},
		"a tool":            {schema: good, run: tool.Run{Tool: "x"}, fault: "run.tool: found a tool"},
	} {
		c.run.Type = registry.RunCancelSubscription
		_, err := registry.New([]registry.Tool{{Name: "t", InputSchema: json.RawMessage(c.schema), Run: c.run, Open: c.open}})
		switch {
		case c.fault == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%s: %v; expected %q", name, err, c.fault)
		}
	}
}
