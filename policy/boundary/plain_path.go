package boundary

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/callgate/callgate/internal/ascii"
)

// plainPath refuses paths that other programs read as another path than the kernel
// does: some take URLs, some decode percent signs, some take a backslash for a
// slash, some normalise characters or drop those that do not show.
func plainPath(value string) bool {
	if value == "" || len(value) > maxPath {
		return false
	}
	for name := range strings.SplitSeq(value, "/") {
		if len(name) > maxName || !plainName(name) {
			return false
		}
	}
	// A name with a colon may stand first only behind "./", as in a URL reference
	// (RFC 3986, section 4.2): else the part before the colon is a scheme, or a drive.
	first, _, _ := strings.Cut(value, "/")
	return !hasScheme(lenient(first)) && !hasScheme(lenient(decoded(first)))
}

// decoded is a name without percent signs, as some programs read it; one that is not
// percent-encoded stays as it is.
func decoded(name string) string {
	if plain, err := url.PathUnescape(name); err == nil {
		return plain
	}
	return name
}

// plainName reports whether a part of a path is one name to every program.
func plainName(name string) bool { return singleName(name) && singleName(decoded(name)) }

// singleName is plainName for programs that do not decode percent signs.
func singleName(name string) bool {
	read := lenient(name)
	if read != name && (read == "" || read == "." || read == "..") {
		return false
	}
	if strings.ContainsAny(name, "\x00\\") || strings.ContainsAny(read, "/\\") {
		return false
	}
	lower := strings.ToLower(read)
	return !slices.ContainsFunc(encodedSeparators, func(encoded string) bool { return strings.Contains(lower, encoded) })
}

// encodedSeparators are a dot, a slash, a backslash, NUL and a percent sign, percent-encoded,
// and the first three in the overlong forms that careless decoders of UTF-8 take.
var encodedSeparators = []string{
	"%2e", "%2f", "%5c", "%00", "%25",
	"%c0%ae", "%c0%af", "%c1%9c", "%e0%80%ae", "%e0%80%af", "%e0%81%9c",
}

// lenient is a name as the most lenient program would read it: in Unicode's
// compatibility form (NFKC), where a fullwidth dot is a dot, without characters that do
// not show, and without spaces at its ends.
func lenient(name string) string {
	visible := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, name)
	return strings.TrimSpace(norm.NFKC.String(visible))
}

// hasScheme reports whether a text begins as a URL does (RFC 3986, section 3.1).
func hasScheme(s string) bool {
	scheme, _, found := strings.Cut(s, ":")
	if !found || scheme == "" || !ascii.IsLetter(scheme[0]) {
		return false
	}
	for i := range len(scheme) {
		if c := scheme[i]; !ascii.IsLetter(c) && !ascii.IsDigit(c) && strings.IndexByte("+-.", c) < 0 {
			return false
		}
	}
	return true
}
