package app

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/corpora"
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
	if !strings.Contains(log.String(), `msg="configuration is not kept" digest=`+c.Digest) {
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
