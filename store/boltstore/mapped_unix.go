//go:build unix

package boltstore

import "syscall"

// mapped returns memory that the garbage collector does not count, and what releases it. A page of it
// is taken when it is first written.
func mapped(n int) (memory []byte, release func([]byte)) {
	memory, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return make([]byte, n), func([]byte) {}
	}
	return memory, func(b []byte) { _ = syscall.Munmap(b) } // an error leaves it mapped
}
