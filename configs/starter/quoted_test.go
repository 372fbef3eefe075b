package starter

import (
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestQuoted: any text is the same in YAML.
func TestQuoted(t *testing.T) {
	for _, text := range []string{
		"", "plain", "yes", "1.5", "a: b # c", "\"\\", `\ud83d\ude00`, `\\udb40\udc41`, "\u202e\u2028\u0085\u007f\x00\t\r\n", "😀", "\U000e0041\U0001d173\U000e0100", "\ufeff\ufffe\uffff", "\U0001fffe\U0003ffff\U0010ffff",
	} {
		written := "a: " + quoted(text) + "\nb: [" + quoted(text) + "]\n"
		var read struct {
			A string
			B []string
		}
		if err := yaml.Unmarshal([]byte(written), &read); err != nil || read.A != text || read.B[0] != text {
			t.Errorf("%q is written as %s and read as %q: %v", text, written, read, err)
		}
	}
}
