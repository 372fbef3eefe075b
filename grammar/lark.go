package grammar

import (
	"fmt"
	"strings"
)

// lark is the notation of Lark. Rules begin with "start"; sets of characters are regular
// expressions of one character, which Lark needs an Earley parser for.
var lark = notation{
	comment: "// ", defines: ": ", literal: quoted,
	class: func(set class) string { return "/" + bracketed(set) + "/" },
	name: func(s string) string {
		if s == start {
			return "start"
		}
		return "r_" + strings.ReplaceAll(s, "-", "_")
	},
	times: func(what string, least, most int) string {
		short := marked(what, least, most)
		switch {
		case short != "":
			return short
		case most < 0:
			return fmt.Sprintf("%s~%d %s*", what, least, what)
		case least == most:
			return fmt.Sprintf("%s~%d", what, least)
		}
		return fmt.Sprintf("%s~%d..%d", what, least, most)
	},
}
