package identity

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/rawjson"
)

// maxDepth bounds the nesting of a header, of claims and of a key set.
const maxDepth = 16

// maxNameBytes bounds a name that is read from a token.
const maxNameBytes = 255

var (
	errNotJSON   = errors.New("not one JSON object of UTF-8")
	errDuplicate = errors.New("a JSON object with one name twice")
	errDeep      = errors.New("JSON that is nested too deeply")
)

// decodeObject reads one JSON object: of UTF-8, with no name twice in any object (RFC
// 7515, section 4, lets a reader refuse them, as readers differ in which one
// they take), and not nested deeper than maxDepth. Names match byte for byte,
// which decoding into a struct would not do. A lone surrogate is accepted where nothing is
// read: a claim may quote what a user wrote.
func decodeObject(data []byte) (map[string]json.RawMessage, error) {
	members, err := rawjson.ReadMapAllowingLoneSurrogates(data, maxDepth)
	switch {
	case errors.Is(err, rawjson.ErrDuplicate):
		return nil, errDuplicate
	case errors.Is(err, rawjson.ErrDepth):
		return nil, errDeep
	case err != nil:
		return nil, errNotJSON
	}
	return members, nil
}

// jsonString reads a JSON string. One with U+FFFD is refused: a decoder puts it where
// the string held a lone surrogate.
func jsonString(raw json.RawMessage) (string, bool) {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil || strings.ContainsRune(s, utf8.RuneError) {
		return "", false
	}
	return s, true
}

// isName reports whether s can be shown to people as a name: 1 to maxNameBytes bytes of
// UTF-8, all visible but for spaces inside.
func isName(s string) bool {
	return s != "" && len(s) <= maxNameBytes && utf8.ValidString(s) && s[0] != ' ' && s[len(s)-1] != ' ' &&
		!strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) || c == utf8.RuneError })
}

// isASCIIName reports whether s is a name of printable ASCII.
func isASCIIName(s string) bool {
	return isName(s) && ascii.IsPrintable(s)
}

// decodeSegment decodes strict base64url without padding: the decoder of the standard
// library skips line ends even when it is strict.
func decodeSegment(s string) ([]byte, bool) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return raw, err == nil
}
