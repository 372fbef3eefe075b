package callgate_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	// repeatedRun is how many lines of code that stand twice are a repetition.
	repeatedRun = 6
	// maxRepeatedRuns bounds the repetitions in production code. It may only be lowered. Those that
	// are there are declarations of two protocols, not logic.
	maxRepeatedRuns = 2
)

// codeLine is a line of code, without the white space around and between its words.
type codeLine struct {
	file   string
	number int
	text   string
}

// TestRepeatedLines: what is written twice is corrected once. Six lines of code that stand in two
// places belong into one function.
func TestRepeatedLines(t *testing.T) {
	runs := repeatedRuns(productionLines(t, "."))
	if len(runs) > maxRepeatedRuns {
		t.Errorf("%d runs of %d or more lines stand in two places; expected at most %d:\n%s",
			len(runs), repeatedRun, maxRepeatedRuns, strings.Join(runs, "\n"))
	}
}

// TestRepeatedLinesAreFound: a run is found in whatever it is indented by, and once however long it is.
func TestRepeatedLinesAreFound(t *testing.T) {
	folder := t.TempDir()
	body := "\ta := 1\n\tb := 2\n\tc := 3\n\n\t// Words.\n\td := 4\n\te := 5\n"
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte("package p\n\nimport (\n\t\"a\"\n\t\"b\"\n\t\"c\"\n\t\"d\"\n\t\"e\"\n)\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a.go", "func f() {\n"+body+"\tfirst()\n}\n")
	write("b.go", "func g() {\n"+body+"\tsecond()\n}\n")
	if runs := repeatedRuns(productionLines(t, folder)); len(runs) != 0 {
		t.Errorf("five lines: %q", runs)
	}
	long := body + "\t/* Words\n\tf := 0 */\n\tg  :=  6\n\th := 7\n"
	write("a.go", "func f() {\n"+long+"\tfirst()\n}\n")
	write("b.go", "func g() {\n\tif x {\n"+strings.ReplaceAll(long, "\t", "\t\t")+"\t}\n}\n")
	write("b_test.go", "func h() {\n"+long+"}\n")
	want := fmt.Sprintf("%s:11 to 21 ~ %s:12 to 22", filepath.Join(folder, "a.go"), filepath.Join(folder, "b.go"))
	if runs := repeatedRuns(productionLines(t, folder)); !slices.Equal(runs, []string{want}) {
		t.Errorf("seven lines: %q; expected %q", runs, want)
	}
}

// productionLines reads the code of the module below a folder, without the tests: it passes over
// imports, comments, blank lines and those of punctuation alone.
func productionLines(t *testing.T, root string) (lines []codeLine) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			_, noModule := os.Stat(filepath.Join(path, "go.mod"))
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || path == "test" || noModule == nil) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		own, err := codeLines(path)
		lines = append(lines, own...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// codeLines returns the lines of a file that are code.
func codeLines(path string) (lines []codeLine, _ error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	blank := func(from, to token.Pos) {
		for i := fset.Position(from).Offset; i < fset.Position(to).Offset; i++ {
			if text[i] != '\n' {
				text[i] = ' '
			}
		}
	}
	for _, group := range tree.Comments {
		blank(group.Pos(), group.End())
	}
	blank(tree.Package, tree.Name.End())
	for _, decl := range tree.Decls {
		if len(tree.Imports) > 0 && decl.Pos() <= tree.Imports[len(tree.Imports)-1].Pos() {
			blank(decl.Pos(), decl.End())
		}
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if strings.Trim(line, "{}()[],;: \t\r\n") != "" {
			lines = append(lines, codeLine{path, number, strings.Join(strings.Fields(line), " ")})
		}
	}
	return lines, nil
}

// repeatedRuns names the pairs of places that share a run of lines, each run as long as it is.
func repeatedRuns(lines []codeLine) (runs []string) {
	same := func(i, j int) bool {
		return i >= 0 && j < len(lines) && lines[i].text == lines[j].text
	}
	inOneFile := func(from, to int) bool { return to < len(lines) && lines[from].file == lines[to].file }
	seen := map[string][]int{}
	var window []string
	for j := range lines {
		if !inOneFile(j, j+repeatedRun-1) {
			continue
		}
		window = window[:0]
		for _, line := range lines[j : j+repeatedRun] {
			window = append(window, line.text)
		}
		key := strings.Join(window, "\n")
		for _, i := range seen[key] {
			if same(i-1, j-1) && inOneFile(i-1, i) && inOneFile(j-1, j) {
				continue // the run began above
			}
			n := repeatedRun
			for i+n < j && same(i+n, j+n) && inOneFile(i, i+n) && inOneFile(j, j+n) {
				n++
			}
			runs = append(runs, fmt.Sprintf("%s:%d to %d ~ %s:%d to %d", lines[i].file, lines[i].number, lines[i+n-1].number,
				lines[j].file, lines[j].number, lines[j+n-1].number))
		}
		seen[key] = append(seen[key], j)
	}
	return runs
}
