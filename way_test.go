package callgate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// wayRow is a row of the way of one call in docs/design.md: a file, and its functions in the
// order in which a call enters them.
var (
	wayRow  = regexp.MustCompile("^\\| `([a-z_/]+\\.go)` \\| (.*) \\|$")
	wayName = regexp.MustCompile("`([A-Za-z]+)`")
)

// maxVisits bounds how often the way of one call comes to a file: once, and twice again.
const maxVisits = 3

// TestTheWayOfACall: docs/design.md draws the way of one call through files and functions that
// are there, comes back to no file more than twice, and names every check in the order of the
// pipeline.
func TestTheWayOfACall(t *testing.T) {
	page, err := os.ReadFile("docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, way, found := strings.Cut(string(page), "\n### The way, file by file\n")
	if !found {
		t.Fatal("docs/design.md has no section: The way, file by file")
	}
	way, _, _ = strings.Cut(way, "\n## ")
	visits := map[string]int{}
	var last string
	var walked []string
	for line := range strings.Lines(way) {
		row := wayRow.FindStringSubmatch(strings.TrimSpace(line))
		if row == nil {
			continue
		}
		file := row[1]
		if visits[file]++; visits[file] > maxVisits || file == last {
			t.Errorf("the way comes back to %s: time %d, after %s", file, visits[file], last)
		}
		last = file
		declared := functionsOf(t, file)
		names := wayName.FindAllStringSubmatch(row[2], -1)
		if len(names) == 0 {
			t.Errorf("no function of %s is named", file)
		}
		for _, name := range names {
			if walked = append(walked, name[1]); !slices.Contains(declared, name[1]) {
				t.Errorf("docs/design.md, the way of one call: %s declares no function %s; name the file where it stands now", file, name[1])
			}
		}
	}
	checks := checksOf(t, "gateway/pipeline.go")
	walked = slices.DeleteFunc(walked, func(name string) bool { return !slices.Contains(checks, name) })
	if len(checks) < 10 || !slices.Equal(walked, checks) {
		t.Errorf("the way passes the checks\n%v; the pipeline has\n%v", walked, checks)
	}
}

func functionsOf(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return nil
	}
	var names []string
	for _, declaration := range parsed.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

// checksOf are the functions of the pipeline's lists, in their order.
func checksOf(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok {
			key, isName := pair.Key.(*ast.Ident)
			run, isFunction := pair.Value.(*ast.Ident)
			if isName && isFunction && key.Name == "run" {
				names = append(names, run.Name)
			}
		}
		return true
	})
	return names
}
