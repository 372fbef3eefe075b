package callgate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// doors are the methods and functions by which calls get to a tool, and the packages that may name
// each.
var doors = map[string][]string{
	"Approve":   {"gateway/calls"},
	"Reapprove": {"gateway/calls"},
	"Restore":   {"gateway/calls", "gateway/calls/internal/execution"},
	"NewRunner": {"gateway/calls/internal/execution"},
	// Of package gateway/workers, whose pool runs every call that it gets.
	"workers.New": {"gateway"},
}

// TestOneDoor: gateway/calls alone asks the kernel for an approved call and restores a stored
// one, and its package execution, which the compiler keeps from others, alone holds the
// engine's runner. An executor embeds its kernel, so the compiler lets its other users name
// these methods; this test does not.
func TestOneDoor(t *testing.T) {
	found := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(path))
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(folder, "testdata") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(file.Imports, func(s *ast.ImportSpec) bool { return strings.HasPrefix(s.Path.Value, `"`+module+"gateway") }) {
			return nil
		}
		ast.Inspect(file, func(n ast.Node) bool {
			use, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			name := use.Sel.Name
			if of, ok := use.X.(*ast.Ident); ok && of.Name == "workers" {
				name = "workers." + name
			}
			if doors[name] == nil {
				return true
			}
			found[name] = true
			if !slices.Contains(doors[name], folder) {
				t.Errorf("%s uses %s, which is for %v alone", path, name, doors[name])
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != len(doors) {
		t.Errorf("of the doors only %v are used", found)
	}
}
