package configs

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/configs/document"

	"github.com/callgate/callgate/configs/toolfile"
	"github.com/callgate/callgate/internal/testkit/configtest"
	"github.com/callgate/callgate/policy/lab"
	"github.com/callgate/callgate/ratelimit/budget"
)

// seeds adds the files of the base and of every faulty case whose name ends so.
func seeds(f *testing.F, ending string) {
	f.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "faulty", "*.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	added := 0
	for _, path := range append(paths, filepath.Join("testdata", "base.txtar")) {
		a, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		files, _ := configtest.ReadFiles(f, a)
		for name, e := range files {
			if strings.HasSuffix(name, ending) && !e.Directory {
				f.Add([]byte(e.Data))
				added++
			}
		}
	}
	if added == 0 {
		f.Fatalf("no file ends in %s", ending)
	}
}

// most is the size of an input beyond which nothing new is learnt.
const most = 1 << 15

// FuzzLoadYAML reads any bytes as each of the YAML files: it never panics, says
// something in one line where it refuses, and holds only text that JSON can say.
func FuzzLoadYAML(f *testing.F) {
	seeds(f, ".yaml")
	builtIn, err := Default("")
	if err != nil {
		f.Fatal(err)
	}
	tested, err := builtIn.testConfig()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > most {
			return
		}
		for _, complete := range [][]byte{data, append(bytes.Clone(data), "\n# end\n"...)} {
			var r document.Report
			root, ok := document.ReadYAML(&r, "fuzz.yaml", complete)
			judged(t, &r)
			if ok != (len(r.Faults) == 0) {
				t.Fatalf("read: %v, with the faults %v", ok, r.Err())
			}
			if !ok {
				continue
			}
			clean(t, root)
			for _, read := range []func(){
				func() { readSettings(root) },
				func() { toolfile.Read(&r, "fuzz.yaml", complete) },
				func() { readWorkspaces(root, "/base") },
				func() { readLimits(root, &budget.Set{}) },
				func() { readPrices(root, &budget.Set{}) },
				func() { readPrincipals(root) },
				func() { lab.NewTestReader(tested, &r).Read("fuzz.yaml", complete) },
			} {
				r.Faults = nil
				read()
				judged(t, &r)
			}
			r.Faults = nil
			if written, ok := root.JSON(); ok != (len(r.Faults) == 0) || ok && !json.Valid(written) {
				t.Fatalf("written as JSON: %v, %q, with the faults %v", ok, written, r.Err())
			}
		}
	})
}

// judged holds what every report owes its reader.
func judged(t *testing.T, r *document.Report) {
	t.Helper()
	if len(r.Faults) > document.MaxFaults {
		t.Fatalf("%d faults are reported; expected at most %d", len(r.Faults), document.MaxFaults)
	}
	for _, f := range r.Faults {
		if output := f.Error(); strings.ContainsAny(output, "\n\r\t") || !utf8.ValidString(output) {
			t.Errorf("a fault is not one line of text: %q", output)
		}
		if f.Line < 0 || f.Column < 0 {
			t.Errorf("a fault is at %d:%d", f.Line, f.Column)
		}
	}
}

// clean holds what ReadYAML promises of a tree that it returns.
func clean(t *testing.T, n document.Node) {
	t.Helper()
	if n.Anchor != "" || n.Kind == yaml.AliasNode || !utf8.ValidString(n.Value) {
		t.Fatalf("%d:%d: an anchor, an alias or a value that is not UTF-8", n.Line, n.Column)
	}
	if n.IsMapping() {
		seen := map[string]bool{}
		for i := 0; i < len(n.Content); i += 2 {
			if key := n.Content[i]; key.ShortTag() != "!!str" || seen[key.Value] {
				t.Fatalf("%d:%d: the key %q is no string, or stands twice", key.Line, key.Column, key.Value)
			}
			seen[n.Content[i].Value] = true
		}
	}
	for _, c := range n.Content {
		clean(t, n.With(c))
	}
}

// FuzzLoadJSON reads any bytes as a JSON file: what is accepted is what
// encoding/json reads, value for value and digit for digit.
func FuzzLoadJSON(f *testing.F) {
	seeds(f, ".json")
	for _, seed := range []string{`1e400`, `-0`, `"\ud83d\ude00"`, `[1.50, "a\u0000", null, true]`, `{"":{"a":[]}}`, "\"\u2028\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > most {
			return
		}
		var r document.Report
		root, ok := document.ReadJSON(&r, "fuzz.json", data)
		judged(t, &r)
		if ok != (len(r.Faults) == 0) {
			t.Fatalf("read: %v, with the faults %v", ok, r.Err())
		}
		toolfile.Read(&document.Report{}, "fuzz.json", data)
		if !ok {
			return
		}
		places(t, root, data)
		written, ok := root.JSON()
		if !ok {
			t.Fatalf("it cannot be written as JSON again: %v", r.Err())
		}
		if found, expected := decode(t, written), decode(t, data); !reflect.DeepEqual(found, expected) {
			t.Errorf("it reads as %v; expected %v", found, expected)
		}
	})
}

// decode is what encoding/json reads, with numbers digit by digit.
func decode(t *testing.T, data []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("encoding/json does not read it: %v", err)
	}
	return v
}

// places checks that each value begins where it is said to.
func places(t *testing.T, n document.Node, data []byte) {
	t.Helper()
	lines := strings.Split(string(data), "\n")
	if n.Line < 1 || n.Line > len(lines) {
		t.Fatalf("a value is at line %d of %d", n.Line, len(lines))
	}
	row := []rune(lines[n.Line-1])
	if n.Column < 1 || n.Column > len(row) {
		t.Fatalf("a value is at column %d of %q", n.Column, lines[n.Line-1])
	}
	begins := "\""
	switch {
	case n.IsMapping():
		begins = "{"
	case n.IsList():
		begins = "["
	case n.Style != yaml.DoubleQuotedStyle:
		begins = n.Value[:1]
	}
	if found := string(row[n.Column-1]); found != begins {
		t.Fatalf("a value that begins with %s is said to be at %s", begins, found)
	}
	for _, c := range n.Content {
		places(t, n.With(c), data)
	}
}
