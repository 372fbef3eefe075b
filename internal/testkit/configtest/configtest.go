// Package configtest holds the configurations that tests of configs and of its reloading
// start from.
package configtest

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/callgate/callgate/configs/document"
)

// File is one file of a configuration under test.
type File struct {
	Data      string
	Directory bool
}

// ReadFiles reads the files of an archive. A name may be followed by a word in
// parentheses:
//
//	(deleted)    the base's file is left out
//	(directory)  a directory stands in its place
//	(quoted)     each line is a quoted Go string; the file is all of them joined
//
// so that cases can hold what an editor would not show or keep.
func ReadFiles(t testing.TB, a *txtar.Archive) (files map[string]File, left []string) {
	t.Helper()
	files = map[string]File{}
	for _, f := range a.Files {
		name, how, _ := strings.Cut(f.Name, " ")
		switch how {
		case "":
			files[name] = File{Data: string(f.Data)}
		case "(deleted)":
			left = append(left, name)
		case "(directory)":
			files[name] = File{Directory: true}
		case "(quoted)":
			var b strings.Builder
			for line := range strings.Lines(string(f.Data)) {
				part, err := strconv.Unquote(strings.TrimSuffix(line, "\n"))
				if err != nil {
					t.Fatalf("%s: found the line %q; expected a quoted string", f.Name, line)
				}
				b.WriteString(part)
			}
			files[name] = File{Data: b.String()}
		default:
			t.Fatalf("found the file %q; expected (deleted), (directory) or (quoted) after its name", f.Name)
		}
	}
	return files, left
}

// Archive parses an archive of testdata.
func Archive(t testing.TB, elements ...string) *txtar.Archive {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join(append([]string{Testdata()}, elements...)...))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Base is the valid configuration that every test starts from.
func Base(t testing.TB) map[string]File {
	t.Helper()
	files, _ := ReadFiles(t, Archive(t, "base.txtar"))
	if len(files) != 7 {
		t.Fatalf("the base holds %d files; expected 7", len(files))
	}
	return files
}

// With returns the base with files replaced.
func With(t testing.TB, changed map[string]string) map[string]File {
	t.Helper()
	files := Base(t)
	for name, data := range changed {
		files[name] = File{Data: data}
	}
	return files
}

// Write puts a configuration into a folder and returns its main file.
func Write(t testing.TB, dir string, files map[string]File) string {
	t.Helper()
	for name, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if f.Directory {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.WriteFile(path, []byte(f.Data), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "callgate.yaml")
}

// Override lays the files of a case over the base.
func Override(t testing.TB, a *txtar.Archive) map[string]File {
	t.Helper()
	files := Base(t)
	changed, left := ReadFiles(t, a)
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

// Memory is a configuration that is not on disk: configs.Files for the tests that load
// thousands of them.
type Memory map[string]string

// ReadFile returns the content of a file; the error of one that is absent is fs.ErrNotExist.
func (m Memory) ReadFile(name string) ([]byte, error) {
	data, there := m[name]
	if !there {
		return nil, document.WithoutPath(&fs.PathError{Path: name, Err: fs.ErrNotExist})
	}
	return []byte(data), nil
}

// Glob returns the names of the files that match a pattern of package path, sorted.
func (m Memory) Glob(pattern string) ([]string, error) {
	var found []string
	for name := range m {
		if matched, err := path.Match(pattern, name); err != nil {
			return nil, err
		} else if matched {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found, nil
}

// InMemory is the base as a Memory.
func InMemory(t testing.TB) Memory {
	t.Helper()
	m := Memory{}
	for name, f := range Base(t) {
		m[name] = f.Data
	}
	return m
}

// LeastCases is the least number of cases in testdata/faulty: a loader that finds less is broken.
const LeastCases = 75

// Secrets stand in cases wherever something is that nobody may print.
var Secrets = regexp.MustCompile(`(?i)hunter2|c0ffee`)

// Testdata is the folder of the cases, from any folder of the repository.
func Testdata() string {
	for up, folder := ".", filepath.Join("configs", "testdata"); ; up = filepath.Join("..", up) {
		if _, err := os.Stat(filepath.Join(up, folder)); err == nil || len(up) > 64 {
			return filepath.Join(up, folder)
		}
	}
}
