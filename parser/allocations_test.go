package parser

import (
	"strings"
	"testing"
)

// TestAllocationsPerPiece holds that most pieces of a text take no memory of their own.
func TestAllocationsPerPiece(t *testing.T) {
	const pieces = 400
	piece := []byte("some more words ")
	perPiece := testing.AllocsPerRun(5, func() {
		s := NewStream(Options{})
		for range pieces {
			s.Write(piece)
		}
	}) / pieces
	if perPiece > 0.1 {
		t.Errorf("%.2f allocations a piece, want at most 0.1", perPiece)
	}
}

// TestReleasedTextStays: what a piece has released is never written to again.
func TestReleasedTextStays(t *testing.T) {
	s := NewStream(Options{})
	var released [][]byte
	var want []string
	for i := range 600 {
		text := strings.Repeat(string(rune('a'+i%26)), 1+i%40) + " "
		out := s.Write([]byte(text))
		released, want = append(released, out), append(want, string(out))
	}
	for i, out := range released {
		if string(out) != want[i] {
			t.Fatalf("piece %d is %q, was %q", i, out, want[i])
		}
	}
}
