package policy

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/policy/condition"
)

func testTools() []condition.Tool {
	refund, err := os.ReadFile(filepath.Join("condition", "testdata", "refund.json"))
	if err != nil {
		panic(err)
	}
	tools := []condition.Tool{
		{Name: "payments.refund", InputSchema: refund},
		{Name: "web.fetch", InputSchema: json.RawMessage(`{"type":"object","properties":{"url":{"type":"string","maxLength":2000}}}`)},
	}
	for _, name := range []string{"web.search", "data.vector_search", "files.read", "files.delete", "payments.list", "time.now", "notes.label"} {
		tools = append(tools, condition.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	return tools
}

func testSpaces() Workspaces {
	return Workspaces{
		"acme": {Projects: map[string]Project{
			"alpha": {Agents: []string{"Analyst", "Intern"}, Roots: []string{"/srv/acme/alpha"},
				Hosts: []string{"example.com", "*.example.org"}, Resources: map[string][]string{"customer": {"c-1*", "vip"}}},
			"beta": {Agents: []string{"Analyst"}, Roots: []string{"/srv/acme/beta"}},
		}},
		"globex": {Projects: map[string]Project{"gamma": {Agents: []string{"Intern"}, Roots: []string{"/srv/globex/gamma"}}}},
	}
}

// mustLoad loads rows, to which the last line is added.
func mustLoad(t testing.TB, rows string) *Policy {
	t.Helper()
	p, _, err := Load(Source{File: "policy.csv", Data: []byte(strings.TrimRight(rows, "\n") + "\n# end\n")}, testTools(), testSpaces(), "customer", "untrusted")
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return p
}

// decode reads JSON as the gateway hands it over.
func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// corpus lists the files of a folder under testdata; none is a failure.
func corpus(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no case in testdata/%s (%v)", pattern, err)
	}
	return files
}

// wants reads a case and its lines `# want: …`.
func wants(t *testing.T, file string) (data []byte, want []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.SplitSeq(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\n")) {
		if text, found := bytes.CutPrefix(line, []byte("# want: ")); found {
			want = append(want, strings.TrimSuffix(string(text), "\r"))
		}
	}
	return data, want
}
