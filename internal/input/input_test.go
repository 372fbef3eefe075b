package input

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestContextReader(t *testing.T) {
	waits, _ := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	r := ContextReader(ctx, waits)
	cancel()
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, ErrInterrupted) {
		t.Errorf("a reader that waits: %v", err)
	}
	whole, err := io.ReadAll(ContextReader(t.Context(), io.NopCloser(strings.NewReader("abc"))))
	if err != nil || string(whole) != "abc" {
		t.Errorf("%q, %v", whole, err)
	}
}

func TestLineReader(t *testing.T) {
	r := NewLineReader(strings.NewReader("ab\n\nabcdef\ncd"), 4)
	for _, want := range []string{"ab", "", "too long", "cd", "end"} {
		line, err := r.Next()
		got := string(line)
		switch {
		case errors.Is(err, ErrLineTooLong):
			got = "too long"
		case errors.Is(err, io.EOF):
			got = "end"
		case err != nil:
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("found %q; expected %q", got, want)
		}
	}
}
