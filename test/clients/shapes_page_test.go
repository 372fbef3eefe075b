package clients_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shapeClients are the clients of the table, in the order of the page, with their packages as the
// tests install them.
var shapeClients = []struct {
	name, title string
	packages    []string
}{
	{"openai", "openai", []string{"openai"}},
	{"ai", "Vercel AI SDK", []string{"ai", "@ai-sdk/openai-compatible", "@ai-sdk/openai"}},
	{"langchain", "LangChain", []string{"@langchain/openai", "langchain"}},
	{"agents", "OpenAI Agents SDK", []string{"@openai/agents"}},
	{"anthropic", "Anthropic SDK", []string{"@anthropic-ai/sdk"}},
	{"go", "openai-go", nil},
}

// TestShapesPage: docs/generated/shapes.md has every shape with its outcome; make reference writes it.
func TestShapesPage(t *testing.T) {
	page := shapesPage(t)
	const file = "../../docs/generated/shapes.md"
	if os.Getenv("CALLGATE_WRITE_REFERENCE") != "" {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	found, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(found) != page {
		t.Errorf("%s is not what %s says; make reference writes it", filepath.Base(file), shapesFile)
	}
}

func shapesPage(t *testing.T) string {
	t.Helper()
	byClient := map[string][]shape{}
	refused, all := 0, readShapes(t)
	for _, s := range all {
		byClient[s.Client] = append(byClient[s.Client], s)
		if s.Refused != nil {
			refused++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# Shapes of requests

<!-- Written by make reference from test/clients/shapes/shapes.json. -->

The %d ways of asking that the tests try, by client. %d pass; %d are refused on purpose, with the code
behind the colon, and with a message that names the setting that permits it or what to send instead.
`+"`make test-clients`"+` runs the clients; every run of the tests sends the requests that they sent, which are
in `+"`test/clients/shapes/requests`"+`.
`, len(all), len(all)-refused, refused)
	for _, c := range shapeClients {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n", c.title, strings.Join(versionsOf(t, c.packages), ", "))
		for _, s := range byClient[c.name] {
			fmt.Fprintf(&b, "- %s%s\n", s.Shape, s.Refused.outcome())
		}
		delete(byClient, c.name)
	}
	for client := range byClient {
		t.Errorf("the client %s of %s has no place on the page", client, shapesFile)
	}
	return b.String()
}

// outcome is the refusal of a shape, and what its message names; nil passes.
func (r *refusedShape) outcome() string {
	switch {
	case r == nil:
		return ""
	case r.Status == 0:
		return fmt.Sprintf(": `%s` within the stream, `%s`", r.Code, r.Names)
	}
	return fmt.Sprintf(": %d `%s`, `%s`", r.Status, r.Code, r.Names)
}

// versionsOf are packages with the versions that the tests install; none are those of the Go client.
func versionsOf(t *testing.T, packages []string) []string {
	t.Helper()
	if packages == nil {
		data, err := os.ReadFile("go/go.mod")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if path, version, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "require")), " v"); ok && strings.HasSuffix(path, "openai-go/v3") {
				return []string{"`" + strings.TrimSpace(path) + "` " + version}
			}
		}
		t.Fatal("go/go.mod does not require openai-go")
	}
	data, err := os.ReadFile("shapes/package.json")
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	var versions []string
	for _, name := range packages {
		versions = append(versions, "`"+name+"` "+p.Dependencies[name])
	}
	return versions
}
