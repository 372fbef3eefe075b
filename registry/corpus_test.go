package registry

import (
	"encoding/json"
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/registry/schema"
	"github.com/callgate/callgate/tool"
)

type published struct {
	Server      string          `json:"server"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// imported is the definition that an import of a published tool writes.
func imported(tb testing.TB, p published) Tool {
	tb.Helper()
	cured, _ := schema.Cure(p.InputSchema, false)
	return Tool{Name: p.Name, Description: p.Description, InputSchema: cured, Run: tool.Run{Type: "client"}}
}

func TestGitHubRegistryLoads(t *testing.T) {
	var tools []published
	readCases(t, corpora.Path(t, "registry_github_mcp", "registry_github_mcp.json"), &tools)
	want := corpora.Count("registry_github_mcp", 117, 24)
	if len(tools) != want {
		t.Fatalf("found %d tools; expected %d", len(tools), want)
	}
	var list []Tool
	for _, p := range tools {
		// One of them needs what an import adds: its inputs declare no members.
		_, err := New([]Tool{{Name: p.Name, InputSchema: p.InputSchema, Run: tool.Run{Type: "client"}}})
		if (err != nil) != (p.Name == "actions_run_trigger" || p.Name == "job_start") {
			t.Errorf("%s, as published: %v", p.Name, err)
		}
		list = append(list, imported(t, p))
	}
	r, err := New(list)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(r.Entries()); got != want {
		t.Errorf("%d of %d load", got, want)
	}
}

func TestDockerRegistryLoads(t *testing.T) {
	var tools []published
	readCases(t, corpora.Path(t, "registry_docker_mcp", "registry_docker_mcp.json"), &tools)
	servers := map[string][]Tool{}
	for _, p := range tools {
		servers[p.Server] = append(servers[p.Server], imported(t, p))
	}
	const corpus = "registry_docker_mcp"
	if want := corpora.Count(corpus, 28, 6); len(servers) != want {
		t.Fatalf("found %d servers; expected %d", len(servers), want)
	}
	loaded, noSchema, badName := 0, 0, 0
	for server, list := range servers {
		var accepted []Tool
		for _, tool := range list {
			_, err := New([]Tool{tool})
			if err == nil {
				accepted = append(accepted, tool)
				continue
			}
			var reason *LoadError
			for _, e := range loadErrors(t, err) {
				reason = e
			}
			switch reason.Field[0] {
			case "input_schema":
				noSchema++
			case "name":
				badName++
			default:
				t.Errorf("%s: %v", server, err)
			}
		}
		r, err := New(accepted)
		if err != nil {
			t.Errorf("%s: %v", server, err)
			continue
		}
		loaded += len(r.Entries())
	}
	if loaded != corpora.Count(corpus, 434, 13) || noSchema != corpora.Count(corpus, 319, 4) || badName != 2 {
		t.Errorf("%d load, %d without a schema, %d with a bad name", loaded, noSchema, badName)
	}
}

func loadErrors(tb testing.TB, err error) []*LoadError {
	tb.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		tb.Fatalf("%v does not join errors", err)
	}
	var list []*LoadError
	for _, e := range joined.Unwrap() {
		list = append(list, e.(*LoadError))
	}
	return list
}

type bfclTask struct {
	ID          string      `json:"id"`
	Tools       []published `json:"tools"`
	GroundTruth []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Errors    []string        `json:"schema_errors"`
	} `json:"ground_truth"`
}

func TestBFCLCalls(t *testing.T) {
	tasks, calls, accepted, refused := 0, 0, 0, 0
	for i, task := range corpora.Lines[bfclTask](t, corpora.Path(t, "bfcl_schemas", "bfcl_schemas.jsonl.gz")) {
		if len(task.GroundTruth) == 0 || testing.Short() && i%8 > 0 {
			continue
		}
		tasks++
		var list []Tool
		for _, p := range task.Tools {
			list = append(list, imported(t, p))
		}
		r, err := New(list)
		if err != nil {
			t.Errorf("%s: %v", task.ID, err)
			continue
		}
		for _, call := range task.GroundTruth {
			calls++
			e, ok := r.Lookup(call.Name)
			if !ok {
				t.Errorf("%s: no tool %s", task.ID, call.Name)
				continue
			}
			found := e.Evaluate(argumentsOf(t, string(call.Arguments)))
			if (len(found) == 0) != (len(call.Errors) == 0) {
				t.Errorf("%s: %s: found %v; expected %v", task.ID, call.Name, found, call.Errors)
			}
			if len(found) == 0 {
				accepted++
			} else {
				refused++
				for _, v := range found {
					if v.Cause != nil {
						t.Errorf("%s: %s: the judges disagree: %v", task.ID, call.Name, v.Cause)
					}
				}
			}
		}
	}
	count := func(whole, sample int) int { return corpora.Count("bfcl_schemas", whole, sample) }
	if testing.Short() {
		if accepted == 0 || refused == 0 {
			t.Errorf("%d calls were accepted, and %d refused", accepted, refused)
		}
		return
	}
	if tasks != count(2501, 40) || calls != count(3302, 43) || accepted != count(3094, 28) || refused != count(208, 15) {
		t.Errorf("%d tasks, %d calls, %d accepted, %d refused", tasks, calls, accepted, refused)
	}
}
