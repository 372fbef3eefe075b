// Command spoil puts mutants of the code into one overlay of it, for go build -overlay: in a
// program that is built so, $CALLGATE_SPOILED is the number of the mutant that runs, and without it the
// code is as it was. So all mutants are compiled and linked once.
//
// The arguments are a folder, which gets overlay.json and the files that it names, and for each mutant,
// numbered from 1, a file, a text that is there once, within a function or a string, and what stands in
// its place.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// mutant is a text of a file, and what stands in its place.
type mutant struct {
	number   int
	text, by string
}

// variable is declared in each package that has mutants.
const variable = "callgateSpoiled"

func run(args []string) error {
	if len(args) < 4 || len(args)%3 != 1 {
		return errors.New("usage: spoil FOLDER {FILE TEXT BY}...")
	}
	files := map[string][]mutant{}
	for i := 1; i < len(args); i += 3 {
		files[args[i]] = append(files[args[i]], mutant{(i + 2) / 3, args[i+1], args[i+2]})
	}
	replace := map[string]string{}
	add := func(path, code string) error {
		to := filepath.Join(args[0], fmt.Sprintf("%d.go", len(replace)))
		whole, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		replace[whole] = to
		return os.WriteFile(to, []byte(code), 0o600)
	}
	packages := map[string]string{} // the names, by folder
	for _, file := range slices.Sorted(maps.Keys(files)) {
		name, code, err := spoiled(file, files[file])
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		packages[filepath.Dir(file)] = name
		if err := add(file, code); err != nil {
			return err
		}
	}
	for folder, name := range packages {
		code := fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar %s = os.Getenv(\"CALLGATE_SPOILED\")\n", name, variable)
		if err := add(filepath.Join(folder, "callgate_spoiled.go"), code); err != nil {
			return err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(args[0], "overlay.json"), overlay, 0o600)
}

// spoiled returns the name of the package of a file, and its code with the mutants.
func spoiled(file string, mutants []mutant) (name, code string, err error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return "", "", err
	}
	code = string(source)
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
	if err != nil {
		return "", "", err
	}
	span := func(n ast.Node) (from, to int) {
		return fset.Position(n.Pos()).Offset, fset.Position(n.End()).Offset
	}
	insert := map[int]string{} // by the place in the code
	for _, m := range mutants {
		at := strings.Index(code, m.text)
		if at < 0 || strings.LastIndex(code, m.text) != at {
			return "", "", fmt.Errorf("not there once: %s", m.text)
		}
		applies := fmt.Sprintf("if %s == %q { ", variable, strconv.Itoa(m.number))
		done := false
		for n := range ast.Preorder(parsed) {
			f, isFunction := n.(*ast.FuncDecl)
			l, isLiteral := n.(*ast.BasicLit)
			if isFunction && f.Body != nil {
				n = f.Body
			}
			from, to := span(n)
			if done || from > at || to < at+len(m.text) {
				continue
			}
			mutated := code[from:at] + m.by + code[at+len(m.text):to]
			switch {
			case isFunction && f.Type.Results != nil:
				// The copy of the body sees the receiver and the parameters.
				first, last := span(f.Type.Results)
				insert[from+1] += "\n" + applies + "return func() " + code[first:last] + mutated + "() }\n"
				done = true
			case isFunction:
				insert[from+1] += "\n" + applies + "func() " + mutated + "(); return }\n"
				done = true
			case isLiteral && l.Kind == token.STRING:
				insert[from] += "func() string { " + applies + "return " + mutated + " }; return "
				insert[to] += " }()"
				done = true
			}
		}
		if !done {
			return "", "", fmt.Errorf("neither in a function nor in a string: %s", m.text)
		}
	}
	for _, place := range slices.Backward(slices.Sorted(maps.Keys(insert))) {
		code = code[:place] + insert[place] + code[place:]
	}
	return parsed.Name.Name, code, nil
}
