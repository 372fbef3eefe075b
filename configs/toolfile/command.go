package toolfile

import (
	"path/filepath"
	"strings"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/secret"
)

// ReadCommand reads a program and its arguments. A relative path to the program starts at
// the folder of the file that names it. The program is started in that folder, too,
// regardless of the gateway's own. A name without a separator is looked up on PATH.
// Arguments stay as they are.
func ReadCommand(n document.Node, into *[]string, folder *string) {
	n.Texts("a program and its arguments", into)
	if len(*into) == 0 {
		return
	}
	if program := (*into)[0]; strings.ContainsRune(program, filepath.Separator) {
		(*into)[0] = absolutePath(n, program)
	}
	*folder = absolutePath(n, ".")
}

// absolutePath makes a path of the node's file absolute.
func absolutePath(n document.Node, path string) string {
	absolute, err := filepath.Abs(n.ResolvePath(path))
	if err != nil {
		n.Fail("found the path %q, which cannot be made an absolute one: %v", path, err)
		return path
	}
	return absolute
}

// ReadEnv reads variables of the environment: values, which may be empty, or the places of
// secrets. Messages never show the value found: it may be the secret itself.
func ReadEnv(n document.Node, into *map[string]string) {
	*into = map[string]string{}
	n.Members("variables of the environment and their values", func(key, value document.Node) {
		key.Matching("the name of a variable", `^[A-Za-z_][A-Za-z0-9_]*$`)
		value.AnyText("the value of a variable, or env:NAME or file:PATH, its place")
		if !value.IsString() {
			value.Fail("found %s; expected a string, in quotes if it looks like something else: the value of a variable, or env:NAME or file:PATH, its place", value.TypeName())
			return
		}
		text := value.Value
		if secret.IsPlace(text) {
			var s secret.Ref
			secret.Decode(value, "the value of a variable", &s)
			text = s.String()
		}
		(*into)[key.Value] = text
	})
}
