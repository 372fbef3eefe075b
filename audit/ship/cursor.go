package ship

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// cursorName is the file that says up to which record the collector has the log: a logfile.Link
// in JSON.
const cursorName = "shipped.json"

// maxCursor bounds what is read of the file.
const maxCursor = 4 << 10

// readCursor returns the last record that the collector has; ok is false where nothing was shipped
// from dir yet.
func readCursor(dir string) (at logfile.Link, ok bool, err error) {
	f, err := logfile.OpenFile(filepath.Join(dir, cursorName), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return at, false, nil
	}
	if err != nil {
		return at, false, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxCursor))
	if err != nil {
		return at, false, err
	}
	if err := json.Unmarshal(content, &at); err != nil {
		return at, false, fmt.Errorf("%s is damaged", cursorName)
	}
	return at, true, nil
}

// saveCursor writes the cursor, whole or not at all.
func saveCursor(dir string, at logfile.Link) error {
	content, err := json.Marshal(at)
	if err != nil {
		return err
	}
	return logfile.Replace(filepath.Join(dir, cursorName), content)
}
