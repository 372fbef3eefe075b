package turns

import (
	"strings"
	"testing"
)

// TestTextOfManyParts: an answer of thousands of texts is put together in one go, not text by text.
func TestTextOfManyParts(t *testing.T) {
	row := &Row{Kind: Text}
	a := &Answer{}
	for range 4096 {
		a.Parts = append(a.Parts, &Part{Row: row, Text: []byte("ab")})
	}
	first := a.Parts[0].Text
	a.Parts[0].Text = first[:1]
	if got := string(a.text(Text)); got != "a"+strings.Repeat("ab", 4095) || string(first) != "ab" {
		t.Errorf("found %d bytes, and the first text is %q", len(got), first)
	}
	if n := testing.AllocsPerRun(1, func() { a.text(Text) }); n > 64 {
		t.Errorf("found %v allocations", n)
	}
}
