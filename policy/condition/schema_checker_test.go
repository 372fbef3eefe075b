package condition

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
)

// Real schemas: a condition may ask for every declared member of every tool, as
// a member and by its name in quotes, and for no other.
func TestRealSchemas(t *testing.T) {
	for _, name := range []string{"registry_github_mcp", "registry_docker_mcp"} {
		data, err := os.ReadFile(corpora.Path(t, name, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var tools []struct {
			Name        string          `json:"name"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		if err := json.Unmarshal(data, &tools); err != nil || len(tools) < corpora.Count(name, 100, 19) {
			t.Fatal(len(tools), err)
		}
		base, err := baseEnv()
		if err != nil {
			t.Fatal(err)
		}
		members := 0
		for _, tool := range tools {
			l, err := newSchemaChecker(base, Tool{Name: tool.Name, InputSchema: tool.InputSchema}, nil)
			if err != nil {
				t.Errorf("%s: %v", tool.Name, err)
				continue
			}
			for member := range l.root.members {
				members++
				quoted := strconv.Quote(member)
				for _, expression := range []string{quoted + " in args", "args[" + quoted + "] == dyn(1)"} {
					if c := l.check(expression); c != nil {
						t.Errorf("%s: %s: %s", tool.Name, expression, c.Found)
					}
				}
			}
			if c := l.check("has(args.certainly_no_member)"); c == nil && l.root.kind == object && l.root.additional == nil {
				t.Errorf("%s: a condition may ask for a member that is not there", tool.Name)
			}
		}
		if members < corpora.Count(name, 300, 20) {
			t.Errorf("%s: only %d members", name, members)
		}
	}
}

// Schemas that say little, or go in circles, leave types open and load.
func TestOddSchemas(t *testing.T) {
	base, err := baseEnv()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		schema, expression string
		ok                 bool
	}{
		{`{"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"$ref":"#/$defs/y"},"y":{"$ref":"#/$defs/x"}}}`, "args.a == 1", true},
		{`{"type":"object","properties":{"a":{"$ref":"#"}}}`, "args.a.a.a == {}", true},
		{`{"type":"object","properties":{"a":{"$ref":"#"}}}`, "args.a.b == 1", false},
		{`{"properties":{"a":{"$ref":"#/$defs/none"}}}`, "args.a == 1", true},
		{`{"properties":{"a":{"$ref":"other.json"}}}`, "args.a == 1", true},
		{`{"properties":{"a":{"$ref":"#/$defs/x","type":"string"}},"$defs":{"x":{"type":"string"}}}`, "args.a == 1", true},
		{`{"properties":{"a":{"$ref":"#/$defs/x","description":"d"}},"$defs":{"x":{"type":"string"}}}`, "args.a == 1", false},
		{`{"properties":{"a":{"$ref":"#/$defs/x~1y"}},"$defs":{"x/y":{"type":"string"}}}`, "args.a == 1", false},
		{`{"properties":{"a":false}}`, "has(args.a)", false},
		{`{"properties":{"a":true}}`, "args.a == 1", true},
		{`{"properties":{"a":{"type":["string","number"]}}}`, "args.a == 1 || args.a == 'x'", true},
		{`{"properties":{"a":{"type":["integer","number"]}}}`, "args.a == 'x'", false},
		{`{"properties":{"a":{"const":"x"}}}`, "args.a == 1", false},
		{`{"properties":{"a":{"enum":[1,"x"]}}}`, "args.a == 1 || args.a == 'x'", true},
		{`{"properties":{"a":{"enum":["x",null]}}}`, "args.a == null", true},
		{`{"properties":{"a":{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"integer"}}}}`, "args.a[0] == 'x'", true},
		{`{"properties":{"a":{"type":"array"}}}`, "args.a == 'x'", false},
		{`{"properties":{"a":{"type":["array","null"]}}}`, "args.a == null", true},
		{`{"properties":{"a":{"type":["object","null"],"properties":{"b":{}}}}}`, "args.a == null || args.a.b == 1", true},
		{`{"properties":{"a":{"type":["boolean","null"]}}}`, "args.a == null || args.a == true", true},
		{`{"properties":{"a":{"type":"object","patternProperties":{"^x":{}},"properties":{"b":{}}}}}`, "args.a.x1 == 1", true},
		{`{"properties":{"a":{"type":"object","unevaluatedProperties":false,"properties":{"b":{}}}}}`, "args.a.x1 == 1", false},
		{`{"properties":{"a":{"type":"object","properties":{"b":{}}}}}`, "args.a.x1 == 1", false},
		{`{"properties":{"a":{"type":"object","additionalProperties":{"type":"string"}}}}`, "args.a.x1 == 1", false},
		{`{"properties":{"a":{"type":"object","additionalProperties":{"type":"string"}}}}`, "args.a['x1'] == 'y'", true},
		{`{"allOf":[{"properties":{"b":{"type":"string"}}}]}`, "args.b == 'x'", true},
		{`{"patternProperties":{"^x":{"type":"string"}}}`, "args.x1 == 'x'", true},
		{`true`, "args.b == 'x'", false},
		{`[]`, "args.b == 'x'", false},
		{`{"type":"object","properties":null}`, "has(args.b)", false},
	} {
		l, err := newSchemaChecker(base, Tool{Name: "t", InputSchema: json.RawMessage(c.schema)}, nil)
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		if complaint := l.check(c.expression); (complaint == nil) != c.ok {
			t.Errorf("%s: %s: %+v", c.schema, c.expression, complaint)
		}
	}
}
