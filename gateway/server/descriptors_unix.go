//go:build unix

package server

import "syscall"

// descriptorLimit is how many file descriptors the process may have open; ok is false
// where that is not known.
func descriptorLimit() (limit uint64, ok bool) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, false
	}
	return uint64(l.Cur), true //nolint:unconvert // signed on some systems
}
