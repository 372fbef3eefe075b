package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/kaptinlin/jsonschema"
)

// decoded reads JSON as the strict reader in front of the registry does.
func decoded(tb testing.TB, raw []byte) any {
	tb.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		tb.Fatalf("decode %.80s: %v", raw, err)
	}
	return v
}

func arguments(tb testing.TB, raw string) map[string]any {
	tb.Helper()
	m, ok := decoded(tb, []byte(raw)).(map[string]any)
	if !ok {
		tb.Fatalf("%s is not an object", raw)
	}
	return m
}

func readJSON(tb testing.TB, path string, into any) {
	tb.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
}

func filesUnder(tb testing.TB, root string) []string {
	tb.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".json" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	if len(files) == 0 {
		tb.Fatalf("no case found under %s", root)
	}
	return files
}

// Evaluate judges a value from its text on.
func (s *Schema) Evaluate(tool string, v any) []Violation {
	raw, _ := json.Marshal(v)
	return s.Judge(tool, raw, func() any { return v })
}

// AcceptsJSON reports whether the program of a plain schema accepts a text.
func (s *Schema) AcceptsJSON(raw []byte) bool {
	if s.plain == nil {
		return false
	}
	accepted, _ := s.plain.Judge(raw)
	return accepted
}

// accepts reports whether the library accepts a value.
func (w *library) accepts(v any) (ok bool) {
	err := w.judge(v, 0, func(r *jsonschema.EvaluationResult) { ok = r.IsValid() })
	return ok && err == nil
}

// noLoader is a loader of no documents.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("nothing is fetched") }
