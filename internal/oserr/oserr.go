// Package oserr tells what went wrong in the file system without saying where, for
// messages that name the place themselves.
package oserr

import (
	"errors"
	"io/fs"
)

// Reason takes operation and path out of an error of the system. Any other error is
// returned as it is.
func Reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
