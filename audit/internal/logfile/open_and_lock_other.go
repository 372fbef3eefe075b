//go:build !unix || solaris || aix

package logfile

import (
	"errors"
	"os"
)

const (
	strictOpen  = 0
	nonBlocking = 0
)

// Lock refuses: without a lock that ends with its process, two processes
// could write one chain.
func Lock(*os.File) (held bool, err error) {
	return false, errors.New("this operating system has no file lock that Callgate can use")
}
