package callgate_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestHooksPageCitesTests: each row of the table of places in docs/hooks.md, where a hook is run, cites
// tests, each by its folder and its name, and they are there.
func TestHooksPageCitesTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "hooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "\n| place | `at` | redact | denied as | tests |\n|---|---|---|---|---|\n")
	table, _, ended := strings.Cut(table, "\n\n")
	if !found || !ended {
		t.Fatal("docs/hooks.md has no table of places")
	}
	cited := regexp.MustCompile("`([a-z/]+)\\.(Test\\w+)`")
	points := map[string]int{}
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), " | ")
		if len(cells) != 5 || !cited.MatchString(cells[4]) {
			t.Errorf("a place has no test: %s", row)
			continue
		}
		points[cells[1]]++
		for _, m := range cited.FindAllStringSubmatch(cells[4], -1) {
			if !declares(t, m[1], m[2]) {
				t.Errorf("docs/hooks.md cites %s of %s, which is no test", m[2], m[1])
			}
		}
	}
	for _, at := range []string{"`call`", "`result`", "`text`"} {
		if points[at] < 3 {
			t.Errorf("only %d places are of %s", points[at], at)
		}
	}
}

// declares reports whether a test is in a folder.
func declares(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
