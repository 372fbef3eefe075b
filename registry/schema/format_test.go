package schema

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
)

// TestFormatSuite evaluates the official cases of each format. The differences are listed:
// a host name's A-labels are not decoded, and regular expressions are RE2, not ECMA-262.
func TestFormatSuite(t *testing.T) {
	var want struct {
		Differs map[string]int `json:"differs"`
		Refused map[string]int `json:"refused"`
	}
	readJSON(t, filepath.Join("testdata", "suite", "formats.json"), &want)
	if !corpora.Whole("schema_suite") {
		want.Differs, want.Refused = nil, nil // of the sample all agrees
	}
	differs, refused := map[string]int{}, map[string]int{}
	for _, path := range filesUnder(t, corpora.Path(t, "schema_suite", "tests", "draft2020-12", "optional", "format")) {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		var cases []suiteCase
		readJSON(t, path, &cases)
		for _, c := range cases {
			s, faults := read(c.Schema, Options{Authored: true})
			if len(faults) > 0 {
				refused[name] += len(c.Tests)
				continue
			}
			for _, test := range c.Tests {
				if got := len(s.Evaluate("suite", decoded(t, test.Data))) == 0; got != test.Valid {
					differs[name]++
				}
			}
		}
	}
	if !maps.Equal(differs, want.Differs) || !maps.Equal(refused, want.Refused) {
		t.Errorf("differs %v, refused %v; expected %v, %v", differs, refused, want.Differs, want.Refused)
	}
}
