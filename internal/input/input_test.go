package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
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

// TestAhead: the end is seen while nothing is taken, all that came before it is given then, and a
// reader whose user is done holds nothing up.
func TestAhead(t *testing.T) {
	for name, c := range map[string]struct {
		from io.Reader
		want string
		err  string
	}{
		"its end":  {strings.NewReader(strings.Repeat("a line\n", 1000)), strings.Repeat("a line\n", 1000), "<nil>"},
		"an error": {io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(errors.New("broken"))), "abc", "broken"},
		"a panic":  {io.MultiReader(strings.NewReader("abc"), nil), "abc", "panic: runtime error: invalid memory address or nil pointer dereference"},
	} {
		r, ended := Ahead(c.from, nil)
		<-ended
		got, err := io.ReadAll(r)
		if string(got) != c.want || fmt.Sprint(err) != c.err {
			t.Errorf("%s: found %.20q, %v; expected %.20q, %s", name, got, err, c.want, c.err)
		}
	}

	endless := readerFunc(func(p []byte) (int, error) { return len(p), nil })
	done := make(chan struct{})
	r, ended := Ahead(endless, done)
	if _, err := io.ReadFull(r, make([]byte, 2<<20)); err != nil {
		t.Error(err)
	}
	close(done)
	<-ended
	for range 100 { // what was read before done may still come
		if _, err := r.Read(make([]byte, 1<<20)); errors.Is(err, io.EOF) {
			return
		}
	}
	t.Error("no end after done")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
