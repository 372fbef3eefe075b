package wrapper_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/callgate/callgate/wrapper"
)

// visibleFormat holds the format characters of Unicode (Cf) that draw a sign of their
// own, so that they are not hidden: Arabic number and edition signs, the Kaithi number
// signs.
var visibleFormat = map[rune]bool{
	0x600: true, 0x601: true, 0x602: true, 0x603: true, 0x604: true, 0x605: true, 0x6DD: true,
	0x890: true, 0x891: true, 0x8E2: true, 0x110BD: true, 0x110CD: true,
}

// TestHiddenCodePoints walks the tables of Unicode: each control, format and
// separator character, and each that renderers ignore by default, is written as an
// escape, or is on the list of those that can be seen.
func TestHiddenCodePoints(t *testing.T) {
	tables := map[string]*unicode.RangeTable{
		"Cc": unicode.Cc, "Cf": unicode.Cf, "Zl": unicode.Zl, "Zp": unicode.Zp,
		"Other_Default_Ignorable_Code_Point": unicode.Other_Default_Ignorable_Code_Point,
		"Variation_Selector":                 unicode.Variation_Selector,
		"Bidi_Control":                       unicode.Bidi_Control,
	}
	seen, visible := 0, 0
	for name, table := range tables {
		for r := rune(0); r <= unicode.MaxRune; r++ {
			if !unicode.Is(table, r) || r == '\t' || r == '\n' || r == '\r' {
				continue
			}
			seen++
			// Between letters, so that a variation selector chooses no emoji form.
			text := "a" + string(r) + "b"
			quoted, err := wrapper.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			if visibleFormat[r] {
				visible++
				if !strings.ContainsRune(string(quoted), r) || wrapper.EscapeText(text) != text {
					t.Errorf("%s: %U can be seen, and is written as %s", name, r, quoted)
				}
				continue
			}
			if strings.ContainsRune(string(quoted), r) || strings.ContainsRune(wrapper.EscapeText(text), r) {
				t.Errorf("%s: %U stands as it is in %q", name, r, quoted)
			}
		}
	}
	if seen < 400 || visible != len(visibleFormat) {
		t.Errorf("looked at %d code points, of which %d can be seen", seen, visible)
	}
}

// TestHiddenRanges names the code points that were passed on once, whatever version
// of Unicode the tables above are.
func TestHiddenRanges(t *testing.T) {
	hidden := []rune{0x70F}
	for r := rune(0x13430); r <= 0x1343F; r++ {
		hidden = append(hidden, r)
	}
	for _, r := range hidden {
		if got := wrapper.EscapeText("a" + string(r)); got == "a"+string(r) {
			t.Errorf("%U stands as it is", r)
		}
	}
	if got, want := wrapper.EscapeText("\U00013430\u070f"), `\ud80d\udc30\u070f`; got != want {
		t.Errorf("found %s; expected %s", got, want)
	}
}
