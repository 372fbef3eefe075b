// Package oserr words errors of files for messages that name the path themselves: the reason
// of an error without the path, and the kind of a file.
package oserr

import (
	"errors"
	"io/fs"
)

// Reason removes operation and path from a system error. Any other error is returned
// unchanged.
func Reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// FileKind names the kind of a file that is not regular.
func FileKind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "a file of another kind"
}
