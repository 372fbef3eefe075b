package wire

import (
	"encoding/base64"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
)

// SchemaHeader is the keyword by which a tool's schema has an argument repeated by a header.
const SchemaHeader = "x-mcp-header"

// A header value of this form is base64.
const (
	base64Prefix = "=?base64?"
	base64Suffix = "?="
)

// EncodeHeader writes a text as the value of a header: visible ASCII with spaces inside is
// unchanged, anything else is base64.
func EncodeHeader(s string) string {
	plain := ascii.IsPrintable(s) &&
		strings.Trim(s, " ") == s && (!strings.HasPrefix(s, base64Prefix) || !strings.HasSuffix(s, base64Suffix))
	if plain {
		return s
	}
	return base64Prefix + base64.StdEncoding.EncodeToString([]byte(s)) + base64Suffix
}

// DecodeHeader reads what EncodeHeader wrote. It fails on base64 that is not valid.
func DecodeHeader(value string) (string, bool) {
	inner, ok := strings.CutPrefix(value, base64Prefix)
	if !ok {
		return value, true
	}
	if inner, ok = strings.CutSuffix(inner, base64Suffix); !ok {
		return value, true
	}
	b, err := base64.StdEncoding.Strict().DecodeString(inner)
	return string(b), err == nil
}
