package configs

import (
	"io/fs"
	"path"
	"slices"
	"testing"

	"github.com/callgate/callgate/configs/document"
)

// memory is a configuration that is not on disk: a source for the tests that
// load thousands of them.
type memory map[string]string

func (m memory) read(name string) ([]byte, error) {
	data, there := m[name]
	if !there {
		return nil, document.WithoutPath(&fs.PathError{Path: name, Err: fs.ErrNotExist})
	}
	return []byte(data), nil
}

func (memory) resolve(dir, p string) string { return path.Join(dir, p) }

func (m memory) glob(pattern string) ([]string, error) {
	var found []string
	for name := range m {
		if matched, err := path.Match(pattern, name); err != nil {
			return nil, err
		} else if matched {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found, nil
}

func (memory) dir(name string) string      { return path.Dir(name) }
func (memory) relative(name string) string { return name }

// inMemory is the base as a memory.
func inMemory(t testing.TB) memory {
	t.Helper()
	m := memory{}
	for name, f := range base(t) {
		m[name] = f.data
	}
	return m
}
