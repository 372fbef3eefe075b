package configs

import (
	"embed"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"github.com/callgate/callgate/configs/document"
)

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

func (disk) read(name string) ([]byte, error) { return document.ReadFile(name) }

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
		return nil, document.WithoutPath(err)
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

// overlaySource is a source in which one file holds other bytes.
type overlaySource struct {
	source
	name string
	data []byte
}

func (o overlaySource) read(name string) ([]byte, error) {
	if name == o.name {
		return o.data, nil
	}
	return o.source.read(name)
}
