// Package weburl decides which foreign URLs may be shown to people, who open them in a
// browser. Tools send such URLs in three protocols, and one rule applies to all of them.
package weburl

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
)

// MaxBytes bounds a URL.
const MaxBytes = 8 << 10

// privateSuffixes are the ends of names that mean something on one machine or in one
// private network alone (RFC 6761, RFC 6762, RFC 8375, and those that routers and
// companies use; "internal" is reserved for them).
var privateSuffixes = []string{"localhost", "localdomain", "local", "internal", "intranet", "private", "corp", "home", "home.arpa", "lan"}

// IsPublic reports whether a URL may be shown to a person: https, at a public name of the
// DNS, in visible ASCII, without user info. Every reader must find the same host in it, and
// it must not lead to the reader's own machine or network by its name. The name is not
// resolved: its addresses may change until the URL is opened.
func IsPublic(address string) bool {
	if len(address) > MaxBytes || !strings.HasPrefix(address, "https://") {
		return false
	}
	if !ascii.IsVisible(address) || strings.ContainsAny(address, "\\\"<>^`{|}") {
		return false
	}
	u, err := url.Parse(address)
	return err == nil && u.User == nil && validPort(u) && publicName(u.Hostname())
}

// validPort reports whether a URL has no port, or one in the usual form.
func validPort(u *url.URL) bool {
	_, port, stated := strings.Cut(u.Host, ":") // addresses of IPv6 are refused anyway
	if !stated {
		return true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0 && strconv.FormatUint(n, 10) == port
}

// publicName reports whether a host is a name of at least two labels that the public DNS
// may have, and not an address in any spelling.
func publicName(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil || len(host) > 253 {
		return false
	}
	host = strings.ToLower(host)
	labels := strings.Split(host, ".")
	if len(labels) < 2 || numeric(labels[len(labels)-1]) {
		return false
	}
	for _, suffix := range privateSuffixes {
		if host == suffix || strings.HasSuffix(host, "."+suffix) {
			return false
		}
	}
	return !slices.ContainsFunc(labels, func(l string) bool {
		return l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != ""
	})
}

// numeric reports whether a last label is a number: browsers then read the whole host as an
// IPv4 address, also in forms that other programs read as names.
func numeric(label string) bool {
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		label, digits = "0"+hex, digits+"abcdef"
	}
	return label != "" && strings.Trim(label, digits) == ""
}
