package secret

import "github.com/callgate/callgate/configs/document"

// ReadEnv reads variables of the environment: values, which may be empty, or references to
// secrets. Messages never show the value found: it may be the secret itself.
func ReadEnv(n document.Node, into *map[string]string) { readEnv(n, DecodeAny, into) }

// readEnv is ReadEnv with the kinds of references that decode reads.
func readEnv(n document.Node, decode func(document.Node, string, *Ref), into *map[string]string) {
	*into = map[string]string{}
	n.Members("variables of the environment and their values", func(key, value document.Node) {
		key.Matching("the name of a variable", `^[A-Za-z_][A-Za-z0-9_]*$`)
		value.AnyText("the value of a variable, or env:NAME or file:PATH, its place")
		if !value.IsString() && !value.IsMapping() {
			value.Fail("found %s; expected a string, in quotes if it looks like something else: the value of a variable, or env:NAME or file:PATH, its place", value.TypeName())
			return
		}
		text := value.Value
		if value.IsMapping() || IsPlace(text) {
			var s Ref
			decode(value, "the value of a variable", &s)
			text = s.String()
		}
		(*into)[key.Value] = text
	})
}
