// Package wholefile writes files that are there whole or not at all.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Prefix is how the names of files begin that Replace has not finished.
const Prefix = ".new-"

// Replace writes a file in the place of the one of that name, if there is one: a reader, also
// after a crash, finds the one or the other whole. Only the owner may read it. The
// folder must exist.
func Replace(name string, content []byte) error { return ReplaceAs(name, content, 0o600) }

// ReplaceAs is Replace with another mode of the file.
func ReplaceAs(name string, content []byte, mode os.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), Prefix+"*") // of the mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// SyncFolder makes the names in a folder durable, after Replace.
func SyncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
