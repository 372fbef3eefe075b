package cli

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	printed := func(asJSON bool) string {
		var out strings.Builder
		table := NewTable(&out, asJSON, "NAME", "N")
		for _, name := range []string{"long name", "b"} {
			if err := table.Print(map[string]string{"name": name}, name, "1"); err != nil {
				t.Fatal(err)
			}
		}
		if err := table.Flush(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got, want := printed(false), "NAME       N\nlong name  1\nb          1\n"; got != want {
		t.Errorf("columns are %q; expected %q", got, want)
	}
	if got, want := printed(true), "{\"name\":\"long name\"}\n{\"name\":\"b\"}\n"; got != want {
		t.Errorf("JSON is %q; expected %q", got, want)
	}
}

func TestFirstLine(t *testing.T) {
	for text, want := range map[string]string{
		" one \ntwo":              "one ",
		"a\x1b[31mb\u202e":        `a\u001b[31mb\u202e`,
		strings.Repeat("é", 72):   strings.Repeat("é", 72),
		strings.Repeat("é", 73):   strings.Repeat("é", 71) + "…",
		"quoted \"inside\" stays": `quoted \"inside\" stays`,
	} {
		if got := FirstLine(text); got != want {
			t.Errorf("FirstLine(%q) = %q; expected %q", text, got, want)
		}
	}
}
