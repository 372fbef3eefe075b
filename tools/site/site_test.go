package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSite builds the site of this repository: a link or an anchor that leads nowhere is an error of build.
func TestSite(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	pages, err := build(filepath.Join("..", ".."), out)
	if err != nil {
		t.Fatal(err)
	}
	for file := range pages {
		html, err := os.ReadFile(filepath.Join(out, address(file)))
		if err != nil {
			t.Fatal(err)
		}
		for _, inline := range []string{"<script>", "style=", "onclick", "javascript:"} {
			if bytes.Contains(html, []byte(inline)) {
				t.Errorf("%s has %s, which a strict security policy forbids", file, inline)
			}
		}
		if !bytes.Contains(html, []byte("<h1")) || !bytes.Contains(html, []byte(`id="content"`)) {
			t.Errorf("%s has no heading or no text", file)
		}
	}
	t.Run("questions", func(t *testing.T) {
		if _, err := exec.LookPath("node"); err != nil {
			t.Skip("needs node")
		}
		questions := []struct{ question, page string }{
			{"where is TLS", "docs/tls.html"},
			{"backup", "docs/backup.html"},
			{"why was a call refused", "docs/finding-out.html"},
			{"how do I add a tool", "docs/guide.html"},
			{"retention", "docs/retention.html"},
			{"Python", "docs/python.html"},
			{"rate limit of one agent", "docs/guide.html"},
			{"approvals on a phone", "docs/approvals.html"},
			{"upgrade", "docs/upgrade.html"},
			{"metrics", "docs/operations.html"},
		}
		var asked []string
		for _, q := range questions {
			asked = append(asked, q.question)
		}
		list, err := json.Marshal(asked)
		if err != nil {
			t.Fatal(err)
		}
		program := `
const search = require("./search.js"), sections = new Function(require("fs").readFileSync("index.js", "utf8") + "return sections")();
console.log(JSON.stringify(` + string(list) + `.map((q) => search(sections, q).slice(0, 3).map((s) => s.u))));`
		node := exec.CommandContext(t.Context(), "node", "-e", program)
		node.Dir = out
		answer, err := node.Output()
		if err != nil {
			t.Fatal(err)
		}
		var found [][]string
		if err := json.Unmarshal(answer, &found); err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
		for i, q := range questions {
			if !strings.Contains(strings.Join(found[i], " "), q.page+"#") {
				t.Errorf("%q finds %q; want %s among them", q.question, found[i], q.page)
			}
		}
	})
}

// TestDeadLinks: a link to a page or a heading that is not there fails the build.
func TestDeadLinks(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for file, body := range map[string]string{
		"README.md":    "# R\n\n[a](docs/README.md#no-such) [b](docs/gone.md) [c](docs/README.md#d-e) [d](docs)\n",
		"CHANGELOG.md": "# C\n", "CONTRIBUTING.md": "# C\n", "SECURITY.md": "# S\n", "deploy/README.md": "# D\n",
		"docs/README.md": "# Docs\n\n## `D`, e\n",
	} {
		if err := write(filepath.Join(root, file), []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := build(root, filepath.Join(root, "out"))
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), "docs/README.md#no-such") || !strings.Contains(err.Error(), "docs/gone.md, which is not there") {
		t.Errorf("%v", err)
	}
}
