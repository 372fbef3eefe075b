package toolimport_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/callgate/callgate/configs"
)

var update = flag.Bool("update", false, "write what is found into the cases of testdata")

// with returns the valid configuration that tests of configs start from, with files
// replaced.
func with(t testing.TB, changed map[string]string) map[string]string {
	t.Helper()
	base, err := txtar.ParseFile(filepath.Join("..", "testdata", "base.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range base.Files {
		files[f.Name] = string(f.Data)
	}
	maps.Copy(files, changed)
	return files
}

// loads loads files that have no fault.
func loads(t testing.TB, files map[string]string) *configs.Config {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := configs.Load(filepath.Join(dir, "callgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

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
