package format

import (
	"net/netip"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
)

func isIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func isIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
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
			if !ascii.IsLetter(label[i]) && !ascii.IsDigit(label[i]) && label[i] != '-' {
				return false
			}
		}
		if len(label) >= 4 && label[2:4] == "--" && !punycode(label) {
			return false
		}
	}
	return true
}

// punycode reports whether a label that has hyphens in its third and fourth
// place is an A-label as far as its letters show.
func punycode(label string) bool {
	return strings.EqualFold(label[:2], "xn") && len(label) > 4
}
