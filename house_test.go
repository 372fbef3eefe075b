package callgate_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

// The bounds that keep a package readable (CONTRIBUTING.md, "Where things are").
const (
	maxFileLines    = 400
	maxPackageLines = 2500
	maxMedianLines  = 900 // of half of the packages
)

// largePackages have more lines than others may, and each its own bound, which may only be lowered.
var largePackages = map[string]int{
	"app":               2900,
	"audit":             3000,
	"configs":           3700,
	"engine/mcp":        3200,
	"gateway":           3500,
	"gateway/admin":     2700,
	"gateway/mcp":       3000,
	"gateway/openai":    2800,
	"gateway/responses": 2900,
	"grammar":           3000,
	"registry/schema":   4400,
	"store/redisstore":  3100,
}

// sourceFile is one file of production code.
type sourceFile struct {
	path  string
	lines int
	tree  *ast.File
}

// productionPackages reads the files of every package of the import table, by folder.
func productionPackages(t *testing.T, fset *token.FileSet) map[string][]sourceFile {
	t.Helper()
	packages := map[string][]sourceFile{}
	for folder := range table {
		paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			packages[folder] = append(packages[folder], sourceFile{path, bytes.Count(text, []byte("\n")), tree})
		}
		if len(packages[folder]) == 0 {
			t.Fatalf("%s holds no file", folder)
		}
	}
	return packages
}

// nothing is an importer whose packages are empty: names of the package itself are all that counts.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	return types.NewPackage(path, filepath.Base(path)), nil
}

// arrows says which files use a function, method, type, variable or constant that another file of
// the package declares, as a matrix.
func arrows(fset *token.FileSet, files []sourceFile) [][]bool {
	index := map[string]int{}
	trees := make([]*ast.File, len(files))
	uses := make([][]bool, len(files))
	for i, file := range files {
		index[file.path], trees[i], uses[i] = i, file.tree, make([]bool, len(files))
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	// Imports are not read, so that there are errors, which do not matter.
	config := types.Config{Importer: nothing{}, Error: func(error) {}}
	pkg, _ := config.Check("p", fset, trees, &info)
	for ident, object := range info.Uses {
		function, isFunc := object.(*types.Func)
		isMethod := isFunc && function.Signature().Recv() != nil
		if object.Pkg() != pkg || object.Parent() != pkg.Scope() && !isMethod {
			continue
		}
		from, to := index[fset.Position(ident.Pos()).Filename], index[fset.Position(object.Pos()).Filename]
		if from != to {
			uses[from][to] = true
		}
	}
	return uses
}

// upward orders files from top to bottom so that few arrows run up, and counts them and all.
// Finding the best order is hard (a minimum feedback arc set); this one is greedy, then moves single
// files while that helps, so that the count is never too low.
func upward(uses [][]bool) (up, all int) {
	order := make([]int, len(uses))
	for i := range order {
		order[i] = i
	}
	balance := func(i int) (n int) {
		for j := range uses {
			if uses[i][j] {
				n++
			}
			if uses[j][i] {
				n--
			}
		}
		return n
	}
	sort.SliceStable(order, func(a, b int) bool { return balance(order[a]) > balance(order[b]) })
	cost := func() (n int) {
		for a := range order {
			for b := range a {
				if uses[order[a]][order[b]] {
					n++
				}
			}
		}
		return n
	}
	up = cost()
	for better := true; better; {
		better = false
		for from := range order {
			for to := range order {
				move(order, from, to)
				if n := cost(); n < up {
					up, better = n, true
				} else {
					move(order, to, from)
				}
			}
		}
	}
	for i := range uses {
		for j := range uses {
			if uses[i][j] {
				all++
			}
		}
	}
	return up, all
}

// move puts the element at from to the place to.
func move(order []int, from, to int) {
	moved := order[from]
	if from < to {
		copy(order[from:to], order[from+1:to+1])
	} else {
		copy(order[to+1:from+1], order[to:from])
	}
	order[to] = moved
}

// TestHouse holds the bounds of files and packages. An arrow is a file that uses a name of another; one
// that runs up is part of a circle, which cannot be read from top to bottom.
func TestHouse(t *testing.T) {
	fset := token.NewFileSet()
	var sizes []int
	for folder, files := range productionPackages(t, fset) {
		lines := 0
		for _, file := range files {
			lines += file.lines
			if file.lines > maxFileLines {
				t.Errorf("%s has %d lines; expected at most %d", file.path, file.lines, maxFileLines)
			}
			if !recovers[folder] && callsRecover(file.tree) {
				t.Errorf("%s calls recover; expected a guard of internal/safe, which repeats no value of a panic", file.path)
			}
		}
		sizes = append(sizes, lines)
		most := max(maxPackageLines, largePackages[folder])
		if lines > most {
			t.Errorf("%s has %d lines; expected at most %d: does a part of it stand by itself?", folder, lines, most)
		}
		if up, all := upward(arrows(fset, files)); up > 1 && up*4 > all {
			t.Errorf("%s: %d of %d arrows between its files run up; expected at most a quarter", folder, up, all)
		}
	}
	sort.Ints(sizes)
	if median := sizes[len(sizes)/2]; median > maxMedianLines {
		t.Errorf("half of the packages have more than %d lines; expected at most %d", median, maxMedianLines)
	}
	t.Logf("%d packages, in the median %d lines", len(sizes), sizes[len(sizes)/2])
}

// recovers lists the packages that may recover from a panic by themselves.
var recovers = map[string]bool{
	"internal/safe":   true, // the guard
	"registry/schema": true, // the builder of nodes leaves its recursion by a panic with a fault
}

func callsRecover(file *ast.File) (yes bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "recover" {
				yes = true
			}
		}
		return !yes
	})
	return yes
}
