//go:build !unix

package server

// descriptorLimit is how many file descriptors the process may have open; ok is false
// where that is not known.
func descriptorLimit() (limit uint64, ok bool) { return 0, false }
