package configs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// keptFolder has configurations that began days ago, one a day each, named by their first two digits.
func keptFolder(t *testing.T, now time.Time, days ...int) *Config {
	t.Helper()
	c := &Config{Settings: Settings{DataDir: t.TempDir()}, Digest: strings.Repeat("0", 64)}
	dir := filepath.Join(c.DataDir, KeptDir)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i, ago := range days {
		writeAged(t, filepath.Join(dir, fmt.Sprintf("%02d%s.json", i, strings.Repeat("0", 62))), now.AddDate(0, 0, -ago))
	}
	return c
}

func writeAged(t *testing.T, file string, at time.Time) {
	t.Helper()
	if err := os.WriteFile(file, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestSweepKept(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	const week = 7 * 24 * time.Hour
	for name, c := range map[string]struct {
		days   []int // since each began
		bounds KeptBounds
		left   string
		recent int
	}{
		"few":           {[]int{90, 80, 70}, KeptBounds{week, 9, 9000, 3, 300}, "00 01 02", 0},
		"many, old":     {[]int{0, 90, 80, 70, 60}, KeptBounds{week, 9, 9000, 3, 9000}, "00 03 04", 0},
		"large, old":    {[]int{0, 90, 80, 70, 60}, KeptBounds{week, 9, 9000, 9, 399}, "00 03 04", 0},
		"many, recent":  {[]int{0, 4, 3, 2, 1}, KeptBounds{week, 9, 9000, 1, 9000}, "00 01 02 03 04", 0},
		"too many":      {[]int{0, 4, 3, 2, 1}, KeptBounds{week, 3, 9000, 1, 9000}, "00 03 04", 2},
		"too large":     {[]int{0, 4, 3, 2, 1}, KeptBounds{week, 9, 250, 1, 9000}, "00 04", 3},
		"old, in force": {[]int{90, 80, 70}, KeptBounds{week, 1, 9000, 1, 9000}, "00", 1},
		// It began long ago, and was in force until yesterday.
		"long in force": {[]int{0, 90, 1}, KeptBounds{week, 9, 9000, 1, 9000}, "00 01 02", 0},
	} {
		t.Run(name, func(t *testing.T) {
			config := keptFolder(t, now, c.days...)
			dir := filepath.Join(config.DataDir, KeptDir)
			writeAged(t, filepath.Join(dir, "notes.txt"), now.AddDate(-1, 0, 0))
			writeAged(t, filepath.Join(dir, ".new-1"), now.AddDate(-1, 0, 0))
			writeAged(t, filepath.Join(dir, ".new-2"), now)
			swept, err := config.SweepKept(c.bounds, now)
			if err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var left, others []string
			for _, e := range entries {
				if strings.HasSuffix(e.Name(), ".json") {
					left = append(left, e.Name()[:2])
				} else {
					others = append(others, e.Name())
				}
			}
			if found := strings.Join(left, " "); found != c.left || swept.Removed != len(c.days)-len(left) || swept.Recent != c.recent {
				t.Errorf("left %q, swept %+v; expected %q, %d recent", found, swept, c.left, c.recent)
			}
			if !slices.Equal(others, []string{".new-2", "notes.txt"}) {
				t.Errorf("other files: %q", others)
			}
		})
	}
}

// The candidate stays, and a folder that is not there is swept.
func TestSweepKeptCandidate(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	c := keptFolder(t, now, 3, 90, 80)
	c.Candidate = &Config{Digest: "01" + strings.Repeat("0", 62)}
	if swept, err := c.SweepKept(KeptBounds{}, now); err != nil || swept.Removed != 1 {
		t.Errorf("%+v, %v; expected one removed", swept, err)
	}
	c.DataDir = filepath.Join(c.DataDir, "nowhere")
	if swept, err := c.SweepKept(KeptBounds{}, now); err != nil || swept.Removed != 0 {
		t.Errorf("%+v, %v", swept, err)
	}
}
