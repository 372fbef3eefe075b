package app_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callgate/callgate/app"
)

// file is what a log is written to. It takes nothing while it is blocked.
type file struct {
	blocked sync.Mutex
	mu      sync.Mutex
	bytes.Buffer
	writes int
}

func (f *file) Write(p []byte) (int, error) {
	f.blocked.Lock()
	defer f.blocked.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	return f.Buffer.Write(p)
}

func (f *file) content() (text string, writes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.String(), f.writes
}

// TestLogWriterKeepsEveryLine: many goroutines write lines, some of them directly. Each line is
// there once and whole, those of one goroutine in order, and far fewer writes were made.
func TestLogWriterKeepsEveryLine(t *testing.T) {
	const writers, each = 8, 2000
	var f file
	w := app.NewLogWriter(&f)
	direct := w.Direct()
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			line := make([]byte, 0, 64)
			for n := range each {
				line = fmt.Appendf(line[:0], "%d %d %s\n", i, n, strings.Repeat("x", n%40)) // the writer must not keep it
				var err error
				if n%500 == 499 {
					_, err = direct.Write(line)
					if text, _ := f.content(); !strings.Contains(text, fmt.Sprintf("%d %d x", i, n)) {
						t.Error("a direct line was not written when Write returned")
					}
				} else {
					_, err = w.Write(line)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, writes := f.content()
	next := [writers]int{}
	for line := range strings.Lines(text) {
		var i, n int
		var rest string
		_, err := fmt.Sscanf(line, "%d %d %s\n", &i, &n, &rest)
		if (err != nil && n%40 != 0) || n != next[i] || len(rest) != n%40 {
			t.Fatalf("%q, where line %d of %d was due: %v", line, next[i], i, err)
		}
		next[i]++
	}
	for i, n := range next {
		if n != each {
			t.Errorf("writer %d: %d lines", i, n)
		}
	}
	if writes > writers*each/10 {
		t.Errorf("%d writes for %d lines", writes, writers*each)
	}
}

// TestLogWriterWrites: a line that follows none for 10 ms is in the file when Write returns; others
// follow within 10 ms, together; after Close each is written at once.
func TestLogWriterWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f file
		w := app.NewLogWriter(&f)
		wants := func(want string, writes int) {
			t.Helper()
			if text, n := f.content(); text != want || n != writes {
				t.Errorf("the file has %q after %d writes, expected %q after %d", text, n, want, writes)
			}
		}
		fmt.Fprint(w, "1")
		wants("1", 1)
		for _, line := range []string{"2", "3", "4"} {
			time.Sleep(3 * time.Millisecond)
			fmt.Fprint(w, line)
			wants("1", 1)
		}
		time.Sleep(4 * time.Millisecond)
		synctest.Wait()
		wants("1234", 2)
		time.Sleep(5 * time.Millisecond) // 9 ms after the line before
		fmt.Fprint(w, "5")
		wants("1234", 2)
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		wants("12345", 3)
		fmt.Fprint(w, "6")
		wants("123456", 4)
		fmt.Fprint(w, "7")
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		wants("1234567", 5)
		fmt.Fprint(w, "8")
		wants("12345678", 6)
	})
}

// TestABlockedLogHoldsOneWriter: while the file takes nothing, a writer whose line is written at
// once waits, and those after it do not; their lines follow its own.
func TestABlockedLogHoldsOneWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		var f file
		w := app.NewLogWriter(writerFunc(func(p []byte) (int, error) { <-goOn; return f.Write(p) }))
		go fmt.Fprint(w, "1")
		synctest.Wait()
		time.Sleep(time.Second)
		fmt.Fprint(w, "2")
		fmt.Fprint(w, "3")
		close(goOn)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if text, _ := f.content(); text != "123" {
			t.Errorf("the file has %q", text)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestLogWriterIsBounded: while the file takes nothing, writers wait once the buffer is full,
// and nothing is lost.
func TestLogWriterIsBounded(t *testing.T) {
	var f file
	f.blocked.Lock()
	w := app.NewLogWriter(&f)
	taken := make(chan int, 1000)
	go func() {
		defer close(taken)
		for range 1000 {
			_, _ = w.Write(bytes.Repeat([]byte("l"), 1024))
			taken <- 1
		}
	}()
	last := 0
	for n := -1; n != last; time.Sleep(50 * time.Millisecond) {
		n, last = last, len(taken)
	}
	if last > 200 {
		t.Errorf("%d lines of 1 KiB were taken while none could be written", last)
	}
	f.blocked.Unlock()
	for range taken { // until all were taken
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if text, _ := f.content(); len(text) != 1000*1024 {
		t.Errorf("%d bytes were written", len(text))
	}
}

// TestLogWriterFails: a file that fails costs lines, and never the writer.
func TestLogWriterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := app.NewLogWriter(writerFunc(func([]byte) (int, error) { return 0, errors.New("the disk is full") }))
		if _, err := w.Direct().Write([]byte("line\n")); err == nil {
			t.Error("the error of a direct line is hidden")
		}
		if _, err := w.Write([]byte("line\n")); err != nil {
			t.Error(err)
		}
		if err := w.Close(); err == nil {
			t.Error("the error of the last lines is hidden")
		}
	})
}
