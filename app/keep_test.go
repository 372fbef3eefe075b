package app

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

// A configuration is kept once it takes effect, and not before. Where it cannot be, that is
// logged.
func TestKeepEach(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(corpora.Testdata("vectors", "config"))); err != nil {
		t.Fatal(err)
	}
	c, err := configs.Load(filepath.Join(dir, "callgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	prepared, err := keepEach(slog.New(slog.NewTextHandler(&log, nil)))(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(c.DataDir, configs.KeptDir, c.Digest+".json")
	if _, err := os.Stat(file); err == nil {
		t.Error("it was kept before it took effect")
	}
	if err := os.WriteFile(c.DataDir, nil, 0o600); err != nil { // a file stands where the folder should
		t.Fatal(err)
	}
	prepared.commit()
	if !strings.Contains(log.String(), `msg="configuration could not be kept" digest=`+c.Digest) {
		t.Errorf("found the log %q", log.String())
	}
	if err := os.Remove(c.DataDir); err != nil {
		t.Fatal(err)
	}
	prepared.commit()
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// Old configurations are removed when one takes effect, and that is logged; where recent calls were
// judged by them, as a warning.
func TestKeepSweeps(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(corpora.Testdata("vectors", "config"))); err != nil {
		t.Fatal(err)
	}
	c, err := configs.Load(filepath.Join(dir, "callgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for want, bounds := range map[string]configs.KeptBounds{
		`level=INFO msg="old kept configurations removed" removed=1`:                                                                        {Always: time.Nanosecond},
		`level=WARN msg="kept configurations removed; there were too many, and replay cannot use those of recent calls" removed=1 recent=1`: {Always: time.Hour, Files: 1, MostFiles: 1, MostBytes: 1 << 30},
	} {
		kept := filepath.Join(c.DataDir, configs.KeptDir)
		if err := os.MkdirAll(kept, 0o700); err != nil {
			t.Fatal(err)
		}
		old := filepath.Join(kept, strings.Repeat("0", 64)+".json")
		if err := os.WriteFile(old, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(old, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		keep(c, bounds, slog.New(slog.NewTextHandler(&log, nil)))
		if !strings.Contains(log.String(), want) {
			t.Errorf("found the log %q; expected %q", log.String(), want)
		}
		if left, err := os.ReadDir(kept); err != nil || len(left) != 1 || left[0].Name() != c.Digest+".json" {
			t.Errorf("found %v, %v; expected the one in force", left, err)
		}
	}
}
