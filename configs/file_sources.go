package configs

import (
	"embed"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/callgate/callgate/configs/document"
)

// Files reads the files of a configuration. Names are as the configuration's paths
// resolve: on disk, or below "built-in:".
type Files interface {
	ReadFile(name string) ([]byte, error)
	// Glob returns the names that match a pattern, sorted.
	Glob(pattern string) ([]string, error)
}

// Disk reads from the file system.
type Disk struct{}

// ReadFile reads a file; its errors do not repeat the name.
func (Disk) ReadFile(name string) ([]byte, error) { return document.ReadFile(name) }

// Glob returns the names that match a pattern, sorted.
func (Disk) Glob(pattern string) ([]string, error) { return filepath.Glob(pattern) }

//go:embed *.yaml *.csv tools/*.yaml
var defaults embed.FS

// builtin reads the embedded default.
type builtin struct{}

// builtinName is the prefix of its names.
const builtinName = "built-in:"

// BuiltIn is the name of the main file of the embedded default.
const BuiltIn = builtinName + "callgate.yaml"

func (builtin) ReadFile(name string) ([]byte, error) {
	data, err := defaults.ReadFile(strings.TrimPrefix(name, builtinName))
	if err != nil {
		return nil, document.WithoutPath(err)
	}
	return data, nil
}

func (builtin) Glob(pattern string) ([]string, error) {
	found, err := fs.Glob(defaults, strings.TrimPrefix(pattern, builtinName))
	slices.Sort(found)
	for i := range found {
		found[i] = builtinName + found[i]
	}
	return found, err
}

// overlay is files in which one has other bytes.
type overlay struct {
	Files
	name string
	data []byte
}

func (o overlay) ReadFile(name string) ([]byte, error) {
	if name == o.name {
		return o.data, nil
	}
	return o.Files.ReadFile(name)
}

// embedded reports whether the files are those of the embedded default.
func (l *loader) embedded() bool { _, is := l.files.(builtin); return is }

// folderOf returns the folder of a file.
func (l *loader) folderOf(name string) string {
	if l.embedded() {
		return builtinName + path.Dir(strings.TrimPrefix(name, builtinName))
	}
	return filepath.Dir(name)
}

// resolve returns the name of a path that is written in a file of dir.
func (l *loader) resolve(dir, name string) string {
	switch {
	case l.embedded():
		return builtinName + path.Join(strings.TrimPrefix(dir, builtinName), name)
	case filepath.IsAbs(name):
		return name
	}
	return filepath.Join(dir, name)
}

// digestName is the name of a file in the digest: the same on every machine.
func (l *loader) digestName(name string) string {
	if l.embedded() {
		return strings.TrimPrefix(name, builtinName)
	}
	if r, err := filepath.Rel(l.root, name); err == nil {
		return filepath.ToSlash(r)
	}
	return name
}
