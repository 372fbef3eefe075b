package lockfile

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/callgate/callgate/tool"
)

func offered(name string) tool.Definition {
	return tool.Definition{Name: name, Description: "d", InputSchema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"},"extra":{"type":"object"}}}`)}
}

func TestAcceptRefuses(t *testing.T) {
	s := Server{Server: tool.Server{Name: "hub", Type: MCP, URL: "https://example.com/mcp"}, Prefix: "hub"}
	bad := func(change func(*tool.Definition)) tool.Definition {
		o := offered("search")
		change(&o)
		return o
	}
	for why, o := range map[string]tool.Definition{
		"a name with a blank":      bad(func(o *tool.Definition) { o.Name = "a b" }),
		"no name":                  bad(func(o *tool.Definition) { o.Name = "" }),
		"a long name":              bad(func(o *tool.Definition) { o.Name = strings.Repeat("a", 61) }),
		"no schema":                bad(func(o *tool.Definition) { o.InputSchema = nil }),
		"a schema twice":           bad(func(o *tool.Definition) { o.InputSchema = json.RawMessage(`{"type":"object","type":"object"}`) }),
		"a schema of another host": bad(func(o *tool.Definition) { o.InputSchema = json.RawMessage(`{"$ref":"https://example.com/schema"}`) }),
		"an unknown keyword": bad(func(o *tool.Definition) {
			o.InputSchema = json.RawMessage(`{"type":"object","additionalproperties":false}`)
		}),
		"what cannot be called":      bad(func(o *tool.Definition) { o.Unusable = "it asks for a secret" }),
		"an output schema of no use": bad(func(o *tool.Definition) { o.OutputSchema = json.RawMessage(`{"type":"objekt"}`) }),
	} {
		if a := Accept(s, []tool.Definition{o}); len(a.Pins) != 0 || len(a.Refused) == 0 {
			t.Errorf("%s is accepted: %+v", why, a.Pins)
		}
	}
	twice := Accept(s, []tool.Definition{offered("search"), offered("search")})
	if len(twice.Pins) != 1 || len(twice.Refused) != 1 {
		t.Errorf("two of one name: %+v", twice)
	}
	joined := Accept(s, []tool.Definition{offered("a.b"), offered("a_b")})
	if len(joined.Pins) != 1 || len(joined.Refused) != 1 {
		t.Errorf("two that one name map joins: %+v", joined)
	}
	far := Server{Server: tool.Server{Name: "far", Type: OXP, URL: "https://example.com/"}, Prefix: "far"}
	if unpinned := Accept(far, []tool.Definition{offered("web.search")}); len(unpinned.Pins) != 0 || len(unpinned.Refused) != 1 {
		t.Errorf("a tool that could not be called: %+v", unpinned)
	}
	v1, v2 := offered("search"), offered("search")
	v1.Version, v2.Version = "1.0.0", "2.0.0"
	long := strings.Repeat("n", 64-len(s.ToolName("")))
	if full := Accept(s, []tool.Definition{offered(long), offered(long + "n")}); len(full.Pins) != 1 || full.Pins[0].Name != long ||
		len(full.Refused) != 1 || !strings.Contains(full.Refused[0].Error(), "at most 64 bytes, for which a shorter prefix makes room") {
		t.Errorf("names of 64 and 65 bytes with their prefix: %+v", full)
	}
	if versions := Accept(s, []tool.Definition{v1, v2}); len(versions.Pins) != 2 {
		t.Errorf("two versions: %+v", versions.Refused)
	}
}

func TestDigest(t *testing.T) {
	digest := func(o tool.Definition) string {
		t.Helper()
		d, err := Digest(o)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := offered("search")
	same := first
	same.InputSchema = json.RawMessage(" {\"properties\":{\"extra\":{\"type\":\"object\"},\"q\":{\"type\":\"str\\u0069ng\"}},\n\"type\":\"object\"}")
	if digest(first) != digest(same) {
		t.Error("the order of members and their spelling change the digest")
	}
	for why, change := range map[string]func(*tool.Definition){
		"name":        func(o *tool.Definition) { o.Name = "search2" },
		"version":     func(o *tool.Definition) { o.Version = "1.0.0" },
		"endpoint":    func(o *tool.Definition) { o.Endpoint = "https://example.org" },
		"description": func(o *tool.Definition) { o.Description += "\u200b" },
		"schema":      func(o *tool.Definition) { o.InputSchema = json.RawMessage(`{"type":"object"}`) },
		"number": func(o *tool.Definition) {
			o.InputSchema = json.RawMessage(`{"type":"object","maxProperties":9007199254740993}`)
		},
		"output schema": func(o *tool.Definition) { o.OutputSchema = json.RawMessage(`{}`) },
		"null":          func(o *tool.Definition) { o.OutputSchema = json.RawMessage(`null`) },
	} {
		other := first
		change(&other)
		if digest(first) == digest(other) {
			t.Errorf("the %s is not part of the digest", why)
		}
	}
	// One that differs in the last digit of a number alone.
	a, b := first, first
	a.InputSchema = json.RawMessage(`{"type":"object","maxProperties":9007199254740993}`)
	b.InputSchema = json.RawMessage(`{"type":"object","maxProperties":9007199254740992}`)
	if digest(a) == digest(b) {
		t.Error("a number is rounded")
	}
}
