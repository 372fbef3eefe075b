package document

import (
	"path/filepath"
	"strings"
)

// ReadCommand reads a program and its arguments. A relative path to the program starts at
// the folder of the file that names it. The program is started in that folder, too,
// regardless of the gateway's own. A name without a separator is looked up on PATH.
// Arguments stay as they are.
func (n Node) ReadCommand(into *[]string, folder *string) {
	n.Texts("a program and its arguments", into)
	if len(*into) == 0 {
		return
	}
	if program := (*into)[0]; strings.ContainsRune(program, filepath.Separator) {
		(*into)[0] = n.absolutePath(program)
	}
	*folder = n.absolutePath(".")
}

// absolutePath makes a path of the node's file absolute.
func (n Node) absolutePath(path string) string {
	absolute, err := filepath.Abs(n.ResolvePath(path))
	if err != nil {
		n.Fail("found the path %q, which cannot be made an absolute one: %v", path, err)
		return path
	}
	return absolute
}
