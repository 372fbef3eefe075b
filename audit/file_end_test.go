package audit

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// A log that was cut at any byte opens, keeps every whole line, and continues.
func TestTruncatedAtEveryByte(t *testing.T) {
	t.Parallel()
	whole := bytes.Join(makeLog(t, 2), nil)
	names := ids(2)
	for cut := range len(whole) + 1 {
		if testing.Short() && cut%5 != 0 && !bytes.Contains(whole[max(cut-2, 0):min(cut+2, len(whole))], []byte("\n")) {
			continue // all within a line
		}
		dir := t.TempDir()
		put(t, logFile(dir), whole[:cut])
		kept := bytes.Count(whole[:cut], []byte("\n"))
		end := bytes.LastIndexByte(whole[:cut], '\n') + 1
		l := open(t, dir, Options{})
		if got := l.TruncatedBytes(); got != int64(cut-end) {
			t.Fatalf("cut at %d: Torn is %d, want %d", cut, got, cut-end)
		}
		mustAppend(t, l, "new")
		mustClose(t, l)
		want := append(slices.Clone(names[:kept]), "new")
		if got := calls(t, logFile(dir)); !slices.Equal(got, want) {
			t.Fatalf("cut at %d: the log holds %q, want %q", cut, got, want)
		}
		if got := contents(t, logFile(dir)); !bytes.HasPrefix(got, whole[:end]) {
			t.Fatalf("cut at %d: whole lines were changed", cut)
		}
	}
}

// Remains of a crash after the last line: lost pages, garbage.
func TestTruncatedWithGarbage(t *testing.T) {
	whole := bytes.Join(makeLog(t, 2), nil)
	for _, garbage := range []string{"\x00", strings.Repeat("\x00", 200_000), "garbage", `{"seq":9,`, "\xff\xfe", strings.Repeat("x", 3<<20)} {
		dir := t.TempDir()
		put(t, logFile(dir), append(bytes.Clone(whole), garbage...))
		l := open(t, dir, Options{})
		mustAppend(t, l, "new")
		mustClose(t, l)
		if got := calls(t, logFile(dir)); len(got) != 3 || got[2] != "new" {
			t.Errorf("%.10q: the log holds %q", garbage, got)
		}
	}
}

// A complete line that does not hold is no crash: Open refuses, names it, and
// leaves the file as it is.
func TestOpenRefusesATailThatWasChanged(t *testing.T) {
	const records = 5
	lines := makeLog(t, records)
	for name, c := range map[string]struct {
		change func() [][]byte
		line   int64
	}{
		"last altered": {func() [][]byte { return spoil(lines, 4, func(l []byte) []byte { l[40] ^= 1; return l }) }, 5},
		"last is empty": {func() [][]byte {
			return spoil(lines, 4, func([]byte) []byte { return []byte("\n") })
		}, 5},
		"last shortened": {func() [][]byte { return spoil(lines, 4, func(l []byte) []byte { return append(l[:90], '\n') }) }, 5},
		"one before it altered": {func() [][]byte {
			return spoil(lines, 3, func(l []byte) []byte { l[40] ^= 1; return l })
		}, 4},
		"zeros before the last": {func() [][]byte {
			return spoil(lines, 3, func(l []byte) []byte { return make([]byte, len(l)) })
		}, 4},
		"one removed": {func() [][]byte { return slices.Delete(slices.Clone(lines), 2, 3) }, 3},
		"two swapped": {func() [][]byte {
			c := slices.Clone(lines)
			c[1], c[2] = c[2], c[1]
			return c
		}, 2},
		"altered, then torn": {func() [][]byte {
			return append(spoil(lines, 4, func(l []byte) []byte { l[40] ^= 1; return l }), []byte(`{"seq":6,`))
		}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			changed := bytes.Join(c.change(), nil)
			put(t, logFile(dir), changed)
			l, err := Open(dir, Options{})
			if err == nil {
				l.Close()
				t.Fatal("opened")
			}
			var b *CorruptionError
			if !errors.As(err, &b) || b.File != logFile(dir) || b.Line != c.line {
				t.Errorf("got %v, want line %d", err, c.line)
			}
			if !bytes.Equal(contents(t, logFile(dir)), changed) {
				t.Error("the file was changed")
			}
			put(t, logFile(dir), bytes.Join(lines, nil))
			mustAppend(t, open(t, dir, Options{}), "lock is free")
		})
	}
}

func spoil(lines [][]byte, at int, change func([]byte) []byte) [][]byte {
	c := slices.Clone(lines)
	c[at] = change(bytes.Clone(lines[at]))
	return c
}

// A long log is not read whole at Open, yet a fault in its tail has its line.
func TestALongLogNamesTheLine(t *testing.T) {
	const records = 4000
	lines := makeLog(t, records)
	if size := len(bytes.Join(lines, nil)); size < 2*batchBytes {
		t.Fatalf("%d bytes are not long", size)
	}
	dir := t.TempDir()
	put(t, logFile(dir), bytes.Join(spoil(lines, 0, func(l []byte) []byte { l[40] ^= 1; return l }), nil))
	l := open(t, dir, Options{})
	mustAppend(t, l, "new")
	mustClose(t, l)
	var b *CorruptionError
	if _, err := Verify(logFile(dir)); !errors.As(err, &b) || b.Line != 1 {
		t.Errorf("Verify: %v", err)
	}
	for _, line := range []int{records, records - 1, records - 100} {
		put(t, logFile(dir), bytes.Join(spoil(lines, line-1, func(l []byte) []byte { l[40] ^= 1; return l }), nil))
		if _, err := Open(dir, Options{}); !errors.As(err, &b) || b.Line != int64(line) {
			t.Errorf("line %d: %v", line, err)
		}
	}
}

func TestOpenRefusesAFileWithoutLines(t *testing.T) {
	dir := t.TempDir()
	put(t, logFile(dir), nil)
	if err := os.Truncate(logFile(dir), 2*logfile.MaxLine); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	if l, err := Open(dir, Options{}); err == nil {
		l.Close()
		t.Error("opened")
	}
}
