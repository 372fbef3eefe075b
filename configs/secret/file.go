package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/oserr"
)

// settleTime is how long a file must not have changed before its new content is used: it may be
// written piece by piece.
const settleTime = time.Second

// file is a file with a secret, and the last good value of it.
type file struct {
	path string

	mu      sync.Mutex
	value   string
	present bool
	seen    fs.FileInfo // of the content that value is
	sure    bool        // a later change has other times than seen

	changing      fs.FileInfo // the change that was seen last and has not settled
	changingSince time.Time
	failingSince  time.Time // since when the file gives no other value; zero if it does
	warned        bool
}

// read returns the secret. While the file is being written, is empty, or cannot be read, it is the
// last good one, for keepFor.
func (f *file) read(now time.Time, logger *slog.Logger) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path) // of the file that a symbolic link leads to
	if err == nil && f.present {
		unchanged := same(info, f.seen)
		switch {
		case unchanged && f.sure:
			f.recover(logger)
			return f.value, nil
		case !unchanged && !f.settled(info, now) && f.keeps(now):
			return f.value, nil
		}
	}
	value, info, err := readSecretFile(f.path)
	switch {
	case err == nil:
		f.value, f.present, f.seen, f.changing = value, true, info, nil
		f.sure = now.Sub(info.ModTime()) > settleTime
		f.recover(logger)
		return value, nil
	case f.present && f.keeps(now):
		if !f.warned {
			f.warned = true
			logger.Warn("a file gives no secret; its last value is used", "cause", err,
				"until", f.failingSince.Add(keepFor).UTC().Format(time.RFC3339))
		}
		return f.value, nil
	case f.present:
		f.value, f.present = "", false
		logger.Error("a file has given no secret for too long; its last value is not used any more", "cause", err)
	}
	return "", err
}

// keeps reports whether the last value may still be used, although the file gives none.
func (f *file) keeps(now time.Time) bool {
	if f.failingSince.IsZero() {
		f.failingSince = now
	}
	return now.Sub(f.failingSince) < keepFor
}

// recover notes that the file gives the value that is used.
func (f *file) recover(logger *slog.Logger) {
	if f.warned {
		logger.Info("a file gives its secret again", "file", f.path)
	}
	f.warned, f.failingSince = false, time.Time{}
}

// settled reports whether a change is so old, by the time of the file or by our own clock, that
// nobody writes the file any more.
func (f *file) settled(info fs.FileInfo, now time.Time) bool {
	if now.Sub(info.ModTime()) >= settleTime {
		return true
	}
	if !same(info, f.changing) {
		f.changing, f.changingSince = info, now
	}
	return now.Sub(f.changingSince) >= settleTime
}

// same reports whether a file is the one that was seen, unchanged.
func same(info, seen fs.FileInfo) bool {
	return seen != nil && os.SameFile(info, seen) && info.Size() == seen.Size() && info.ModTime().Equal(seen.ModTime())
}

// readSecretFile reads a file with a secret, and says what the file was like.
func readSecretFile(path string) (value string, info fs.FileInfo, err error) {
	if value, info, err = readFile(path); err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	return value, info, nil
}

func readFile(path string) (string, fs.FileInfo, error) {
	info, err := os.Stat(path) // opening a device may already do something
	if err != nil {
		return "", nil, document.WithoutPath(err)
	}
	if err := regular(info); err != nil {
		return "", nil, err
	}
	// Another kind of file may stand there by now. A pipe that nobody writes to is not waited for.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", nil, document.WithoutPath(err)
	}
	defer f.Close()
	return readOpen(f)
}

// readOpen reads an open file, no more of it than a secret has. A file that changes meanwhile gives
// none: one half may be of the secret before, and the other of the one after.
func readOpen(f fs.File) (string, fs.FileInfo, error) {
	before, err := f.Stat()
	if err != nil {
		return "", nil, document.WithoutPath(err)
	}
	if err := regular(before); err != nil {
		return "", nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+1))
	if err != nil {
		return "", nil, document.WithoutPath(err)
	}
	after, err := f.Stat()
	switch {
	case err != nil:
		return "", nil, document.WithoutPath(err)
	case !same(after, before):
		return "", nil, errors.New("found a file that is being written; expected one that is complete")
	}
	value, err := secretOf(data)
	if err != nil {
		return "", nil, fmt.Errorf("found %w", err)
	}
	return value, after, nil
}

// regular refuses the files that are none of bytes.
func regular(info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return errors.New("found " + oserr.FileKind(info.Mode()) + "; expected a regular file")
}

// keepFor is how long the last good value of a secret is used while its place gives none.
const keepFor = 5 * time.Minute
