package configs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/callgate/callgate/configs/document"
)

// pointed tests that the JSON Pointer of a fault leads to the place that its line and column name.
// A fault without one is of the text of a file, or of a file without keys.
func pointed(t *testing.T, f *document.Fault) {
	t.Helper()
	root, readable := rootOf(f.File)
	if !readable {
		return
	}
	pointer, ok := f.Pointer()
	if !ok {
		if f.Column > 0 {
			t.Error("there is no pointer")
		}
		return
	}
	value, there := root.Resolve(pointer)
	key := root.At(pointer)
	if at := [2]int{f.Line, f.Column}; !there || at != [2]int{value.Line, value.Column} && at != [2]int{key.Line, key.Column} {
		t.Errorf("%v: %q leads to %d:%d", f, pointer, value.Line, value.Column)
	}
}

// rootOf reads a file as it is read for a configuration, if it is of YAML or JSON and can be read.
func rootOf(file string) (document.Node, bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return document.Node{}, false
	}
	switch filepath.Ext(file) {
	case ".yaml":
		return document.ReadYAML(&document.Report{}, file, data)
	case ".json":
		return document.ReadJSON(&document.Report{}, file, data)
	}
	return document.Node{}, false
}

// TestPointers: warnings have pointers, keys are escaped, and the whole file is "".
func TestPointers(t *testing.T) {
	read := func(data string, at func(n document.Node)) document.Faults {
		r := &document.Report{}
		n, ok := document.ReadYAML(r, "f.yaml", []byte(data))
		if !ok {
			t.Fatal(r.Err())
		}
		at(n)
		r.Warnings.Locate()
		return r.Warnings
	}
	found := read("a/b: [{c~: 1}, 2]\n# end\n", func(n document.Node) {
		n.Warn("whole")
		n.At("/a~1b").Warn("key")
		n.At("/a~1b/0/c~0").Warn("deep")
		n.At("/a~1b/1").Warn("element")
	})
	for i, want := range []string{"", "/a~1b", "/a~1b/0/c~0", "/a~1b/1"} {
		if pointer, ok := found[i].Pointer(); !ok || pointer != want {
			t.Errorf("%s: %q, %t; expected %q", found[i].Message, pointer, ok, want)
		}
	}
	if _, ok := (&document.Fault{File: "policy.csv", Line: 1}).Pointer(); ok {
		t.Error("a fault without a node has a pointer")
	}
}
