package terminal

import (
	"os"
	"testing"
)

// TestWantsColor: NO_COLOR with any value but none, and TERM=dumb, ask for text without color.
func TestWantsColor(t *testing.T) {
	for _, c := range []struct {
		noColor, term string
		want          bool
	}{
		{"", "xterm", true}, {"", "", true}, {"1", "xterm", false}, {"0", "xterm", false}, {"", "dumb", false},
	} {
		getenv := func(name string) string { return map[string]string{"NO_COLOR": c.noColor, "TERM": c.term}[name] }
		if got := wantsColor(getenv); got != c.want {
			t.Errorf("NO_COLOR=%q TERM=%q: %v", c.noColor, c.term, got)
		}
	}
	file, err := os.CreateTemp(t.TempDir(), "file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if Colorful(file) {
		t.Error("a file has color")
	}
}
