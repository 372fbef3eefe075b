package registry

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"
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
	schema := p.InputSchema
	if len(schema) > 0 && string(schema) != "null" {
		schema, _ = withMembersStated(tb, schema)
	}
	return Tool{Name: p.Name, Description: p.Description, InputSchema: schema, Run: Run{Type: "client"}}
}

func TestGitHubRegistryLoads(t *testing.T) {
	var tools []published
	readJSON(t, corpus(t, "registry_github_mcp", "registry_github_mcp.json"), &tools)
	if len(tools) != 117 {
		t.Fatalf("found %d tools; expected 117", len(tools))
	}
	var list []Tool
	for _, p := range tools {
		// One of them needs what an import adds: its inputs declare no members.
		_, err := New([]Tool{{Name: p.Name, InputSchema: p.InputSchema, Run: Run{Type: "client"}}})
		if (err != nil) != (p.Name == "actions_run_trigger") {
			t.Errorf("%s, as published: %v", p.Name, err)
		}
		list = append(list, imported(t, p))
	}
	r, err := New(list)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(r.Entries()); got != 117 {
		t.Errorf("%d of 117 load", got)
	}
}

func TestDockerRegistryLoads(t *testing.T) {
	var tools []published
	readJSON(t, corpus(t, "registry_docker_mcp", "registry_docker_mcp.json"), &tools)
	servers := map[string][]Tool{}
	for _, p := range tools {
		servers[p.Server] = append(servers[p.Server], imported(t, p))
	}
	if len(servers) != 28 {
		t.Fatalf("found %d servers; expected 28", len(servers))
	}
	loaded, noSchema, badName := 0, 0, 0
	for server, list := range servers {
		var sound []Tool
		for _, tool := range list {
			_, err := New([]Tool{tool})
			if err == nil {
				sound = append(sound, tool)
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
		r, err := New(sound)
		if err != nil {
			t.Errorf("%s: %v", server, err)
			continue
		}
		loaded += len(r.Entries())
	}
	if loaded != 434 || noSchema != 319 || badName != 2 {
		t.Errorf("%d load, %d without a schema, %d with a bad name; expected 434, 319, 2", loaded, noSchema, badName)
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

func bfclTasks(tb testing.TB) []bfclTask {
	tb.Helper()
	f, err := os.Open(corpus(tb, "bfcl_schemas", "bfcl_schemas.jsonl.gz"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 16<<20)
	var tasks []bfclTask
	for lines.Scan() {
		var task bfclTask
		if err := json.Unmarshal(lines.Bytes(), &task); err != nil {
			tb.Fatal(err)
		}
		tasks = append(tasks, task)
	}
	if len(tasks) == 0 || lines.Err() != nil {
		tb.Fatalf("no task read: %v", lines.Err())
	}
	return tasks
}

func TestBFCLCalls(t *testing.T) {
	tasks, calls, accepted, refused := 0, 0, 0, 0
	for _, task := range bfclTasks(t) {
		if len(task.GroundTruth) == 0 {
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
			found := e.Judge(arguments(t, string(call.Arguments)))
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
	if tasks != 2501 || calls != 3302 || accepted != 3094 || refused != 208 {
		t.Errorf("%d tasks, %d calls, %d accepted, %d refused; expected 2501, 3302, 3094, 208", tasks, calls, accepted, refused)
	}
}
