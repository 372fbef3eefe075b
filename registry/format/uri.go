package format

import (
	"net/netip"
	"strings"
	"unicode/utf8"

	"github.com/callgate/callgate/internal/ascii"
)

const (
	unreserved = "-._~"
	subDelims  = "!$&'()*+,;="
)

func isURI(s string) bool          { return uri(s, true, false) }
func isURIReference(s string) bool { return uri(s, false, false) }
func isIRI(s string) bool          { return uri(s, true, true) }
func isIRIReference(s string) bool { return uri(s, false, true) }

// uri follows RFC 3986, and RFC 3987 where international.
func uri(s string, absolute, international bool) bool {
	rest, fragment, _ := strings.Cut(s, "#")
	if !uriChars(fragment, subDelims+":@/?", international) {
		return false
	}
	rest, query, _ := strings.Cut(rest, "?")
	if !uriChars(query, subDelims+":@/?", international) {
		return false
	}
	if scheme, after, ok := strings.Cut(rest, ":"); ok && isScheme(scheme) {
		rest = after
	} else if absolute {
		return false
	} else if segment, _, _ := strings.Cut(rest, "/"); strings.Contains(segment, ":") {
		return false
	}
	if authority, ok := strings.CutPrefix(rest, "//"); ok {
		end := strings.IndexByte(authority, '/')
		if end < 0 {
			end = len(authority)
		}
		if !isAuthority(authority[:end], international) {
			return false
		}
		rest = authority[end:]
	}
	return uriChars(rest, subDelims+":@/", international)
}

func isScheme(s string) bool {
	if s == "" || !ascii.IsLetter(s[0]) {
		return false
	}
	for i := range len(s) {
		if !ascii.IsLetter(s[i]) && !ascii.IsDigit(s[i]) && !strings.ContainsRune("+-.", rune(s[i])) {
			return false
		}
	}
	return true
}

func isAuthority(s string, international bool) bool {
	if at := strings.IndexByte(s, '@'); at >= 0 {
		if !uriChars(s[:at], subDelims+":", international) {
			return false
		}
		s = s[at+1:]
	}
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 || !ipLiteral(s[1:end]) {
			return false
		}
		return isPort(s[end+1:])
	}
	host, port := s, ""
	if colon := strings.IndexByte(s, ':'); colon >= 0 {
		host, port = s[:colon], s[colon:]
	}
	return uriChars(host, subDelims, international) && isPort(port)
}

func isPort(s string) bool {
	return s == "" || s[0] == ':' && (len(s) == 1 || ascii.AllDigits(s[1:]))
}

func ipLiteral(s string) bool {
	if s != "" && s[0]|0x20 == 'v' {
		version, rest, ok := strings.Cut(s[1:], ".")
		if !ok || version == "" || rest == "" {
			return false
		}
		for i := range len(version) {
			if !ascii.IsHexDigit(version[i]) {
				return false
			}
		}
		return uriChars(rest, subDelims+":", false) && !strings.Contains(rest, "%")
	}
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

// uriChars reports whether a part holds only unreserved characters, escapes, and
// the further ones it may.
func uriChars(s, further string, international bool) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case ascii.IsLetter(c), ascii.IsDigit(c), strings.IndexByte(unreserved, c) >= 0, strings.IndexByte(further, c) >= 0:
		case c == '%':
			if i+2 >= len(s) || !ascii.IsHexDigit(s[i+1]) || !ascii.IsHexDigit(s[i+2]) {
				return false
			}
			i += 2
		case c >= utf8.RuneSelf && international:
		default:
			return false
		}
	}
	return true
}

// isURITemplate follows RFC 6570.
func isURITemplate(s string) bool {
	for s != "" {
		open := strings.IndexByte(s, '{')
		text := s
		if open >= 0 {
			text = s[:open]
		}
		if !templateText(text) {
			return false
		}
		if open < 0 {
			return true
		}
		end := strings.IndexByte(s[open:], '}')
		if end < 0 || !templateExpression(s[open+1:open+end]) {
			return false
		}
		s = s[open+end+1:]
	}
	return true
}

func templateText(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c <= ' ' || c == 0x7F || strings.IndexByte("\"<>\\^`{|}", c) >= 0:
			return false
		case c == '%':
			if i+2 >= len(s) || !ascii.IsHexDigit(s[i+1]) || !ascii.IsHexDigit(s[i+2]) {
				return false
			}
		}
	}
	return true
}

func templateExpression(s string) bool {
	if s != "" && strings.IndexByte("+#./;?&", s[0]) >= 0 {
		s = s[1:]
	}
	for spec := range strings.SplitSeq(s, ",") {
		name, length, limited := strings.Cut(spec, ":")
		if limited && (len(length) > 4 || !ascii.AllDigits(length) || length[0] == '0') {
			return false
		}
		if !limited {
			name = strings.TrimSuffix(name, "*")
		}
		if name == "" || name[0] == '.' || name[len(name)-1] == '.' || strings.Contains(name, "..") || !uriChars(strings.ReplaceAll(name, "-", "\x00"), "", false) || strings.Contains(name, "~") {
			return false
		}
	}
	return true
}
