package schema

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/refusal"
)

type evaluationCases struct {
	Why    string          `json:"why"`
	Open   bool            `json:"open"`
	Schema json.RawMessage `json:"schema"`
	Cases  []struct {
		Args json.RawMessage `json:"args"`
		Want []string        `json:"want"` // code, pointer, place, and the message if it is stated
	} `json:"cases"`
}

// compile compiles a schema of its own.
func compile(schema string, o Options) (*Schema, error) {
	s, faults := NewCompiler().Compile(json.RawMessage(schema), o)
	if len(faults) > 0 {
		return nil, fmt.Errorf("%v", faults)
	}
	return s, nil
}

// compiled compiles a schema that must compile.
func compiled(tb testing.TB, schema string) *Schema {
	tb.Helper()
	s, err := compile(schema, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func spelled(v Violation) string {
	pointer := ""
	for _, token := range v.Path {
		pointer += "/" + refusal.EscapePointer(token)
	}
	return string(v.Code) + " " + pointer + " " + [...]string{"value", "name", "parent"}[v.At] + " " + v.Message
}

func TestViolations(t *testing.T) {
	for _, path := range filesUnder(t, filepath.Join("testdata", "evaluate")) {
		var files []evaluationCases
		readJSON(t, path, &files)
		for _, f := range files {
			if len(f.Cases) == 0 {
				t.Fatalf("%s: %s holds no case", path, f.Why)
			}
			e, err := compile(string(f.Schema), Options{Open: f.Open})
			if err != nil {
				t.Errorf("%s: %s: %v", path, f.Why, err)
				continue
			}
			for _, c := range f.Cases {
				args := arguments(t, string(c.Args))
				found := e.Evaluate("web.search", args)
				checkViolations(t, args, found)
				ok := len(found) == len(c.Want)
				for i := range found {
					ok = ok && strings.HasPrefix(spelled(found[i]), c.Want[i])
					if i < len(found) && found[i].Cause != nil {
						t.Errorf("%s: %s: cause %v", f.Schema, c.Args, found[i].Cause)
					}
				}
				if !ok {
					var list []string
					for _, v := range found {
						list = append(list, spelled(v))
					}
					t.Errorf("%s: %s\n%s\nfound\n  %s\nexpected\n  %s", path, f.Why, c.Args, strings.Join(list, "\n  "), strings.Join(c.Want, "\n  "))
				}
			}
		}
	}
}
