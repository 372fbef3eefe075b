package elicitation

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/callgate/callgate/internal/ascii"
)

// maxFileURI bounds the URI of a folder: a path of 4096 bytes, each escaped.
const maxFileURI = 3*4096 + len("file://")

// pathOfFileURI is the path that a file URI names, where every reader finds the same one
// in it: there is no host, nothing beside the path, and no escape stands for what
// separates the parts of a path.
func pathOfFileURI(uri string) (path string, ok bool) {
	escaped, ok := strings.CutPrefix(uri, "file://")
	if !ok || len(uri) > maxFileURI || !isURIText(uri) || strings.ContainsAny(escaped, "?#") {
		return "", false
	}
	if !strings.HasPrefix(escaped, "/") || strings.HasPrefix(escaped, "//") {
		return "", false
	}
	lower := strings.ToLower(escaped)
	for _, separator := range []string{"%2f", "%5c", "%00"} {
		if strings.Contains(lower, separator) {
			return "", false
		}
	}
	path, err := url.PathUnescape(escaped)
	return path, err == nil && utf8.ValidString(path)
}

// isURIText reports whether a text holds only characters that a URI may contain.
func isURIText(s string) bool {
	return ascii.IsVisible(s) && !strings.ContainsAny(s, "\"<>\\^`{|}")
}
