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

// TestShapesPage: docs/generated/shapes.md has every shape that is refused, with its refusal; make reference writes it.
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

For authors of applications: what is refused of the %d ways of asking that the tests try, by client. %d pass
(`+"`test/clients/shapes/shapes.json`"+` has them); these %d are refused on purpose, with a message that names what stands
behind the code: the setting that permits it, or what to send instead.
`, len(all), len(all)-refused, refused)
	for _, c := range shapeClients {
		refused, outcomes, passing, before := map[string][]string{}, []string(nil), 0, ""
		for _, s := range byClient[c.name] {
			name := s.Shape
			if rest, same := strings.CutPrefix(name, "the same"); same {
				name = before + rest
			} else {
				before = name
			}
			if s.Refused == nil {
				passing++
				continue
			}
			outcome := s.Refused.outcome()
			if refused[outcome] == nil {
				outcomes = append(outcomes, outcome)
			}
			refused[outcome] = append(refused[outcome], name)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s: %d pass.\n\n", c.title, strings.Join(versionsOf(t, c.packages), ", "), passing)
		for _, outcome := range outcomes {
			fmt.Fprintf(&b, "- %s: %s\n", outcome, strings.Join(refused[outcome], "; "))
		}
		delete(byClient, c.name)
	}
	for client := range byClient {
		t.Errorf("the client %s of %s has no place on the page", client, shapesFile)
	}
	return b.String()
}

// outcome is the refusal of a shape, and what its message names.
func (r *refusedShape) outcome() string {
	if r.Status == 0 {
		return fmt.Sprintf("within the stream `%s`, `%s`", r.Code, r.Names)
	}
	return fmt.Sprintf("%d `%s`, `%s`", r.Status, r.Code, r.Names)
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
