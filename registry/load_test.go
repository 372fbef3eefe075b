package registry

import (
	"encoding/json"
	"errors"
	"github.com/callgate/callgate/tool"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type wantFault struct {
	Field   string `json:"field"`
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

type loadCase struct {
	Why  string      `json:"why"`
	Want []wantFault `json:"want"`
	Tool *struct {
		Name, Version, Kind, Effect string
		Run                         *struct {
			Type, URL      string
			Timeout        time.Duration
			MaxResultBytes int64 `json:"max_result_bytes"`
			Addresses      []string
			Tool           string
			Asks           []string
		}
	} `json:"tool"`
}

func loadCases(t *testing.T, file string) []loadCase {
	t.Helper()
	var cases []loadCase
	readCases(t, filepath.Join("testdata", "load", file), &cases)
	if len(cases) == 0 {
		t.Fatalf("%s holds no case", file)
	}
	return cases
}

func TestDefinitionFaults(t *testing.T) {
	for _, c := range loadCases(t, "tool.json") {
		t.Run(c.Why, func(t *testing.T) {
			def := Tool{Name: c.Tool.Name, Version: c.Tool.Version, Kind: c.Tool.Kind, Effect: c.Tool.Effect, InputSchema: json.RawMessage(`{"type":"object"}`), Run: tool.Run{Type: "demo"}}
			if r := c.Tool.Run; r != nil {
				def.Run = tool.Run{Type: r.Type, URL: r.URL, Timeout: r.Timeout, MaxResultBytes: r.MaxResultBytes, Addresses: r.Addresses, Tool: r.Tool, InputRequests: r.Asks}
			}
			_, err := New([]Tool{def})
			if len(c.Want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("loaded")
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error repeats a secret: %v", err)
			}
			found := loadErrors(t, err)
			if len(found) != len(c.Want) {
				t.Fatalf("found %v; expected %v", found, c.Want)
			}
			for i, f := range found {
				if got := strings.Join(f.Field, "."); got != c.Want[i].Field || f.Message == "" {
					t.Errorf("found %s: %s; expected %s", got, f.Message, c.Want[i].Field)
				}
			}
		})
	}
}

func TestSameNames(t *testing.T) {
	schema := json.RawMessage(`{"type":"object"}`)
	tool := func(name, version string) Tool {
		return Tool{Name: name, Version: version, InputSchema: schema, Run: tool.Run{Type: "demo"}}
	}
	for why, c := range map[string]struct {
		tools   []Tool
		at      int
		message string
	}{
		"name and version twice": {[]Tool{tool("a", "1.0.0"), tool("b", ""), tool("a", "1.0.0")}, 2, "number 1 of the list"},
		"no version twice":       {[]Tool{tool("a", ""), tool("a", "0.0.0")}, 1, "second time"},
		"one name on a face":     {[]Tool{tool("web.search", ""), tool("web_search", "")}, 1, `like "web.search"`},
	} {
		_, err := New(c.tools)
		var f *LoadError
		if !errors.As(err, &f) || f.Tool != c.at || !strings.Contains(f.Message, c.message) || f.Field[0] != "name" {
			t.Errorf("%s: found %v", why, err)
		}
	}
}
