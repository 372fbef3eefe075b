package netx

import (
	"slices"
	"strings"
)

// charsetsUTF8 are names of UTF-8, and of a part of it.
var charsetsUTF8 = []string{"", "utf-8", "utf8", "us-ascii"}

// IsUTF8 reports whether a body whose content type names a charset is in UTF-8: the empty name is that of
// none.
func IsUTF8(charset string) bool { return slices.Contains(charsetsUTF8, strings.ToLower(charset)) }
