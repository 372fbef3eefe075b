package configs

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/internal/wholefile"
)

// KeptBounds bound the configurations that are kept.
type KeptBounds struct {
	// Always is how long a configuration is kept after another has taken its place, while there are
	// at most MostFiles with MostBytes.
	Always    time.Duration
	MostFiles int
	MostBytes int64
	// Files and Bytes are how many are kept beyond that time.
	Files int
	Bytes int64
}

// Kept returns the bounds of a data folder.
func Kept() KeptBounds {
	return KeptBounds{Always: 30 * 24 * time.Hour, MostFiles: 2000, MostBytes: 512 << 20, Files: 200, Bytes: 64 << 20}
}

// KeptSweep counts the configurations that SweepKept has removed.
type KeptSweep struct {
	Removed int
	// Recent is how many of them were in force within KeptBounds.Always: audit logs of that time
	// name them.
	Recent int
}

// keptEntry is one configuration that is kept.
type keptEntry struct {
	name     string
	bytes    int64
	began    time.Time // when it last took effect
	replaced time.Time // when the next one did
}

// SweepKept removes configurations that are kept in the data folder beyond the bounds, those first
// that were replaced first. It never removes this one or its candidate. Files of other names stay,
// but for those that an interrupted Keep has left.
func (c *Config) SweepKept(b KeptBounds, now time.Time) (swept KeptSweep, err error) {
	dir := filepath.Join(c.DataDir, KeptDir)
	entries, err := readKept(dir, now)
	if err != nil {
		return swept, err
	}
	var bytes int64
	for _, e := range entries {
		bytes += e.bytes
	}
	files := len(entries)
	for _, e := range entries {
		recent := now.Sub(e.replaced) < b.Always
		within := files <= b.Files && bytes <= b.Bytes || recent && files <= b.MostFiles && bytes <= b.MostBytes
		if within {
			break // those after it were replaced later
		}
		digest := strings.TrimSuffix(e.name, ".json")
		if digest == c.Digest || c.Candidate != nil && digest == c.Candidate.Digest {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return swept, err
		}
		files, bytes = files-1, bytes-e.bytes
		swept.Removed++
		if recent {
			swept.Recent++
		}
	}
	return swept, nil
}

// readKept lists the configurations in a folder in the order in which they last took effect.
func readKept(dir string, now time.Time) ([]keptEntry, error) {
	listed, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var entries []keptEntry
	for _, l := range listed {
		digest, isKept := strings.CutSuffix(l.Name(), ".json")
		isKept = isKept && len(digest) == 64 && IsDigest(digest)
		info, err := l.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // it has just gone, or is not ours
		}
		switch left := now.Sub(info.ModTime()) > 24*time.Hour; {
		case isKept:
			entries = append(entries, keptEntry{name: l.Name(), bytes: info.Size(), began: info.ModTime(), replaced: now})
		case left && strings.HasPrefix(l.Name(), wholefile.Prefix):
			_ = os.Remove(filepath.Join(dir, l.Name())) // it is tried again
		}
	}
	slices.SortFunc(entries, func(a, b keptEntry) int {
		return cmp.Or(a.began.Compare(b.began), strings.Compare(a.name, b.name))
	})
	for i := range len(entries) - 1 {
		entries[i].replaced = entries[i+1].began
	}
	return entries, err
}
