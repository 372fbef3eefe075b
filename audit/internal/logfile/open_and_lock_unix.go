//go:build unix && !solaris && !aix

package logfile

import (
	"errors"
	"os"
	"syscall"
)

// strictOpen makes an open follow no symbolic link and wait for nobody.
const strictOpen = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// nonBlocking makes an open wait for nobody.
const nonBlocking = syscall.O_NONBLOCK

// Lock takes an exclusive lock; held reports that another process has it.
func Lock(f *os.File) (locked bool, err error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return true, nil
		default:
			return false, err
		}
	}
}
