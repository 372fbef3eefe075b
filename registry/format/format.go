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
	"regexp"
	"slices"

	"github.com/callgate/callgate/internal/ascii"
)

// Format is one value of the keyword format.
type Format struct {
	Name        string
	Description string // as messages name it, after "must be"
	Valid       func(string) bool
}

// formats is the closed list; read only. idn-hostname is not in it: its tables
// change with every version of Unicode, and what cannot be checked is refused.
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
			if !ascii.IsHexDigit(s[i]) {
				return false
			}
		}
	}
	return true
}

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
	n := ascii.LeadingDigits(s)
	if n == 0 || n > 1 && s[0] == '0' {
		return false
	}
	return s[n:] == "#" || isJSONPointer(s[n:])
}
