package configs

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the errors found into the cases of testdata/faulty")

// entry is one file of a configuration under test.
type entry struct {
	data      string
	directory bool
}

// entries reads the files of an archive. A name may be followed by a word in
// parentheses:
//
//	(deleted)    the base's file is left out
//	(directory)  a directory stands in its place
//	(quoted)     each line is a quoted Go string; the file is all of them joined
//
// so that cases can hold what an editor would not show or keep.
func entries(t testing.TB, archive *txtar.Archive) (files map[string]entry, left []string) {
	t.Helper()
	files = map[string]entry{}
	for _, f := range archive.Files {
		name, how, _ := strings.Cut(f.Name, " ")
		switch how {
		case "":
			files[name] = entry{data: string(f.Data)}
		case "(deleted)":
			left = append(left, name)
		case "(directory)":
			files[name] = entry{directory: true}
		case "(quoted)":
			var b strings.Builder
			for line := range strings.Lines(string(f.Data)) {
				part, err := strconv.Unquote(strings.TrimSuffix(line, "\n"))
				if err != nil {
					t.Fatalf("%s: found the line %q; expected a quoted string", f.Name, line)
				}
				b.WriteString(part)
			}
			files[name] = entry{data: b.String()}
		default:
			t.Fatalf("found the file %q; expected (deleted), (directory) or (quoted) after its name", f.Name)
		}
	}
	return files, left
}

func archive(t testing.TB, elements ...string) *txtar.Archive {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join(append([]string{"testdata"}, elements...)...))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// base is the valid configuration that every test starts from.
func base(t testing.TB) map[string]entry {
	t.Helper()
	files, _ := entries(t, archive(t, "base.txtar"))
	if len(files) != 7 {
		t.Fatalf("the base holds %d files; expected 7", len(files))
	}
	return files
}

// with returns the base with files replaced.
func with(t testing.TB, changed map[string]string) map[string]entry {
	t.Helper()
	files := base(t)
	for name, data := range changed {
		files[name] = entry{data: data}
	}
	return files
}

// write puts a configuration into a folder and returns its main file.
func write(t testing.TB, dir string, files map[string]entry) string {
	t.Helper()
	for name, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if f.directory {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.WriteFile(path, []byte(f.data), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "callgate.yaml")
}

// loads loads files that have no fault.
func loads(t testing.TB, files map[string]entry) *Config {
	t.Helper()
	c, err := Load(write(t, t.TempDir(), files))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// override lays the files of a case over the base.
func override(t testing.TB, a *txtar.Archive) map[string]entry {
	t.Helper()
	files := base(t)
	changed, left := entries(t, a)
	if len(changed)+len(left) == 0 {
		t.Fatal("the case changes no file")
	}
	for _, name := range left {
		if _, there := files[name]; !there {
			t.Fatalf("the case leaves out %s, which the base does not have", name)
		}
		delete(files, name)
	}
	maps.Copy(files, changed)
	return files
}
