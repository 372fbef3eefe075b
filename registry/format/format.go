// Package format implements the string formats of JSON Schema that Callgate
// asserts.
//
// # Contract
//
// The list is closed: a schema that states another format is refused when it is
// loaded. Each format follows the RFC that JSON Schema names for it, takes time
// linear in its text (regex: texts of at most 800 bytes), and holds no state.
package format

import (
	"github.com/callgate/callgate/registry/internal/lexical"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Format is one value of the keyword format.
type Format struct {
	Name        string
	Description string // as messages name it, after "must be"
	Valid       func(string) bool
}

// formats is the closed list; read only. idn-hostname is not in it: its tables
// change with every version of Unicode, and what cannot be judged is refused.
var formats = []*Format{
	{"date", "a date such as 2026-01-31", isDate},
	{"date-time", "a date and time such as 2026-01-31T12:00:00Z", isDateTime},
	{"duration", "a duration such as P3DT4H", isDuration},
	{"email", "an email address", isEmail},
	{"hostname", "a host name", isHostname},
	{"idn-email", "an email address", isIDNEmail},
	{"ipv4", "an IPv4 address", isIPv4},
	{"ipv6", "an IPv6 address", isIPv6},
	{"iri", "an absolute IRI", isIRI},
	{"iri-reference", "an IRI reference", isIRIReference},
	{"json-pointer", "a JSON Pointer such as /a/0", isJSONPointer},
	{"regex", "a regular expression (RE2)", isRegex},
	{"relative-json-pointer", "a relative JSON Pointer such as 1/a", isRelativeJSONPointer},
	{"time", "a time with its offset such as 12:00:00Z", isTime},
	{"uri", "an absolute URI", isURI},
	{"uri-reference", "a URI reference", isURIReference},
	{"uri-template", "a URI template (RFC 6570)", isURITemplate},
	{"uuid", "a UUID", isUUID},
}

// All lists the formats, sorted by name.
func All() []*Format { return slices.Clone(formats) }

// Names lists the names of the formats, sorted.
func Names() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.Name)
	}
	return names
}

// Known reports whether schemas may state a format.
func Known(name string) bool { return Find(name) != nil }

// Find returns the format of a name, or nil.
func Find(name string) *Format {
	for _, f := range formats {
		if f.Name == name {
			return f
		}
	}
	return nil
}

func isIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func isIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

// maxRegexBytes is the longest text that is compiled to see whether it is a regular expression.
const maxRegexBytes = 800

func isRegex(s string) bool {
	if len(s) > maxRegexBytes {
		return false
	}
	_, err := regexp.Compile(s)
	return err == nil
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !hexDigit(s[i]) {
				return false
			}
		}
	}
	return true
}

func hexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func digit(c byte) bool { return c >= '0' && c <= '9' }

func isJSONPointer(s string) bool {
	if s != "" && s[0] != '/' {
		return false
	}
	for i := range len(s) {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return false
		}
	}
	return true
}

func isRelativeJSONPointer(s string) bool {
	n := lexical.LeadingDigits(s)
	if n == 0 || n > 1 && s[0] == '0' {
		return false
	}
	return s[n:] == "#" || isJSONPointer(s[n:])
}

// isHostname follows RFC 1123 with the length limits of RFC 1035, and for
// labels of the form xn-- the prefix rule of RFC 5890 alone.
func isHostname(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if !letter(label[i]) && !digit(label[i]) && label[i] != '-' {
				return false
			}
		}
		if len(label) >= 4 && label[2:4] == "--" && !punycode(label) {
			return false
		}
	}
	return true
}

// punycode tells whether a label that has hyphens in its third and fourth
// place is an A-label as far as its letters show.
func punycode(label string) bool {
	return strings.EqualFold(label[:2], "xn") && len(label) > 4
}

func isEmail(s string) bool { return email(s, false) }

func isIDNEmail(s string) bool { return email(s, true) }

func email(s string, international bool) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at > 64*utf8.UTFMax || len(s) > 1024 {
		return false
	}
	return localPart(s[:at], international) && mailDomain(s[at+1:], international)
}

func localPart(s string, international bool) bool {
	if utf8.RuneCountInString(s) > 64 {
		return false
	}
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return quotedLocal(s[1:len(s)-1], international)
	}
	for atom := range strings.SplitSeq(s, ".") {
		if atom == "" {
			return false
		}
		for _, r := range atom {
			if r < utf8.RuneSelf && !letter(byte(r)) && !digit(byte(r)) && !strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r) || r >= utf8.RuneSelf && !international {
				return false
			}
		}
	}
	return true
}

func quotedLocal(s string, international bool) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
			if i == len(s) || s[i] < ' ' || s[i] >= 0x7F {
				return false
			}
		case c == '"' || c < ' ' || c == 0x7F || c >= utf8.RuneSelf && !international:
			return false
		}
	}
	return true
}

func mailDomain(s string, international bool) bool {
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		literal := s[1 : len(s)-1]
		if v6, ok := strings.CutPrefix(literal, "IPv6:"); ok {
			return isIPv6(v6)
		}
		return isIPv4(literal)
	}
	if !international {
		return isHostname(s)
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || strings.ContainsAny(label, " \t\r\n\"(),:;<>@[\\]") {
			return false
		}
	}
	return true
}
