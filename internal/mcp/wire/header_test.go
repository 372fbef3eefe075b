package wire_test

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/mcp/wire"
)

func TestHeader(t *testing.T) {
	for text, header := range map[string]string{
		"web_search":     "web_search",
		"a b":            "a b",
		"":               "",
		" a":             "=?base64?IGE=?=",
		"ä":              "=?base64?w6Q=?=",
		"a\r\nX: y":      "=?base64?YQ0KWDogeQ==?=",
		"=?base64?x?=":   "=?base64?PT9iYXNlNjQ/eD89?=",
		"=?base64?x":     "=?base64?x",
		"Bearer \u007f!": "=?base64?QmVhcmVyIH8h?=",
	} {
		if got := wire.EncodeHeader(text); got != header {
			t.Errorf("%q is written as %q, expected %q", text, got, header)
		}
		if got, ok := wire.DecodeHeader(header); !ok || got != text {
			t.Errorf("%q is read as %q, %v; expected %q", header, got, ok, text)
		}
	}
	for _, bad := range []string{"=?base64?YQ?=", "=?base64?Y?="} {
		if got, ok := wire.DecodeHeader(bad); ok {
			t.Errorf("%q is read as %q", bad, got)
		}
	}
}

func FuzzHeader(f *testing.F) {
	for _, s := range []string{"", "a", " a ", "=?base64?", "ä\n", "=?base64?YQ==?="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		value := wire.EncodeHeader(s)
		if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) || strings.TrimSpace(value) != value {
			t.Fatalf("%q is written as %q", s, value)
		}
		if got, ok := wire.DecodeHeader(value); !ok || got != s {
			t.Fatalf("%q is read back as %q, %v", s, got, ok)
		}
	})
}
