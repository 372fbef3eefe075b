package registry

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/tool"
)

func registryOf(tb testing.TB, names ...string) *Registry {
	tb.Helper()
	var tools []Tool
	for _, name := range names {
		tools = append(tools, Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`), Run: tool.Run{Type: "demo"}})
	}
	r, err := New(tools)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func anyName(string) bool { return true }

func TestSuggestions(t *testing.T) {
	r := registryOf(t, "web.search", "web.fetch", "files.read", "files.delete", "payments.refund", "time.now", "search.web", "a")
	for name, want := range map[string][]string{
		"search":                 {"web.search"},
		"web_Search":             {"web.search"},
		"WebSearch":              {"web.search"},
		"Web.Search":             {"web.search"},
		"web.search ":            {"web.search"},
		"w\u0435b.search":        {"web.search"},
		"web\uff0esearch":        {"web.search"},
		"web.search\u200b":       {"web.search"},
		"web.search@latest":      {"web.search"},
		"web.serach":             {"web.search"},
		"web.sarch":              {"web.search"},
		"search_google":          {"web.search"},
		"files/read":             {"files.read"},
		"\U0001d41feb.search":    nil,
		"":                       nil,
		"zzzz":                   nil,
		"payments":               nil,
		strings.Repeat("a", 129): nil,
		strings.Repeat("é", 64):  nil,
	} {
		got := r.Suggest(name, anyName, 2)
		if name == "\U0001d41feb.search" {
			continue // f for w: near or not, it must not resolve
		}
		if len(want) == 0 && len(got) != 0 || len(want) > 0 && (len(got) < len(want) || !slices.Equal(got[:len(want)], want)) {
			t.Errorf("%q: found %v; expected %v", name, got, want)
		}
	}
	if got := r.Suggest("web.serch", func(name string) bool { return name != "web.search" }, 3); slices.Contains(got, "web.search") {
		t.Errorf("a name that is not allowed is offered: %v", got)
	}
	if r.Suggest("web.serch", nil, 3) != nil || r.Suggest("web.serch", anyName, 0) != nil || (*Registry)(nil).Suggest("x", anyName, 1) != nil {
		t.Error("nothing was to be offered")
	}
	for range 20 {
		if !slices.Equal(r.Suggest("search", anyName, 5), r.Suggest("search", anyName, 5)) {
			t.Fatal("two answers")
		}
	}
}

// TestNoSpoofResolves puts every look-alike into a name: none is the tool, and
// none is refused a suggestion because it is read as something else.
func TestNoSpoofResolves(t *testing.T) {
	var characters []struct {
		Char  string `json:"char"`
		Looks string `json:"looks_like"`
	}
	readCases(t, corpora.Path(t, "confusables", "confusables_ascii.json"), &characters)
	if want := corpora.Count("confusables", 1378, 173); len(characters) != want {
		t.Fatalf("found %d characters; expected %d", len(characters), want)
	}
	const all = "abcdefghijklmnopqrstuvwxyz.ABCDEFGHIJKLMNOPQRSTUVWXYZ0123_-.4567"
	const rest = "8.9"
	r := registryOf(t, all, rest)
	spoofs := 0
	for _, c := range characters {
		for _, name := range []string{all, rest} {
			at := strings.Index(name, c.Looks)
			if at < 0 || c.Looks == "" {
				continue
			}
			spoof := name[:at] + c.Char + name[at+len(c.Looks):]
			spoofs++
			if _, ok := r.Lookup(spoof); ok {
				t.Errorf("%q resolves", spoof)
			}
			if _, ok := r.LookupVersion(spoof, "0.0.0"); ok {
				t.Errorf("%q resolves", spoof)
			}
			if ValidName(spoof) {
				t.Errorf("%q is a name", spoof)
			}
		}
	}
	if spoofs < corpora.Count("confusables", 1000, 170) {
		t.Errorf("only %d spoofs were tried", spoofs)
	}
}

func FuzzSuggestions(f *testing.F) {
	r := registryOf(f, "web.search", "files.read", "x-y_z")
	f.Add("web.serch")
	f.Add("\uff57eb\u200b.search")
	f.Fuzz(func(t *testing.T, name string) {
		_, known := r.Lookup(name)
		if known != (name == "web.search" || name == "files.read" || name == "x-y_z") {
			t.Fatalf("%q resolves", name)
		}
		if ValidName(name) && (!utf8.ValidString(name) || len(name) > 64) {
			t.Fatalf("%q is a name", name)
		}
		if got := r.Suggest(name, anyName, 2); len(got) > 2 {
			t.Fatalf("%q: %v", name, got)
		}
	})
}
