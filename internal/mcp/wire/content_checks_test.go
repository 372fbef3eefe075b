package wire_test

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/mcp/wire"
)

// TestContent: the texts that blocks of content may hold, and their neighbours.
func TestContent(t *testing.T) {
	for name, c := range map[string]struct {
		is      func(string) bool
		yes, no []string
	}{
		"media type": {wire.IsMediaType, []string{"image/png", "text/plain; charset=utf-8", "x", strings.Repeat("x", 256)}, []string{"", " image/png", "image/png\n", "größe", strings.Repeat("x", 257)}},
		"URI":        {wire.IsURI, []string{"file:///a", "a:", "urn:x y"}, []string{"", "a", "a: ", "a:\x00", "ä:"}},
		"base64":     {wire.IsBase64, []string{"", "eA==", "eHk=", "eHl6", "eA=\n=", "eHl6\r\neHl6\r\n", " eH\tl 6"}, []string{"eA", "eB==", "e A=", "e\vA==", "_-==", "eA==="}},
	} {
		for _, s := range c.yes {
			if !c.is(s) {
				t.Errorf("%q is no %s", s, name)
			}
		}
		for _, s := range c.no {
			if c.is(s) {
				t.Errorf("%q is a %s", s, name)
			}
		}
	}
}
