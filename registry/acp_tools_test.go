package registry_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
)

// TestDelegated: a tool of type acp names a method of the client, and has no other arguments.
func TestDelegated(t *testing.T) {
	for name, c := range map[string]struct {
		run    tool.Run
		schema string
		open   bool
		fault  string // empty: it loads
	}{
		"read":             {run: tool.Run{Tool: "fs/read_text_file"}, schema: `{"type":"object","properties":{"path":{"type":"string"},"line":{"type":"integer"}}}`},
		"write":            {run: tool.Run{Tool: "fs/write_text_file"}, schema: `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}}}`},
		"terminal":         {run: tool.Run{Tool: "terminal/create"}, schema: `{"type":"object","properties":{"command":{"type":"string"}}}`},
		"no method":        {schema: `{"type":"object"}`, fault: "run.tool: found nothing; expected the method of the client"},
		"another method":   {run: tool.Run{Tool: "terminal/kill"}, schema: `{"type":"object"}`, fault: `run.tool: found "terminal/kill"`},
		"another argument": {run: tool.Run{Tool: "fs/write_text_file"}, schema: `{"type":"object","properties":{"path":{"type":"string"},"mode":{"type":"string"}}}`, fault: `input_schema: found the argument "mode"`},
		"open":             {run: tool.Run{Tool: "fs/read_text_file"}, schema: `{"type":"object"}`, open: true, fault: "open: found open: true"},
		"a url":            {run: tool.Run{Tool: "fs/read_text_file", URL: "http://x"}, schema: `{"type":"object"}`, fault: "run.url: found a url"},
		"a credential":     {run: tool.Run{Tool: "fs/read_text_file", Credential: tool.Bearer("env:A")}, schema: `{"type":"object"}`, fault: "run.credential"},
	} {
		c.run.Type = registry.RunACP
		_, err := registry.New([]registry.Tool{{Name: "t", InputSchema: json.RawMessage(c.schema), Run: c.run, Open: c.open}})
		switch {
		case c.fault == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%s: %v; expected %q", name, err, c.fault)
		}
	}
}
