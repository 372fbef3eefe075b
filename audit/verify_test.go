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
	"syscall"
	"testing"

	"github.com/callgate/callgate/audit/internal/logfile"
	"github.com/callgate/callgate/internal/testkit/detector"
)

// makeLog returns the lines of a log of n records, each with its line end.
func makeLog(t testing.TB, n int) [][]byte {
	t.Helper()
	at := logfile.Link{Hash: logfile.Genesis}
	lines := make([][]byte, n)
	for i, id := range ids(n) {
		r := sample(id)
		r.Arguments = []byte(fmt.Sprintf(`{"hash":%d,"prev":"é"}`, i))
		body, err := encode(r, Arguments)
		if err != nil {
			t.Fatal(err)
		}
		lines[i], at = at.Seal(nil, body)
	}
	return lines
}

// The cases were written by another program than this one. The name of a
// broken one says at which line, and what Verify must say of it.
func TestVerifyCases(t *testing.T) {
	good, err := filepath.Glob("testdata/chain/good/*.jsonl")
	if err != nil || len(good) == 0 {
		t.Fatalf("no good cases: %v", err)
	}
	for _, name := range good {
		report, err := Verify(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := uint64(bytes.Count(contents(t, name), []byte("\n"))); report.Records != want || report.LastSeq != want {
			t.Errorf("%s: %+v, want %d records", name, report, want)
		}
	}
	broken, err := filepath.Glob("testdata/chain/broken/line*.jsonl")
	if err != nil || len(broken) == 0 {
		t.Fatalf("no broken cases: %v", err)
	}
	reasons := map[string]string{
		"altered": "was altered", "form": "is not a record", "seq": "has seq", "prev": "does not follow", "json": "is not a JSON object",
	}
	for _, name := range broken {
		parts := strings.SplitN(strings.TrimSuffix(filepath.Base(name), ".jsonl"), "-", 3)
		line, err := strconv.ParseInt(strings.TrimPrefix(parts[0], "line"), 10, 64)
		if err != nil || len(parts) != 3 || reasons[parts[1]] == "" {
			t.Fatalf("%s: the name does not say the fault", name)
		}
		report, err := Verify(name)
		var b *CorruptionError
		if !errors.As(err, &b) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if b.File != name || b.Line != line || b.Seq != uint64(line) || !strings.HasPrefix(b.Reason, reasons[parts[1]]) {
			t.Errorf("%s: %v", name, err)
		}
		if report.Records != uint64(line)-1 {
			t.Errorf("%s: %+v: %d records hold", name, report, line-1)
		}
	}
}

// 1,000 changes at any record but the last, each found at the first record
// that it touches.
func TestEveryChangeIsFoundAtItsRecord(t *testing.T) {
	detector.OneGoroutine(t)
	t.Parallel()
	const records = 60
	lines := makeLog(t, records)
	forged := makeLog(t, records+1)[records]
	random := rand.New(rand.NewPCG(1, 2))
	name := filepath.Join(t.TempDir(), fileName)
	found := 0
	for i := range 1000 {
		at := random.IntN(records - 1)
		changed := append([][]byte(nil), lines...)
		var what string
		switch i % 6 {
		case 0:
			what = "flip of a bit"
			line := bytes.Clone(lines[at])
			line[random.IntN(len(line))] ^= 1 << random.IntN(8)
			changed[at] = line
		case 1:
			what = "insertion of a byte"
			p := random.IntN(len(lines[at]))
			changed[at] = bytes.Join([][]byte{lines[at][:p], lines[at][p:]}, []byte{byte(random.IntN(256))})
		case 2:
			what = "deletion of a byte"
			p := random.IntN(len(lines[at]))
			changed[at] = append(bytes.Clone(lines[at][:p]), lines[at][p+1:]...)
		case 3:
			what = "swap of two records"
			other := at + 1 + random.IntN(records-1-at)
			changed[at], changed[other] = lines[other], lines[at]
		case 4:
			what = "insertion of a record"
			another := append(lines[:records:records], forged)[random.IntN(records+1)]
			if bytes.Equal(another, lines[at]) {
				another = forged // a copy put before itself is a copy behind itself
			}
			changed = append(append(append([][]byte(nil), lines[:at]...), another), lines[at:]...)
		case 5:
			what = "deletion of a record"
			changed = append(append([][]byte(nil), lines[:at]...), lines[at+1:]...)
		}
		put(t, name, bytes.Join(changed, nil))
		_, err := Verify(name)
		var b *CorruptionError
		if !errors.As(err, &b) || b.Line != int64(at+1) || b.Seq != uint64(at+1) {
			t.Errorf("%s at seq %d: %v", what, at+1, err)
			continue
		}
		found++
	}
	t.Logf("%d of 1000 changes found at the right record", found)
}

func TestVerifyOverFiles(t *testing.T) {
	lines := makeLog(t, 9)
	dir := t.TempDir()
	var files []string
	for i := range 3 {
		files = append(files, filepath.Join(dir, fmt.Sprintf("audit-%d.jsonl", i)))
		put(t, files[i], bytes.Join(lines[3*i:3*i+3], nil))
	}
	empty := filepath.Join(dir, "audit-empty.jsonl")
	put(t, empty, nil)
	truncated := filepath.Join(dir, "audit-torn.jsonl")
	put(t, truncated, append(bytes.Join(lines[3:5], nil), lines[5][:40]...))

	for name, files := range map[string][]string{"": files, "an empty one last": append(files[:3:3], empty), "an empty one first": append([]string{empty}, files...)} {
		report, err := Verify(files...)
		if err != nil || report.Records != 9 || report.FirstSeq != 1 || report.LastSeq != 9 || report.TruncatedBytes != 0 ||
			!bytes.Contains(lines[8], []byte(report.LastHash)) {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
	}
	if report, err := Verify(files[0], truncated); err != nil || report.Records != 5 || report.TruncatedBytes != 40 {
		t.Errorf("a torn tail: %+v, %v", report, err)
	}
	if report, err := Verify(empty); err != nil || report.Records != 0 || report.LastHash != logfile.Genesis.String() {
		t.Errorf("an empty log: %+v, %v", report, err)
	}
	for name, c := range map[string]struct {
		files []string
		file  string
		line  int64
		seq   uint64
	}{
		"out of order":         {[]string{files[0], files[2], files[1]}, files[2], 1, 4},
		"one missing":          {[]string{files[0], files[2]}, files[2], 1, 4},
		"the first missing":    {files[1:], files[1], 1, 1},
		"one twice":            {[]string{files[0], files[0]}, files[0], 1, 4},
		"torn, and more after": {[]string{files[0], truncated, files[2]}, truncated, 3, 6},
	} {
		_, err := Verify(c.files...)
		var b *CorruptionError
		if !errors.As(err, &b) || b.File != c.file || b.Line != c.line || b.Seq != c.seq {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVerifyRefusesWhatIsNoLog(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var b *CorruptionError
	for name, files := range map[string][]string{
		"none": nil, "pipe": {pipe}, "folder": {dir}, "device": {"/dev/zero"}, "missing": {filepath.Join(dir, "missing")},
	} {
		if _, err := Verify(files...); err == nil || errors.As(err, &b) {
			t.Errorf("%s: %v, want an error that is not a *Broken", name, err)
		}
	}
	// A line without an end is read no further than the bound.
	endless := filepath.Join(dir, "endless")
	put(t, endless, nil)
	if err := os.Truncate(endless, 1<<40); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	if _, err := Verify(endless); !errors.As(err, &b) || b.Line != 1 {
		t.Errorf("endless: %v", err)
	}
}

func TestReadStopsWhereToldTo(t *testing.T) {
	name := filepath.Join(t.TempDir(), fileName)
	put(t, name, bytes.Join(makeLog(t, 5), nil))
	enough, seen := errors.New("enough"), 0
	report, err := Read(func(r Record) error {
		if seen++; seen == 3 {
			return enough
		}
		return nil
	}, name)
	if !errors.Is(err, enough) || seen != 3 || report.LastSeq != 2 {
		t.Errorf("seen %d, %+v, %v", seen, report, err)
	}
}

// A chain that holds over members that are not a record's is Read's to refuse.
func TestReadNamesARecordOfAnotherShape(t *testing.T) {
	line, _ := logfile.Link{Hash: logfile.Genesis}.Seal(nil, []byte(`"micros":"canary"`))
	name := filepath.Join(t.TempDir(), fileName)
	put(t, name, line)
	if _, err := Verify(name); err != nil {
		t.Errorf("Verify: %v", err)
	}
	_, err := Read(func(Record) error { return nil }, name)
	var b *CorruptionError
	if !errors.As(err, &b) || b.Line != 1 || b.Seq != 1 || strings.Contains(err.Error(), "canary") {
		t.Errorf("Read: %v", err)
	}
}

func TestFilesAreInTheOrderOfTheirRecords(t *testing.T) {
	lines := makeLog(t, 6)
	dir := filepath.Join(t.TempDir(), "data[1]*")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	put(t, in("audit-z.jsonl"), bytes.Join(lines[:2], nil))
	put(t, in("audit-b.jsonl"), bytes.Join(lines[2:4], nil))
	put(t, in("audit-a.jsonl"), bytes.Join(lines[4:], nil))
	for _, other := range []string{"lock", "audit.jsonl.moved", "my-audit.jsonl"} {
		put(t, in(other), []byte("not the log's"))
	}
	l := open(t, dir, Options{})
	files, err := Files(dir)
	if want := []string{in("audit-z.jsonl"), in("audit-b.jsonl"), in("audit-a.jsonl"), in(fileName)}; err != nil || !slices.Equal(files, want) {
		t.Fatalf("got %q, %v", files, err)
	}
	mustAppend(t, l, "new")
	mustClose(t, l)
	if got := calls(t, files...); !slices.Equal(got, append(ids(6), "new")) {
		t.Errorf("the log holds %q", got)
	}
	put(t, in("audit-c.jsonl"), []byte("{}\n"))
	var b *CorruptionError
	if _, err := Files(dir); !errors.As(err, &b) || b.File != in("audit-c.jsonl") || b.Line != 1 {
		t.Errorf("got %v", err)
	}
}

func FuzzVerify(f *testing.F) {
	lines := makeLog(f, 3)
	whole := bytes.Join(lines, nil)
	f.Add(whole, 0, byte(1))
	f.Add(whole[:len(whole)-1], 5, byte(0))
	f.Add([]byte("{\"seq\":1,\n"), 3, byte('\n'))
	f.Fuzz(func(t *testing.T, log []byte, at int, flip byte) {
		name := filepath.Join(t.TempDir(), fileName)
		put(t, name, log)
		report, err := Verify(name)
		var b *CorruptionError
		if err != nil && !errors.As(err, &b) {
			t.Fatal(err)
		}
		if err != nil && b.Seq != report.Records+1 {
			t.Fatalf("%v after %d records", err, report.Records)
		}
		if err == nil && int64(len(log)) < report.TruncatedBytes+int64(report.Records)*int64(logfile.SealLen) {
			t.Fatalf("%d bytes hold %+v", len(log), report)
		}
		// Open continues every log that Verify accepts, and the result verifies.
		dir := filepath.Dir(name)
		l, openErr := Open(dir, Options{Wait: patient})
		if openErr != nil {
			if err == nil {
				t.Fatalf("Verify took what Open refused: %v", openErr)
			}
			return
		}
		if appendErr := errors.Join(l.Append(context.Background(), sample("a")), l.Close()); appendErr != nil {
			t.Fatal(appendErr)
		}
		after, afterErr := Verify(name)
		if err == nil && (afterErr != nil || after.Records != report.Records+1 || after.TruncatedBytes != 0) {
			t.Fatalf("%+v became %+v, %v", report, after, afterErr)
		}
	})
}
