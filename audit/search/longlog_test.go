package search

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// longLog is how many records TestLongLog searches; make long-log sets it.
func longLog(t *testing.T) int {
	text := os.Getenv("CALLGATE_LONG_LOG")
	if text == "" {
		return 20_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A search of a long log is as fast as the disk, and needs no more memory than one of a short
// log. Its time is only said: it depends on the disk.
func TestLongLog(t *testing.T) {
	n, dir := longLog(t), t.TempDir()
	size := writeLongLog(t, dir, n)
	end := noon.Add(time.Duration(n) * 10 * time.Millisecond)
	for _, c := range []struct {
		name  string
		query Query
		limit int
		want  int
	}{
		{"a call that is not there", Query{Call: "call_none"}, 0, 0},
		{"one call", Query{Call: fmt.Sprintf("call_%020d", n/2)}, 0, 1},
		{"refusals of one agent, 1 in 1,000", Query{Agent: "Intern", Verdict: "refused"}, 0, n / 1000},
		{"refusals in the last hour", Query{Verdict: "refused", Since: end.Add(-time.Hour)}, 0, min(n, 360_000) / 1000},
		{"the newest 100 of an agent with all others", Query{Agent: "Analyst"}, 100, 100},
		{"the newest 100 of everything", Query{}, 100, 100},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began, found, read := time.Now(), 0, int64(0)
		logs, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range logs.Records(t.Context(), c.query, Options{NewestFirst: true, OnRead: func(n int64) { read += n }}) {
			if err != nil {
				t.Fatal(err)
			}
			if found++; found == c.limit {
				break
			}
		}
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		if err := logs.Close(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d records, %d MB: %s: %d found in %v; read %d MB, heap grown by %d MB", n, size>>20, c.name, found, took.Round(time.Millisecond), read>>20, max(0, int64(after.HeapSys)-int64(before.HeapSys))>>20)
		if found != c.want {
			t.Errorf("%s: found %d, want %d", c.name, found, c.want)
		}
	}
}

// writeLongLog writes a log in four files, in which one record in a thousand is a refusal.
func writeLongLog(t *testing.T, dir string, n int) int64 {
	at, size := logfile.Link{Hash: logfile.Genesis}, int64(0)
	var line []byte
	for file := range 4 {
		name := filepath.Join(dir, fmt.Sprintf("audit-%d.jsonl", file))
		if file == 3 {
			name = filepath.Join(dir, "audit.jsonl")
		}
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriterSize(f, 1<<20)
		for i := file * n / 4; i < (file+1)*n/4; i++ {
			agent, verdict, code := "Analyst", "tool_call", ""
			if i%1000 == 999 {
				agent, verdict, code = "Intern", "refused", "permission_denied"
			}
			body := fmt.Appendf(nil, `"time":"%s","event":"decision","mode":"call","call_id":"call_%020d","request_id":"%s","trace_id":"%s","attempt":0,"principal":"team-a","agent":"%s",`+
				`"workspace":"acme","project":"alpha","thread":"","tool":"web.search","tool_version":"1.0.0","verdict":"%s","stage":"","code":"%s","outcome":"","input_sha256":"%s",`+
				`"arguments_sha256":"%[8]s","config_digest":"%[8]s","replica":"gate-0","micros":41`,
				noon.Add(time.Duration(i)*10*time.Millisecond).Format(time.RFC3339Nano), i, strings.Repeat("r", 26), strings.Repeat("t", 32), agent, verdict, code, strings.Repeat("a", 64))
			line, at = at.Seal(line[:0], body)
			if _, err := w.Write(line); err != nil {
				t.Fatal(err)
			}
			size += int64(len(line))
		}
		if err := errors.Join(w.Flush(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return size
}
