package refusal_test

import (
	"testing"

	"github.com/callgate/callgate/refusal"
)

// TestPointer: a pointer holds each token of its path, escaped, and no escape is read twice.
func TestPointer(t *testing.T) {
	for want, path := range map[string][]string{
		"": nil, "/": {""}, "/a/b": {"a", "b"}, "/a~1b/~0/~01/~1~0": {"a/b", "~", "~1", "/~"}, "/0/é": {"0", "é"},
	} {
		if got := refusal.Pointer(path...); got != want {
			t.Errorf("%q: %q", path, got)
		}
		for _, token := range path {
			if got := refusal.UnescapePointer(refusal.EscapePointer(token)); got != token {
				t.Errorf("%q comes back as %q", token, got)
			}
		}
	}
}
