package registry

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/callgate/callgate/registry/schema"
)

// decodeJSON reads JSON as the strict reader in front of the registry does.
func decodeJSON(tb testing.TB, raw []byte) any {
	tb.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		tb.Fatalf("decode %.80s: %v", raw, err)
	}
	return v
}

func argumentsOf(tb testing.TB, raw string) map[string]any {
	tb.Helper()
	m, ok := decodeJSON(tb, []byte(raw)).(map[string]any)
	if !ok {
		tb.Fatalf("%s is not an object", raw)
	}
	return m
}

// readCases reads a file of cases.
func readCases(tb testing.TB, path string, into any) {
	tb.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
}

// Evaluate judges arguments from their text on.
func (e *Entry) Evaluate(args map[string]any) []schema.Violation {
	raw, _ := json.Marshal(args)
	return e.Judge(e.Name(), raw, func() map[string]any { return args })
}
