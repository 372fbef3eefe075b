package wrapper_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/callgate/callgate/wrapper"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain é 漢 😀 <&>":             `"plain é 漢 😀 <&>"`,
		"tab\tnewline\n":              `"tab\tnewline\n"`,
		"zero\u200bwidth\u2060":       `"zero\u200bwidth\u2060"`,
		"bidi \u202e\u2066":           `"bidi \u202e\u2066"`,
		"tag \U000e0041":              `"tag \udb40\udc41"`,
		"esc \x1b[31m del \x7f":       `"esc \u001b[31m del \u007f"`,
		"c1 \u009b":                   `"c1 \u009b"`,
		"bom \ufeff":                  `"bom \ufeff"`,
		"heart \u2764\ufe0f":          "\"heart \u2764\ufe0f\"",
		"key 1\ufe0f\u20e3":           "\"key 1\ufe0f\u20e3\"",
		"letter a\ufe0f, a\ufe01":     `"letter a\ufe0f, a\ufe01"`,
		"kana \u3042\ufe0f":           `"kana あ\ufe0f"`,
		"euro \u20ac\ufe0f":           `"euro €\ufe0f"`,
		"supplement \U000e0100":       `"supplement \udb40\udd00"`,
		"line \u2028 paragraph\u2029": `"line \u2028 paragraph\u2029"`,
	} {
		got, err := wrapper.Marshal(in)
		if err != nil || string(got) != want {
			t.Errorf("%q: got %s, want %s (%v)", in, got, want, err)
		}
	}
}

// TestEscapeAfterAnEscape: the last digit of an escape is no key cap.
func TestEscapeAfterAnEscape(t *testing.T) {
	if got := string(wrapper.Escape([]byte("\"\\u0041\ufe0f\""))); got != `"\u0041\ufe0f"` {
		t.Errorf("got %s", got)
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\u200bb\ufe0f\U000e0041\u2764\ufe0f")
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		got, err := wrapper.Marshal(map[string]string{s: s})
		if err != nil {
			t.Fatal(err)
		}
		var back map[string]string
		if err := json.Unmarshal(got, &back); err != nil || back[s] != s {
			t.Fatalf("%q came back as %q: %v", s, back, err)
		}
		for _, r := range string(got) {
			if r < 0x20 || r >= 0x7F && r <= 0x9F || r >= 0x200B && r <= 0x200F || r >= 0x202A && r <= 0x202E || r >= 0xE0000 && r <= 0xE0FFF {
				t.Fatalf("%q: U+%04X stands bare in %s", s, r, got)
			}
		}
	})
}

func TestShown(t *testing.T) {
	for in, want := range map[string]string{
		"":                               "",
		"plain é 漢 😀 <&>\t\r\n":          "plain é 漢 😀 <&>\t\r\n",
		"zero\u200bwidth\u2060":          `zero\u200bwidth\u2060`,
		"bidi \u202e":                    `bidi \u202e`,
		"tag \U000e0041":                 `tag \udb40\udc41`,
		"esc \x1b[31m del \x7f nul \x00": `esc \u001b[31m del \u007f nul \u0000`,
		"heart \u2764\ufe0f":             "heart \u2764\ufe0f",
		"letter a\ufe0f":                 `letter a\ufe0f`,
		"\ufeffstart":                    `\ufeffstart`,
		"back\\slash \"quoted\"":         "back\\slash \"quoted\"",
	} {
		if got := wrapper.EscapeText(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
