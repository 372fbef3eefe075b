package text_test

import (
	"testing"

	"github.com/callgate/callgate/internal/text"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 0, ""}, {"abc", 3, "abc"}, {"abc", 2, "ab"}, {"abc", 0, ""},
		{"aé", 3, "aé"}, {"aé", 2, "a"}, {"é", 1, ""}, {"a😀b", 4, "a"}, {"a😀b", 5, "a😀"},
		{"\x80\x80\x80", 2, ""}, // no code point begins in it
	} {
		if got := text.Cut(c.text, c.most); got != c.want {
			t.Errorf("%q, %d: %q, expected %q", c.text, c.most, got, c.want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 tools", 1: "1 tool", 2: "2 tools"} {
		if got := text.Count(n, "tool"); got != want {
			t.Errorf("%d: %q, expected %q", n, got, want)
		}
	}
}
