package program_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/program"
)

// TestEachLine: text of a program for a terminal does nothing to one, and is bounded.
func TestEachLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"a\nb":                      "a|b",
		"a\r\n\n\r\nb\n":            "a|b",
		"100%\rfaked\n":             `100%\u000dfaked`,
		"\x1b[2J\x1b]0;title\a\n":   `\u001b[2J\u001b]0;title\u0007`,
		"\u202eevil\u200b\n":        `\u202eevil\u200b`,
		"\xff\xfe\x00\n":            "\uFFFD\\u0000",
		"tab\tstays é\n":            "tab\tstays é",
		strings.Repeat("x", 10_000): strings.Repeat("x", 4096) + "|" + strings.Repeat("x", 4096) + "|" + strings.Repeat("x", 1808),
	} {
		var got []string
		program.EachLine(strings.NewReader(text), func(line string) { got = append(got, line) })
		if strings.Join(got, "|") != want {
			t.Errorf("%.50q: got %.100q, want %.100q", text, fmt.Sprint(got), want)
		}
	}
}
