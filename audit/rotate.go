package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/callgate/callgate/internal/safe"
)

// rotatedName is where a file goes whose first record has the seq: in the order
// of names, before the one that follows it and before the one that is written.
const rotatedName = "audit-%020d.jsonl"

// rotate moves a file that has grown enough aside; the next record begins
// another. A file that cannot be moved grows on: that endangers no record, so
// none is refused for it, and it is tried again after a pause. Behind the move
// there is no way back: until the new file stands, every record is refused.
func (l *Log) rotate() error {
	w := &l.writer
	if l.opts.RotateBytes <= 0 || w.end < l.opts.RotateBytes || l.opts.Now().Before(w.moveAt) {
		return nil
	}
	aside := filepath.Join(filepath.Dir(l.path), fmt.Sprintf(rotatedName, w.before.seq+1))
	if err := safe.Do(func() error { return l.opts.move(l.path, aside) }); err != nil {
		w.moveAt = l.opts.Now().Add(maxPause)
		if !w.moveFailed {
			w.moveFailed = true
			l.opts.reportDegraded(Rotation, fmt.Errorf("%s cannot be moved aside and grows on: %w", l.path, err))
		}
		return nil
	}
	if w.moveFailed {
		w.moveFailed = false
		l.opts.reportDegraded(Rotation, nil)
	}
	// All that was written is synced: closing has nothing to say about it.
	_ = safe.Do(w.file.Close)
	w.file = nil
	w.pauses.Reset()
	w.tail, w.before, w.needsCreate = tail{link: w.link}, w.link, true
	l.signer.signFileEnd(w.link)
	err := l.reopen()
	w.cause = err
	return err
}

// moveAside renames from to a name that nothing has.
func moveAside(from, to string) error {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s is there already", to), err)
	}
	return os.Rename(from, to)
}
