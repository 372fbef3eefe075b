package ascii_test

import (
	"testing"

	"github.com/callgate/callgate/internal/ascii"
)

func TestPredicates(t *testing.T) {
	for b := range 256 {
		s := "a" + string([]byte{byte(b)}) + "z"
		if got, want := ascii.IsVisible(s), b > ' ' && b < 0x7f; got != want {
			t.Errorf("%q: visible is %v", s, got)
		}
		if got, want := ascii.IsPrintable(s), b >= ' ' && b < 0x7f; got != want {
			t.Errorf("%q: printable is %v", s, got)
		}
	}
	for _, s := range []string{"é", "\u200b", "ａ", "a\u00a0b", "\xff"} {
		if ascii.IsVisible(s) || ascii.IsPrintable(s) {
			t.Errorf("%q is ASCII", s)
		}
	}
	if !ascii.IsVisible("") || !ascii.IsPrintable("") {
		t.Error("the empty text holds another character")
	}
}

func TestIsToken(t *testing.T) {
	for _, s := range []string{"Region", "a-b_c.9", "!#$%&'*+-.^_`|~"} {
		if !ascii.IsToken(s) {
			t.Errorf("%q is no token", s)
		}
	}
	for _, s := range []string{"", "a b", "a:b", "ä", "a\x00", "\u212a"} {
		if ascii.IsToken(s) {
			t.Errorf("%q is a token", s)
		}
	}
}
