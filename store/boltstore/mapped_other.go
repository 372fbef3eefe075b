//go:build !unix

package boltstore

// mapped returns memory, and what releases it.
func mapped(n int) (memory []byte, release func([]byte)) { return make([]byte, n), func([]byte) {} }
