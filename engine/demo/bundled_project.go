package demo

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// project is a small folder to try the tools on.
//
//go:embed project
var project embed.FS

// UnpackProject writes the bundled project into a folder, which is made if it is
// absent. An existing file is not changed. A file appears whole or not at all, so several
// processes may unpack at once.
func UnpackProject(dir string) error {
	return fs.WalkDir(project, "project", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel("project", filepath.FromSlash(path))
		if err != nil {
			return err
		}
		target := filepath.Join(dir, name)
		if d.IsDir() {
			if err := os.MkdirAll(target, 0o755); err != nil {
				return fmt.Errorf("the bundled project could not be unpacked: %w", err)
			}
			return nil
		}
		content, err := project.ReadFile(path)
		if err != nil {
			return err
		}
		if err := writeNew(target, content); err != nil {
			return fmt.Errorf("the bundled project could not be unpacked: %w", err)
		}
		return nil
	})
}

// writeNew writes a file beside its target and links it, which fails if the target exists,
// even if another process has just created it.
func writeNew(target string, content []byte) error {
	if _, err := os.Lstat(target); err == nil {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(target), ".unpacking-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	err = os.Link(f.Name(), target)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return writeExclusively(target, content)
}

// writeExclusively is for file systems without links, where another process may
// for a moment see less than the whole file.
func writeExclusively(target string, content []byte) error {
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}
