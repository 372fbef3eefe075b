package strictjson

import "strings"

var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// EscapeToken escapes one reference token of a JSON Pointer (RFC 6901, section 3).
func EscapeToken(token string) string { return escaper.Replace(token) }

// UnescapeToken is what an escaped reference token stands for (RFC 6901, section 4).
func UnescapeToken(token string) string { return unescaper.Replace(token) }

// Pointer is the JSON Pointer of a path.
func Pointer(path ...string) string {
	var b strings.Builder
	for _, token := range path {
		b.WriteByte('/')
		b.WriteString(EscapeToken(token))
	}
	return b.String()
}
