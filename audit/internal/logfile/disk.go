package logfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/callgate/callgate/internal/oserr"
)

// WriteFlags open a file that is read and appended to.
const WriteFlags = os.O_RDWR | os.O_APPEND

// File has the operations that the log needs of its file. Tests put faults behind it.
type File interface {
	Source
	io.Writer // appends
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// Disk is a regular file under the path that it was opened by.
type Disk struct {
	*os.File
	path   string
	opened os.FileInfo
}

// OpenFile opens a regular file and nothing else. It follows no symbolic link
// and waits for no peer of a pipe.
func OpenFile(path string, flags int) (*Disk, error) {
	f, err := os.OpenFile(path, flags|strictOpen, 0o600)
	if err != nil {
		if info, statErr := os.Lstat(path); statErr == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: %s, expected a regular file", path, oserr.FileKind(info.Mode()))
		}
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %s, expected a regular file", path, oserr.FileKind(info.Mode()))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Disk{File: f, path: path, opened: info}, nil
}

// Replace writes a file of one line, whole or not at all. The line is without its end.
func Replace(name string, line []byte) error {
	f, err := OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// Size returns the size of the file. It fails if the path names another file now: what
// is written to a file that was moved or removed is lost to every reader.
func (d *Disk) Size() (int64, error) {
	named, err := os.Lstat(d.path)
	if err != nil {
		return 0, err
	}
	if !os.SameFile(named, d.opened) {
		return 0, fmt.Errorf("%s: another file was put in its place", d.path)
	}
	return named.Size(), nil
}

// MakeDir creates dir, for its owner alone, and makes its name durable.
func MakeDir(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(dir))
}

// SyncDir makes the names in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Source is the file or the bytes that a tail is read from.
type Source interface {
	io.ReaderAt
	Size() (int64, error)
}

// OpenRead opens a regular file and nothing else.
func OpenRead(name string) (*os.File, error) {
	// Without O_NONBLOCK, opening a pipe that nobody writes to never returns.
	f, err := os.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %s, expected a regular file", name, oserr.FileKind(info.Mode()))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
