package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// sectorSize is what a disk writes whole or not at all.
const sectorSize = 512

// zeros returns how many zeros the file has at its end.
func zeros(t testing.TB, name string) int {
	t.Helper()
	content := contents(t, name)
	return len(content) - len(bytes.TrimRight(content, "\x00"))
}

// openAhead opens a log that writes zeros ahead. Without a file system where that helps, the test is
// skipped.
func openAhead(t testing.TB, dir string, opts Options) *Log {
	t.Helper()
	opts.Preallocate = true
	l := open(t, dir, opts)
	if f, ok := l.writer.file.(*logfile.Disk); ok {
		t.Skipf("%s: no file system on which zeros are written ahead", f.Name())
	}
	return l
}

// While it is written, the file has zeros at its end; closed and rotated files have none.
func TestZerosAheadAreRemoved(t *testing.T) {
	dir := t.TempDir()
	l := openAhead(t, dir, Options{RotateBytes: 3000})
	names := ids(20)
	for _, id := range names {
		mustAppend(t, l, id)
		if zeros(t, logFile(dir)) == 0 {
			t.Fatal("no zeros are written ahead")
		}
	}
	mustClose(t, l)
	files, err := Files(dir)
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, name := range files {
		if n := zeros(t, name); n > 0 {
			t.Errorf("%s has %d zeros", name, n)
		}
	}
	if got := calls(t, files...); !slices.Equal(got, names) {
		t.Errorf("the log holds %q", got)
	}
	// A log without them continues, and one with them again.
	for i, ahead := range []bool{false, true} {
		l := open(t, dir, Options{Preallocate: ahead})
		mustAppend(t, l, fmt.Sprint(i))
		mustClose(t, l)
	}
	files, err = Files(dir)
	if got := calls(t, files...); err != nil || !slices.Equal(got, append(names, "0", "1")) {
		t.Errorf("the log holds %q, %v", got, err)
	}
}

// The records outgrow the zeros several times, in lines of any length.
func TestZerosAheadAreOutgrown(t *testing.T) {
	dir := t.TempDir()
	l := openAhead(t, dir, Options{Record: Completion})
	names := ids(30)
	for i, id := range names {
		r := sample(id)
		r.Completion = strings.Repeat("a", i%5<<19)
		if err := l.Append(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	if zeros(t, logFile(dir)) == 0 {
		t.Error("no zeros are written ahead")
	}
	if got := calls(t, logFile(dir)); !slices.Equal(got, names) {
		t.Errorf("the log holds %q", got)
	}
	mustClose(t, l)
}

// aheadLog is the file of a log with zeros ahead: records that were confirmed one by one, and one more
// batch, which was written and not synced.
type aheadLog struct {
	confirmed, batch [][]byte // lines
	content          []byte   // with the zeros
	end, batchEnd    int      // of the two
}

func newAheadLog(t *testing.T, dir string, confirmed, batch int) aheadLog {
	t.Helper()
	l := openAhead(t, dir, Options{})
	mustAppend(t, l, ids(confirmed)...)
	a := aheadLog{content: contents(t, logFile(dir)), end: int(l.writer.end)}
	a.confirmed = bytes.SplitAfter(a.content[:a.end], []byte("\n"))[:confirmed]
	at := l.writer.Link
	mustClose(t, l)
	a.batchEnd = a.end
	for i := range batch {
		body, err := encode(sample(fmt.Sprintf("batch-%d", i)), Digest)
		if err != nil {
			t.Fatal(err)
		}
		var line []byte
		line, at = at.Seal(nil, fmt.Appendf(body, "%s%d", syncedMember, confirmed))
		a.batch = append(a.batch, line)
		a.batchEnd += copy(a.content[a.batchEnd:], line)
	}
	return a
}

// crashed returns what a crash can leave of the file, and how many records of the batch are whole from
// its beginning on.
func (a aheadLog) crashed(random *rand.Rand) (content []byte, kept int) {
	content = bytes.Clone(a.content)
	lose := func(from, to int) { clear(content[max(from, a.end):max(min(to, a.batchEnd), a.end)]) }
	switch random.IntN(4) {
	case 0: // the file grew, and its end was not yet written
		content = content[:a.end+random.IntN(a.batchEnd-a.end+1)]
	case 1:
		lose(a.end+random.IntN(a.batchEnd-a.end+1), a.batchEnd)
	default: // any sectors, in any order
		most := random.IntN(101)
		for at := a.end / sectorSize * sectorSize; at < a.batchEnd; at += sectorSize {
			if random.IntN(100) < most {
				lose(at, at+sectorSize)
			}
		}
	}
	for at := a.end; kept < len(a.batch) && bytes.HasPrefix(content[at:], a.batch[kept]); kept++ {
		at += len(a.batch[kept])
	}
	return content, kept
}

// Whatever a crash leaves of the last batch: Verify finds every confirmed record and nothing corrupt, a log
// that opens continues behind the last whole record, and no record is there twice.
func TestACrashOfALogWithZerosAhead(t *testing.T) {
	t.Parallel()
	rounds := wholeOrShort(200, 20)
	if n, err := strconv.Atoi(os.Getenv("CALLGATE_CRASHES")); err == nil {
		rounds = n
	}
	random := rand.New(rand.NewPCG(5, 6))
	logs := []aheadLog{newAheadLog(t, t.TempDir(), 7, 20), newAheadLog(t, t.TempDir(), 1, 1), newAheadLog(t, t.TempDir(), 0, 5)}
	dir := t.TempDir()
	for round := range rounds {
		a := logs[round%len(logs)]
		content, kept := a.crashed(random)
		put(t, logFile(dir), content)
		end := a.end + len(bytes.Join(a.batch[:kept], nil))
		rest := int64(len(bytes.TrimRight(content, "\x00")) - end)
		report, err := Verify(logFile(dir))
		if err != nil || report.Records != uint64(len(a.confirmed)+kept) || report.TruncatedBytes != rest {
			t.Fatalf("round %d: %+v, %v; expected %d confirmed, %d of the batch and %d bytes more", round, report, err, len(a.confirmed), kept, rest)
		}
		l := open(t, dir, Options{Preallocate: round%2 == 0})
		if l.TruncatedBytes() != rest {
			t.Fatalf("round %d: %d bytes were truncated, expected %d", round, l.TruncatedBytes(), rest)
		}
		mustAppend(t, l, "new")
		mustClose(t, l)
		got := contents(t, logFile(dir))
		if !bytes.HasPrefix(got, content[:end]) || bytes.Count(got, []byte("\n")) != len(a.confirmed)+kept+1 {
			t.Fatalf("round %d: the log holds %q", round, calls(t, logFile(dir)))
		}
		if report, err := Verify(logFile(dir)); err != nil || report.TruncatedBytes != 0 {
			t.Fatalf("round %d: %+v, %v", round, report, err)
		}
	}
}

// What no crash leaves is corrupt, for Verify and for Open, and the file stays as it is: zeros in the place of
// records behind which others were confirmed, and bytes in the zeros.
func TestDamageOfALogWithZerosAhead(t *testing.T) {
	t.Parallel()
	a := newAheadLog(t, t.TempDir(), 12, 3)
	random := rand.New(rand.NewPCG(7, 8))
	lastLine := a.end - len(a.confirmed[len(a.confirmed)-1])
	for name, damage := range map[string]func([]byte){
		"a sector of confirmed records": func(content []byte) {
			at := random.IntN(lastLine/sectorSize) * sectorSize
			clear(content[at : at+sectorSize])
		},
		"a sector before a crash": func(content []byte) {
			at := random.IntN(lastLine/sectorSize) * sectorSize
			clear(content[at : at+sectorSize])
			clear(content[a.batchEnd-1000:])
		},
		"some bytes": func(content []byte) {
			at := 1 + random.IntN(a.end/sectorSize-1)*sectorSize
			clear(content[at : at+100])
		},
		"a byte in the zeros": func(content []byte) {
			content[a.batchEnd+1+random.IntN(100)*sectorSize+(sectorSize-a.batchEnd%sectorSize)] = 'x'
		},
		"a line end in the zeros": func(content []byte) {
			content[a.batchEnd+1+random.IntN(100)] = '\n'
		},
	} {
		for range wholeOrShort(30, 4) {
			content := bytes.Clone(a.content)
			damage(content)
			dir := t.TempDir()
			put(t, logFile(dir), content)
			var broken *CorruptionError
			if report, err := Verify(logFile(dir)); !errors.As(err, &broken) {
				t.Fatalf("%s: Verify: %+v, %v", name, report, err)
			}
			line := broken.Line
			l, err := Open(dir, Options{})
			if err == nil {
				l.Close()
			}
			if !errors.As(err, &broken) || broken.Line != line {
				t.Fatalf("%s: Open: %v, expected line %d", name, err, line)
			}
			if !bytes.Equal(contents(t, logFile(dir)), content) {
				t.Fatalf("%s: the file was changed", name)
			}
		}
	}
}

// A crash just after a rotation: nothing of the new file's first batch may be whole.
func TestACrashBehindARotatedFileWithZerosAhead(t *testing.T) {
	dir := t.TempDir()
	a := newAheadLog(t, dir, 5, 8)
	rotated := filepath.Join(dir, "audit-00000000000000000001.jsonl")
	first := bytes.Join(a.batch, nil)
	content := append(bytes.Clone(first), make([]byte, 4096)...)
	clear(content[:sectorSize])
	put(t, logFile(dir), content)
	put(t, rotated, append(bytes.Join(a.confirmed, nil), make([]byte, 100)...)) // moved by hand, after a crash
	if report, err := Verify(rotated, logFile(dir)); err != nil || report.Records != 5 || report.TruncatedBytes != int64(len(first)) {
		t.Errorf("%+v, %v", report, err)
	}
	l := open(t, dir, Options{Preallocate: true})
	mustAppend(t, l, "new")
	mustClose(t, l)
	if got := calls(t, rotated, logFile(dir)); !slices.Equal(got, append(ids(5), "new")) {
		t.Errorf("the log holds %q", got)
	}
}

// The readers beside the writer see what is durable and nothing else, whatever is behind it.
func TestReadersOfALogWithZerosAhead(t *testing.T) {
	dir := t.TempDir()
	l := openAhead(t, dir, Options{RotateBytes: 40_000, snapshotEvery: 20})
	if _, err := l.OpenCalls(); err != nil {
		t.Fatal(err)
	}
	const each = 100 // calls of a writer, of which the last has no outcome
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range each {
				r := sample(fmt.Sprintf("%d-%d", w, i))
				r.KeySHA256 = strings.Repeat("a", 64)
				if err := l.Append(context.Background(), r); err != nil {
					t.Error(err)
				}
				if i == each-1 {
					break
				}
				r.Event, r.Outcome = Ending, Result
				if err := l.Append(context.Background(), r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	defer writers.Wait()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		durable, _ := l.Last()
		report, err := Verify(logFile(dir)) // it begins behind a rotated file
		var broken *CorruptionError
		if err != nil && !errors.Is(err, os.ErrNotExist) && (!errors.As(err, &broken) || broken.Line != 1 || strings.Contains(err.Error(), "zeros")) {
			t.Fatalf("Verify: %+v, %v", report, err)
		}
		found, err := l.Newest(t.Context(), Search{Count: 3, MaxBytes: 1 << 20})
		if err != nil || durable > 3 && (len(found.Records) != 3 || found.Records[0].Seq < durable) {
			t.Fatalf("Newest: %+v, %v, with %d durable", found, err, durable)
		}
		var seqs []uint64
		reach, err := l.Replay(t.Context(), 1, noon, func(r *Record) error { seqs = append(seqs, r.Seq); return nil })
		if err != nil || reach.Missing > 0 || uint64(len(seqs)) < durable {
			t.Fatalf("Replay: %+v, %v: %d records of %d", reach, err, len(seqs), durable)
		}
	}
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	if report, err := Verify(files...); err != nil || report.Records != 4*(2*each-1) || report.TruncatedBytes != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	crashed := t.TempDir() // what a process that is killed leaves
	for _, name := range files {
		put(t, filepath.Join(crashed, filepath.Base(name)), contents(t, name))
	}
	put(t, filepath.Join(crashed, snapshotName), contents(t, filepath.Join(dir, snapshotName)))
	if zeros(t, logFile(crashed)) == 0 {
		t.Error("no zeros are at the end")
	}
	mustClose(t, l)
	second := openAhead(t, crashed, Options{RotateBytes: 40_000, OnReadAll: func(err error, _, _ int64) { t.Errorf("the whole log is read: %v", err) }})
	open, err := second.OpenCalls()
	if err != nil || len(open) != 4 {
		t.Errorf("%d open calls, %v", len(open), err)
	}
	ended, err := second.EndedCalls([]string{"0-0"})
	if err != nil || ended["0-0"] != Result {
		t.Errorf("%v, %v", ended, err)
	}
	mustClose(t, second)
}
