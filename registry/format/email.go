package format

import (
	"strings"
	"unicode/utf8"

	"github.com/callgate/callgate/internal/ascii"
)

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
			if r < utf8.RuneSelf && !ascii.IsLetter(byte(r)) && !ascii.IsDigit(byte(r)) && !strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r) || r >= utf8.RuneSelf && !international {
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
