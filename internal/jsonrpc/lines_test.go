package jsonrpc

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// linesOf are the lines of a reader, then its error.
func linesOf(r io.Reader, most int) (all []string) {
	for l := NewLines(r, most); ; {
		line, err := l.Next()
		switch {
		case errors.Is(err, ErrTooLong):
			if len(line) > most+1<<16 {
				all = append(all, "held too much")
			}
			all = append(all, "too long")
		case err != nil:
			return append(all, err.Error())
		default:
			all = append(all, string(line))
		}
	}
}

// TestLines: lines of any length in any pieces.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", 200_000) // more than the buffer
	for _, c := range []struct {
		in, want string
		most     int
	}{
		{"", "EOF", 10},
		{"\n\r\n", "||EOF", 10},
		{"a\nb", "a|b|EOF", 10},
		{"a\r\r\nb\n", "a|b|EOF", 10},
		{"0123456789\r\n0123456789a\nb\n", "0123456789|too long|b|EOF", 10},
		{"0123456789a", "too long|EOF", 10},
		{long + "\na\n" + long + "b\nc", long + "|a|too long|c|EOF", len(long)},
		{long + "\n" + long + "\na", "too long|too long|a|EOF", 10},
		{long, "too long|EOF", 10},
	} {
		for name, r := range map[string]io.Reader{
			"at once":    strings.NewReader(c.in),
			"with error": iotest.DataErrReader(strings.NewReader(c.in)),
			"halves":     iotest.HalfReader(strings.NewReader(c.in)),
		} {
			if got := strings.Join(linesOf(r, c.most), "|"); got != c.want {
				t.Errorf("%.20q %s: got %.100q, want %.100q", c.in, name, got, c.want)
			}
		}
	}
	if got := strings.Join(linesOf(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(errors.New("broken"))), 10), "|"); got != "a|b|broken" {
		t.Error(got)
	}
}

// endless is a line without an end, of which so many bytes are read.
type endless struct{ left int }

func (r *endless) Read(p []byte) (int, error) {
	n := min(len(p), r.left)
	for i := range p[:n] {
		p[i] = 'x'
	}
	if r.left -= n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// TestLinesWithoutEnd: a line that never ends is told of once, before its end, and takes no memory.
func TestLinesWithoutEnd(t *testing.T) {
	const size = 64 << 20
	in := &endless{left: size}
	l := NewLines(in, 1000)
	if _, err := l.Next(); !errors.Is(err, ErrTooLong) || size-in.left > 1<<20 {
		t.Fatalf("%v after %d bytes", err, size-in.left)
	}
	allocated := testing.AllocsPerRun(1, func() {
		if _, err := l.Next(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
	if allocated > 10 {
		t.Errorf("%v allocations", allocated)
	}
}

// TestWriterFails: after a line that the peer did not take every later one fails at once.
func TestWriterFails(t *testing.T) {
	pipe, toPipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer toPipe.Close()
	in, toMemory := io.Pipe()
	defer in.Close()
	for name, out := range map[string]io.Writer{"with deadlines": toPipe, "without": toMemory} {
		w := NewWriter(out, 20*time.Millisecond)
		if err := w.Write(t.Context(), make([]byte, 1<<20)); !errors.Is(err, ErrNotReading) {
			t.Errorf("%s: %v", name, err)
		}
		<-w.Broken()
		if err := w.Write(t.Context(), []byte("x")); !errors.Is(err, ErrNotReading) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := NewWriter(iotest.TruncateWriter(io.Discard, 0), time.Minute)
	ended, end := context.WithCancel(t.Context())
	end()
	if err := w.Write(ended, []byte("x")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.Close()
	if err := w.Write(t.Context(), []byte("x")); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	closed := NewWriter(toPipe, time.Minute)
	toPipe.Close()
	if err := closed.Write(t.Context(), []byte("x")); err == nil || !strings.HasPrefix(err.Error(), "cannot write: ") {
		t.Error(err)
	}
}
