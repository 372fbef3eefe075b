package configs

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/callgate/callgate/configs/document"
)

// TestJSONPlaces: every value of a JSON file has its line and its column in characters,
// also where the file is one long line. A reader that counts each line from its start again
// takes minutes here.
func TestJSONPlaces(t *testing.T) {
	const lines = "{\r\n  \"é\": [1, \"日本\\n\", true],\n\t\"b\":\n {\"c\" : null}}\n"
	repeats := 200_000
	if testing.Short() {
		repeats = 20_000
	}
	long := "[" + strings.Repeat("1,\"ü\",", repeats) + "1]"
	for _, text := range []string{lines, long} {
		var r document.Report
		root, ok := document.ReadJSON(&r, "places.json", []byte(text))
		if !ok {
			t.Fatal(r.Err())
		}
		rows := strings.Split(text, "\n")
		values := 0
		var walk func(n document.Node)
		walk = func(n document.Node) {
			values++
			if n.Line < 1 || n.Line > len(rows) {
				t.Fatalf("found line %d", n.Line)
			}
			if len(rows) == 1 {
				return // what follows would count the line again, too
			}
			at := strings.TrimPrefix(string([]rune(rows[n.Line-1])[n.Column-1:]), `"`)
			first, _ := utf8.DecodeRuneInString(n.Value)
			if n.IsMapping() && at[0] != '{' || n.IsList() && at[0] != '[' || n.Value != "" && !strings.HasPrefix(at, string(first)) {
				t.Errorf("found %q at line %d, column %d, where %q stands", n.Value, n.Line, n.Column, at)
			}
			for _, c := range n.Content {
				walk(n.With(c))
			}
		}
		walk(root)
		if len(rows) > 1 && values != 10 {
			t.Errorf("found %d values", values)
		}
		if last := root.Content; len(rows) == 1 && last[len(last)-1].Column != utf8.RuneCountInString(text)-1 {
			t.Errorf("the last value stands at column %d", last[len(last)-1].Column)
		}
	}
}
