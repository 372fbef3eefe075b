package schema

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
)

type suiteCase struct {
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Tests       []struct {
		Description string          `json:"description"`
		Data        json.RawMessage `json:"data"`
		Valid       bool            `json:"valid"`
	} `json:"tests"`
}

// suiteRemotes supplies the documents that the official suite refers to.
func suiteRemotes(tb testing.TB) func(string) (any, bool) {
	root := corpora.Path(tb, "schema_suite", "remotes")
	documents := map[string]any{}
	for _, path := range filesUnder(tb, root) {
		var v any
		readJSON(tb, path, &v)
		rel, err := filepath.Rel(root, path)
		if err != nil {
			tb.Fatal(err)
		}
		documents["http://localhost:1234/"+filepath.ToSlash(rel)] = v
	}
	return func(uri string) (any, bool) {
		v, ok := documents[uri]
		return v, ok
	}
}

// TestSuiteRequired evaluates the official required cases as their authors wrote
// them: all agree but for those that are refused at load, which the table of
// testdata counts by file.
func TestSuiteRequired(t *testing.T) {
	remotes := suiteRemotes(t)
	var want struct {
		Refused      map[string]int `json:"refused"`
		LibraryWrong map[string]int `json:"library_wrong"`
	}
	readJSON(t, filepath.Join("testdata", "suite", "required.json"), &want)
	refused, libraryWrong, total := map[string]int{}, map[string]int{}, 0
	for _, path := range filesUnder(t, corpora.Path(t, "schema_suite", "tests", "draft2020-12")) {
		if strings.Contains(path, "optional") {
			continue
		}
		var cases []suiteCase
		readJSON(t, path, &cases)
		file := strings.TrimSuffix(filepath.Base(path), ".json")
		for _, c := range cases {
			total += len(c.Tests)
			s, faults := read(c.Schema, Options{Authored: true, formatAnnotations: true, allowEmptyEnum: true, remotes: remotes})
			if len(faults) > 0 {
				refused[file] += len(c.Tests)
				continue
			}
			for _, test := range c.Tests {
				v := decoded(t, test.Data)
				if s.library().accepts(v) != test.Valid {
					libraryWrong[file]++
				}
				if found := s.Evaluate("suite", v); (len(found) == 0) != test.Valid {
					t.Errorf("%s: %s: %s: found %v", file, c.Description, test.Description, found)
				}
			}
		}
	}
	if want := corpora.Count("schema_suite", 1299, 294); total != want {
		t.Errorf("found %d tests; expected %d", total, want)
	}
	if !corpora.Whole("schema_suite") {
		want.Refused, want.LibraryWrong = nil, nil // of the sample all agrees
	}
	if !maps.Equal(refused, want.Refused) {
		t.Errorf("refused %v; expected %v", refused, want.Refused)
	}
	if !maps.Equal(libraryWrong, want.LibraryWrong) {
		t.Errorf("the library is wrong in %v; expected %v", libraryWrong, want.LibraryWrong)
	}
}
