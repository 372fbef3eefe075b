package corpora

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// files are the files below a folder, by their paths in it.
func files(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			path, err = filepath.Rel(root, path)
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSampleStandsIn: a corpus that is not here is read from our sample; one that is
// here is read itself, and whole.
func TestSampleStandsIn(t *testing.T) {
	root := t.TempDir()
	t.Setenv("CALLGATE_CORPORA", root)
	path := Path(&ends{TB: t}, "bfcl_schemas", "bfcl_schemas.jsonl.gz")
	if want := Testdata("samples", "bfcl_schemas", "bfcl_schemas.jsonl"); path != want || Whole("bfcl_schemas") || Count("bfcl_schemas", 2, 1) != 1 {
		t.Errorf("without the corpus: %s, want %s", path, want)
	}
	want := filepath.Join(root, "bfcl_schemas", "bfcl_schemas.jsonl.gz")
	if err := os.Mkdir(filepath.Dir(want), 0o700); err != nil {
		t.Fatal(err)
	}
	if failed(t, func(t testing.TB) { Path(t, "bfcl_schemas", "bfcl_schemas.jsonl.gz") }) == "" {
		t.Error("a corpus without its file is read")
	}
	if err := os.WriteFile(want, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if path := Path(t, "bfcl_schemas", "bfcl_schemas.jsonl.gz"); path != want || !Whole("bfcl_schemas") || Count("bfcl_schemas", 2, 1) != 2 {
		t.Errorf("with the corpus: %s, want %s", path, want)
	}
	if failed(t, func(t testing.TB) { Path(t, "no_such_corpus", "x") }) == "" {
		t.Error("a sample that is not there is read")
	}
}

// ends is a test that notes how it fails, and ends there.
type ends struct {
	testing.TB
	why string
}

func (e *ends) Helper()             {}
func (e *ends) Logf(string, ...any) {}
func (e *ends) Fatal(args ...any) {
	e.why = args[0].(error).Error()
	panic(e)
}

// failed tells how a function fails its test, where it does.
func failed(t *testing.T, f func(testing.TB)) (why string) {
	e := &ends{TB: t}
	defer func() {
		if r := recover(); r != nil && r != e {
			panic(r)
		}
		why = e.why
	}()
	f(e)
	return ""
}

// TestSchemasAreUnchanged compares our copies of the protocols' schemas with those
// beside the corpora, where these are here.
func TestSchemasAreUnchanged(t *testing.T) {
	others := filepath.Join(filepath.Dir(folder("")), "protocols", "schemas")
	if _, err := os.Stat(others); err != nil {
		t.Skipf("left out: there is nothing to compare testdata/schemas with (%v)", err)
	}
	for _, path := range files(t, Testdata("schemas")) {
		if path == "README.md" {
			continue
		}
		ours, err := os.ReadFile(Testdata("schemas", path))
		if err != nil {
			t.Fatal(err)
		}
		if theirs, err := os.ReadFile(filepath.Join(others, path)); err != nil || !bytes.Equal(ours, theirs) {
			t.Errorf("%s is not the same: %v", path, err)
		}
	}
}
