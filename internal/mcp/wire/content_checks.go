package wire

import (
	"encoding/base64"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
)

// maxMediaType bounds a media type, in bytes.
const maxMediaType = 256

// IsMediaType reports whether a text can be the media type of a block of content: 1 to 256
// printable ASCII characters without spaces at its ends.
func IsMediaType(s string) bool {
	return s != "" && len(s) <= maxMediaType && isPrintable(s)
}

// IsURI reports whether a text can be the URI of a block of content: it has a scheme and is
// printable ASCII without spaces at its ends.
func IsURI(s string) bool {
	return strings.Contains(s, ":") && isPrintable(s)
}

// IsBase64 reports whether a text is base64 with padding. White space in it is ignored, as its readers do.
func IsBase64(s string) bool {
	s = strings.NewReplacer(" ", "", "\t", "").Replace(s) // the decoder ignores line breaks
	_, err := base64.StdEncoding.Strict().DecodeString(s)
	return err == nil
}

func isPrintable(s string) bool {
	return strings.TrimSpace(s) == s && ascii.IsPrintable(s)
}
