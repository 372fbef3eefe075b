package configs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// bell rings when something moves in the folders of a configuration. It spares
// waiting for the next look and decides nothing: where the system gives no
// notice, as on some network file systems or beyond its limits, looking at
// intervals does the whole work.
type bell struct {
	watcher *fsnotify.Watcher // nil where the system gives none
	rung    chan struct{}     // holds one, so that many notices are one
	trouble chan error        // holds one: the first is told, and enough
	stopped chan struct{}
}

// newBell opens a bell. stop must be called.
func newBell(open func() (*fsnotify.Watcher, error)) *bell {
	b := &bell{rung: make(chan struct{}, 1), trouble: make(chan error, 1), stopped: make(chan struct{})}
	watcher, err := open()
	if err != nil {
		b.fail(err)
		close(b.stopped)
		return b
	}
	b.watcher = watcher
	go b.hear()
	return b
}

// hear turns notices into rings until the watcher is closed.
func (b *bell) hear() {
	defer close(b.stopped)
	for {
		select {
		case _, open := <-b.watcher.Events:
			if !open {
				return
			}
		case err, open := <-b.watcher.Errors:
			if !open {
				return
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				b.fail(err)
			}
		}
		b.ring()
	}
}

func (b *bell) fail(err error) {
	select {
	case b.trouble <- err:
	default:
	}
}

// hang makes the bell ring for these folders and for no others. A folder that
// was replaced under its name is taken up anew. The bell rings at once where a
// folder is new to it, which may have changed since it was looked at.
func (b *bell) hang(folders []string) {
	if b.watcher == nil {
		return
	}
	before := b.watcher.WatchList()
	for _, hung := range before {
		if !slices.Contains(folders, hung) {
			// It may be gone already, and with it the notices.
			_ = b.watcher.Remove(hung)
		}
	}
	for _, folder := range folders {
		if err := b.watcher.Add(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			b.fail(fmt.Errorf("%s: %w", folder, err))
		}
	}
	// A second name of a folder that is mounted twice is not listed: it is no news.
	for _, hung := range b.watcher.WatchList() {
		if !slices.Contains(before, hung) {
			b.ring()
		}
	}
}

// ring rings, once for many that come together.
func (b *bell) ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// stop ends the bell and waits until it has.
func (b *bell) stop() {
	if b.watcher != nil {
		// Nothing depends on the notices that closing might lose.
		_ = b.watcher.Close()
	}
	<-b.stopped
}

// folders are those in which a change of what was seen shows.
func (s *fingerprint) folders() []string {
	all := map[string]bool{}
	for name := range s.hashes {
		trail(name, all)
	}
	for pattern := range s.globs {
		patternTrail(pattern, all)
	}
	return slices.Sorted(maps.Keys(all))
}

// trail adds the folder of a file, those of the symbolic links on the way to it,
// and where the way ends early, the folder in which it would go on.
func trail(name string, into map[string]bool) {
	name, err := filepath.Abs(name)
	if err != nil {
		return
	}
	top := filepath.VolumeName(name) + string(filepath.Separator)
	at, rest, links := top, steps(name[len(top)-1:]), 0
	for len(rest) > 0 {
		// No link is left in at, so that Join may take ".." at its word.
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil || len(rest) == 0 {
			into[at] = true
		}
		if err != nil {
			return
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		into[at] = true
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return
		}
		if filepath.IsAbs(target) {
			at = top
		}
		rest = append(steps(target), rest...)
	}
}

// maxLinks is how many symbolic links the system follows in one path.
const maxLinks = 40

// steps cuts a path at its separators.
func steps(path string) []string {
	return slices.DeleteFunc(strings.FieldsFunc(path, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(byte(r)) }),
		func(step string) bool { return step == "." })
}

// patternTrail adds the folders in which a file would appear that a pattern
// matches, and those in which such a folder would.
func patternTrail(pattern string, into map[string]bool) {
	dir := filepath.Dir(pattern)
	if !strings.ContainsAny(dir, "*?[") {
		trail(filepath.Join(dir, "*"), into)
		return
	}
	found, _ := filepath.Glob(dir)
	for _, folder := range found {
		trail(filepath.Join(folder, "*"), into)
	}
	patternTrail(dir, into)
}
