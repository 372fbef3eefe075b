package audit

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// longLog is how many records a log has that TestLongLog starts on; make long-log sets it.
func longLog(t *testing.T) int {
	text := os.Getenv("CALLGATE_LONG_LOG")
	if text == "" {
		return 3*snapshotEvery + 100
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A start on a long log reads what is behind the snapshot, however long the log is. Its time
// is only required to be under a second if a number of records is asked for.
func TestLongLog(t *testing.T) {
	n, dir := longLog(t), t.TempDir()
	size := writeLongLog(t, dir, n)
	began := time.Now()
	start := func(what string, wantAll bool, wantOpen int) (*Log, time.Duration) {
		began = time.Now()
		l, open, cause := reopened(t, dir, Options{})
		took := time.Since(began)
		t.Logf("%d records, %d bytes: %s: %v", n, size, what, took.Round(time.Millisecond))
		if readAll := l.readFrom == 0; readAll != wantAll || len(open) != wantOpen {
			t.Fatalf("%s: everything was read: %v, for %v; %d open calls, want %d", what, readAll, cause, len(open), wantOpen)
		}
		return l, took
	}
	l, _ := start("a start without a snapshot", true, 2)
	mustAppend(t, l, "last")
	mustClose(t, l)
	appendLines(t, dir, snapshotEvery)
	l, took := start("a start with one, as far back as it can be", false, 4)
	mustClose(t, l)
	if took > time.Second && os.Getenv("CALLGATE_LONG_LOG") != "" {
		t.Errorf("a start took %v, want at most a second", took)
	}

	// A record before the snapshot is changed: Verify reads everything.
	f, err := os.OpenFile(logFile(dir), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	at, err := logfile.LineStart(f, size/3)
	if err == nil {
		_, err = f.WriteAt([]byte("9"), at+int64(len(`{"seq":`))+40)
	}
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	l, _ = start("a start with a changed record before the snapshot", false, 4)
	mustClose(t, l)
	began = time.Now()
	var broken *CorruptionError
	if _, err := Verify(logFile(dir)); !errors.As(err, &broken) {
		t.Errorf("Verify: %v, want the changed record", err)
	}
	t.Logf("Verify found it after %v: %v", time.Since(began).Round(time.Millisecond), broken)
}

// writeLongLog writes a log of n records, of which two calls have no outcome.
func writeLongLog(t *testing.T, dir string, n int) int64 {
	put(t, logFile(dir), nil)
	appendLinesTo(t, dir, logfile.Link{Hash: logfile.Genesis}, n)
	info, err := os.Stat(logFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// appendLines appends n records as the log would.
func appendLines(t *testing.T, dir string, n int) { appendLinesTo(t, dir, lastLink(logFile(dir)), n) }

func appendLinesTo(t *testing.T, dir string, at logfile.Link, n int) {
	f, err := os.OpenFile(logFile(dir), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	r := sample("")
	r.Principal, r.RequestID, r.TraceID = "team-a", strings.Repeat("r", 26), strings.Repeat("t", 32)
	r.InputSHA256, r.ArgumentsSHA256, r.ConfigDigest = strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)
	var body, line []byte
	for range n {
		r.Event, r.Outcome, r.CallID = Decision, "", fmt.Sprintf("call_%020d", at.Seq/2)
		if at.Seq%2 == 1 {
			r.Event, r.Outcome = Ending, Result
		}
		if at.Seq == 3 {
			r.Event, r.Outcome, r.CallID = Decision, "", "another"
		}
		if body, err = appendRecord(body[:0], &r, Digest); err != nil {
			t.Fatal(err)
		}
		line, at = at.Seal(line[:0], body)
		if _, err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
}
