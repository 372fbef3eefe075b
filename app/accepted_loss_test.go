package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAcceptedLoss(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var log strings.Builder
	accepted := lossAccepted(dir, slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now })
	file := filepath.Join(dir, acceptedLossFile)
	want := func(what string, noticed time.Time, want bool) {
		t.Helper()
		if got := accepted(noticed); got != want {
			t.Errorf("%s: accepted %v, want %v", what, got, want)
		}
	}
	want("nothing was said", now, false)
	for range 2 { // and again
		if err := AcceptLoss(dir, now); err != nil {
			t.Fatal(err)
		}
	}
	want("before", now.Add(-time.Hour), true)
	want("just then", now, true)
	want("a later loss", now.Add(time.Nanosecond), false)
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log.String())
	}
	for name, content := range map[string]string{"to come": now.Add(time.Hour).Format(time.RFC3339), "empty": "", "something else": "yes"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		want(name, now.Add(-time.Hour), false)
		want(name+", again", now.Add(-time.Hour), false)
		if strings.Count(log.String(), "the acceptance of a loss does not count") != 1 {
			t.Errorf("%s: logged %q", name, log.String())
		}
	}
	if err := AcceptLoss(filepath.Join(dir, "absent"), now); err == nil || !strings.Contains(err.Error(), acceptedLossFile) {
		t.Errorf("in a folder that does not exist: %v", err)
	}
}
