package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/callgate/callgate/internal/decimal"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/internal/testkit/detector"
	"github.com/callgate/callgate/refusal"
)

// sampler builds, from a schema as its author wrote it, one valid value that
// reaches as many places as it can, and notes the objects in it that the
// author did not open.
type sampler struct {
	tb     testing.TB
	closed [][]string
}

func (s *sampler) sample(schema map[string]any, path []string) any {
	for _, name := range []string{"enum", "examples"} {
		if list, ok := schema[name].([]any); ok {
			return list[0]
		}
	}
	for _, name := range []string{"oneOf", "anyOf"} {
		if list, ok := schema[name].([]any); ok && schema["properties"] == nil {
			return s.sample(s.branch(list), path)
		}
	}
	kind := schema["type"]
	if kind == nil && schema["properties"] == nil {
		return "any" // says nothing of objects: not closed
	}
	if list, ok := kind.([]any); ok {
		kind = list[0]
	}
	switch kind {
	case "string":
		text := "text"
		if n, ok := numberOf(schema["minLength"]); ok {
			for !n.IsInteger() || decimal.Decimal.Compare(*number(json.Number(plainCount(len(text)))), n) < 0 {
				text += "x"
			}
		}
		return text
	case "integer", "number":
		if n, ok := schema["minimum"].(json.Number); ok {
			return n
		}
		return json.Number("1")
	case "boolean":
		return true
	case "null":
		return nil
	case "array":
		items, ok := schema["items"].(map[string]any)
		if !ok {
			return []any{}
		}
		list := []any{s.sample(items, append(slices.Clone(path), "0"))}
		least, ok := numberOf(schema["minItems"])
		for ok && decimal.Decimal.Compare(*number(json.Number(plainCount(len(list)))), least) < 0 {
			list = append(list, s.sample(items, append(slices.Clone(path), plainCount(len(list)))))
		}
		return list
	case "object", nil:
		object := map[string]any{}
		properties, _ := schema["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			object[name] = s.sample(properties[name].(map[string]any), append(slices.Clone(path), name))
		}
		others, stated := schema["additionalProperties"]
		if !stated || others == false || len(path) == 0 {
			s.closed = append(s.closed, path)
		}
		return object
	}
	s.tb.Fatalf("no sample of %v", schema)
	return nil
}

func plainCount(n int) string {
	raw, _ := json.Marshal(n)
	return string(raw)
}

// branch prefers one with members.
func (s *sampler) branch(list []any) map[string]any {
	for _, b := range list {
		if m := b.(map[string]any); m["properties"] != nil {
			return m
		}
	}
	return list[0].(map[string]any)
}

// TestEveryPlaceIsClosed adds one unknown member to each object of a valid
// call of every published tool.
func TestEveryPlaceIsClosed(t *testing.T) {
	detector.OneGoroutine(t)
	var tools []publishedTool
	for _, file := range [][]string{{"registry_github_mcp", "registry_github_mcp.json"}, {"registry_docker_mcp", "registry_docker_mcp.json"}} {
		var list []publishedTool
		readJSON(t, corpora.Path(t, file[0], file[1]), &list)
		tools = append(tools, list...)
	}
	seen := map[string]bool{}
	type task struct {
		Tools []publishedTool `json:"tools"`
	}
	for _, task := range corpora.Lines[task](t, corpora.Path(t, "bfcl_schemas", "bfcl_schemas.jsonl.gz")) {
		for _, p := range task.Tools {
			if !seen[string(p.InputSchema)] {
				seen[string(p.InputSchema)] = true
				tools = append(tools, p)
			}
		}
	}
	places, nested, samples, conditional := 0, 0, 0, 0
	every := 1
	if testing.Short() {
		every = 16
	}
	for i, p := range tools {
		if i%every != 0 {
			continue
		}
		authored := p.withMembers(t)
		e, faults := NewCompiler().Compile(authored, Options{})
		if len(faults) > 0 {
			continue
		}
		schema := decoded(t, authored).(map[string]any)
		s := sampler{tb: t}
		args := s.sample(schema, nil).(map[string]any)
		if found := e.Evaluate("web.search", args); found != nil {
			// Required alternatives are not sampled together.
			conditional++
			continue
		}
		samples++
		author, err := oracleFor(authored)
		if err != nil {
			t.Fatal(err)
		}
		if err := author.Validate(args); err != nil {
			t.Errorf("%s: accepted against the author: %v", p.Name, err)
		}
		for _, path := range s.closed {
			v, ok := follow(args, path)
			if !ok {
				t.Fatalf("%s: no place %v", p.Name, path)
			}
			object := v.(map[string]any)
			object["no_such_member"] = json.Number("1")
			found := e.Evaluate("web.search", args)
			delete(object, "no_such_member")
			places++
			if len(path) > 0 {
				nested++
			}
			// Where the author closed a branch too, the combinator fails as well.
			last := len(found) - 1
			if last < 0 || found[last].Code != refusal.UnexpectedArgument || found[last].At != Name || !slices.Equal(found[last].Path, append(slices.Clone(path), "no_such_member")) {
				t.Errorf("%s: an unknown member at %v gives %v", p.Name, path, found)
			}
		}
	}
	t.Logf("%d tools sampled, %d not (alternatives); %d places, %d of them nested", samples, conditional, places, nested)
	if nested < corpora.Count("bfcl_schemas", 100, 20)/every || conditional > samples/100 {
		t.Errorf("too few places were reached")
	}
}
