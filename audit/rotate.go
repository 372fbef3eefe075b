package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/callgate/callgate/audit/internal/logfile"
	"github.com/callgate/callgate/internal/safe"
)

// rotatedName is the name of a file whose first record has the seq. By name, it sorts
// before the next file and before the one that is being written.
const rotatedName = "audit-%020d.jsonl"

// rotate renames a file that has reached RotateBytes; the next record begins another.
// If the file cannot be renamed it grows on: that endangers no record, so none is
// refused, and rotate tries again after a pause. After the rename there is no way
// back: until the new file exists, every record is refused.
func (l *Log) rotate() error {
	w := &l.writer
	if l.opts.RotateBytes <= 0 || w.end < l.opts.RotateBytes || l.opts.Now().Before(w.moveAt) {
		return nil
	}
	rotated := filepath.Join(filepath.Dir(l.path), fmt.Sprintf(rotatedName, w.before.Seq+1))
	if err := safe.Do(func() error {
		if l.opts.Preallocate { // the zeros behind the records go
			if err := w.truncate(); err != nil {
				return err
			}
		}
		return l.opts.move(l.path, rotated)
	}); err != nil {
		w.moveAt = l.opts.Now().Add(logfile.MaxPause)
		if !w.moveFailed {
			w.moveFailed = true
			l.opts.reportDegraded(Rotation, fmt.Errorf("%s cannot be rotated and grows on: %w", l.path, err))
		}
		return nil
	}
	if w.moveFailed {
		w.moveFailed = false
		l.opts.reportDegraded(Rotation, nil)
	}
	// Everything is synced: an error of Close does not matter.
	_ = safe.Do(w.file.Close)
	w.file = nil
	w.pauses.Reset()
	w.tail, w.before, w.needsCreate = tail{Link: w.Link}, w.Link, true
	l.signer.SignFileEnd(w.Link)
	err := l.reopen()
	w.cause = err
	return err
}

// renameRotated renames from to a name that no file has.
func renameRotated(from, to string) error {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s is there already", to), err)
	}
	return os.Rename(from, to)
}
