package wrapper_test

import (
	"testing"

	"github.com/callgate/callgate/wrapper"
)

func TestHidden(t *testing.T) {
	for _, legible := range []string{
		"", "plain é 漢 <&>", "tab\tline\nline\r\n",
		"family 👨\u200d👩\u200d👧, flag 🏳\ufe0f\u200d🌈, heart \u2764\ufe0f\u200d🔥, skin 👩🏽\u200d🚀, key 1\ufe0f\u20e3", // emoji
		"می\u200cخواهم", "क्\u200dष", "ශ්\u200dරී", // Persian, Hindi, Sinhala
	} {
		if r, found := wrapper.Hidden(legible); found {
			t.Errorf("%q: found %U", legible, r)
		}
	}
	for text, want := range map[string]rune{
		"zero\u200bwidth": 0x200B, "bidi \u202e": 0x202E, "isolate \u2066": 0x2066, "tag \U000e0041": 0xE0041,
		"\ufeffstart": 0xFEFF, "soft\u00adhyphen": 0xAD, "esc \x1b[31m": 0x1B, "nul \x00": 0, "del \x7f": 0x7F, "c1 \u009b": 0x9B,
		"alone\rx": '\r', "end\r": '\r', "line \u2028": 0x2028, "a\ufe0f": 0xFE0F, "\U00013430": 0x13430,
		"latin\u200djoined": 0x200D, "latin\u200cjoined": 0x200C, "\u200d": 0x200D, "👨\u200d": 0x200D, "\u200d👩": 0x200D,
		"👨\u200d\u200d👩": 0x200D, "1\u200d2": 0x200D, "👨\u200c👩": 0x200C,
		"می\u200c\u200cخواهم": 0x200C, "می\u200c": 0x200C, "می\u200cabc": 0x200C, "ی\u200c\u061c": 0x200C,
		"bad utf-8 \xff": 0xFFFD,
	} {
		if r, found := wrapper.Hidden(text); !found || r != want {
			t.Errorf("%q: found %U, %v; expected %U", text, r, found, want)
		}
	}
}

func TestLegible(t *testing.T) {
	for in, want := range map[string]string{
		"plain\t\r\n":            "plain\t\r\n",
		"👨\u200d👩":               "👨\u200d👩",
		"می\u200cخواهم":          "می\u200cخواهم",
		"x \u202e\u200b":         `x \u202e\u200b`,
		"a\rb\r\n":               `a\u000db` + "\r\n",
		"tag \U000e0041👨\u200d👩": `tag \udb40\udc41👨` + "\u200d👩",
	} {
		if got := wrapper.EscapeHidden(in); got != want {
			t.Errorf("%q: found %q; expected %q", in, got, want)
		}
		if r, found := wrapper.Hidden(want); found {
			t.Errorf("%q still hides %U", want, r)
		}
	}
}

func FuzzLegible(f *testing.F) {
	f.Add("a\u200b\u202e👨\u200d👩\r\n\r می\u200cخ \U000e0041")
	f.Fuzz(func(t *testing.T, s string) {
		legible := wrapper.EscapeHidden(s)
		if r, found := wrapper.Hidden(legible); found {
			t.Fatalf("%q became %q, which hides %U", s, legible, r)
		}
		if _, found := wrapper.Hidden(s); !found && legible != s {
			t.Fatalf("%q became %q", s, legible)
		}
	})
}
