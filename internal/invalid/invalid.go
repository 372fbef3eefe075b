// Package invalid is what packages say of a value that the configuration has given them and that
// they cannot use: which field of it, and what was expected. They do not know the file; its reader
// (configs/document) adds the place.
package invalid

import "strings"

// Field is one invalid field of a value.
type Field struct {
	Path    []string // keys from the value on; an element of a list is its index in decimal
	Message string   // what was found and what was expected
}

// Error is the path and the message.
func (f Field) Error() string { return strings.Join(f.Path, ".") + ": " + f.Message }
