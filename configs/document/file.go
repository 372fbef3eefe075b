package document

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/callgate/callgate/internal/oserr"
)

// MaxFileBytes bounds one configuration file.
const MaxFileBytes = 64 << 20

// ReadFile reads one regular file of at most 64 MiB. Its errors say what was found, and
// not the path.
func ReadFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, WithoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("found " + oserr.FileKind(info.Mode()) + "; expected a regular file")
	}
	if info.Size() > MaxFileBytes {
		return nil, errTooLarge
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, WithoutPath(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1)) // it may have grown since
	if err != nil {
		return nil, WithoutPath(err)
	}
	if len(data) > MaxFileBytes {
		return nil, errTooLarge
	}
	return data, nil
}

// errTooLarge is a file beyond the bound.
var errTooLarge = fmt.Errorf("found more than %d MiB; expected a smaller file", MaxFileBytes>>20)

// errAbsent is a file that is not there.
var errAbsent = errors.New("found no such file; expected a file")

// IsAbsent reports whether a file could not be read because it is not there.
func IsAbsent(err error) bool { return errors.Is(err, errAbsent) }

// WithoutPath takes the path out of an error of the system: the fault names the file.
func WithoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		if errors.Is(err, fs.ErrNotExist) {
			return errAbsent
		}
		err = p.Err
	}
	return fmt.Errorf("found a file that cannot be read (%w); expected a readable one", err)
}
