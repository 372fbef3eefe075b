package configs

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// maxFileBytes bounds one configuration file.
const maxFileBytes = 64 << 20

// source is where the files of one configuration are: on disk, or embedded.
type source interface {
	// read returns a file; name is as resolve or glob gave it.
	read(name string) ([]byte, error)
	// resolve makes a path as written in a file of dir into a name.
	resolve(dir, path string) string
	// glob returns the names that match a pattern, sorted.
	glob(pattern string) ([]string, error)
	dir(name string) string
	// relative is the name as it enters the digest: the same on every machine.
	relative(name string) string
}

// disk reads from the file system. root is the folder of the main file.
type disk struct{ root string }

func (disk) read(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("found " + kindOf(info.Mode()) + "; expected a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("found more than %d MiB; expected a smaller file", maxFileBytes>>20)
	}
	return data, nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "something else"
}

// errAbsent is a file that is not there.
var errAbsent = errors.New("found no such file; expected a file")

// IsAbsent tells whether a file could not be read because it is not there.
func IsAbsent(err error) bool { return errors.Is(err, errAbsent) }

// withoutPath takes the path out of an error of the system: the fault names the file.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		if errors.Is(err, fs.ErrNotExist) {
			return errAbsent
		}
		err = p.Err
	}
	return fmt.Errorf("found a file that cannot be read (%w); expected a readable one", err)
}

func (disk) resolve(dir, p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(dir, p)
}

func (disk) glob(pattern string) ([]string, error) { return filepath.Glob(pattern) }
func (disk) dir(name string) string                { return filepath.Dir(name) }

func (d disk) relative(name string) string {
	if r, err := filepath.Rel(d.root, name); err == nil {
		return filepath.ToSlash(r)
	}
	return name
}

//go:embed *.yaml *.csv tools/*.yaml
var defaults embed.FS

// builtin reads the embedded default.
type builtin struct{}

// builtinName is what messages call the embedded default.
const builtinName = "built-in:"

func (builtin) read(name string) ([]byte, error) {
	data, err := defaults.ReadFile(name[len(builtinName):])
	if err != nil {
		return nil, withoutPath(err)
	}
	return data, nil
}

func (builtin) resolve(dir, p string) string {
	return builtinName + path.Join(dir[len(builtinName):], p)
}

func (builtin) glob(pattern string) ([]string, error) {
	found, err := fs.Glob(defaults, pattern[len(builtinName):])
	slices.Sort(found)
	for i := range found {
		found[i] = builtinName + found[i]
	}
	return found, err
}

func (builtin) dir(name string) string      { return builtinName + path.Dir(name[len(builtinName):]) }
func (builtin) relative(name string) string { return name[len(builtinName):] }
