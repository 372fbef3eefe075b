// Package oserr gives the reason of a file error without its path, for messages that name
// the path themselves.
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
