package boundary

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy/internal/lexical"
)

const (
	maxHost = 253
	maxURL  = 8192
)

const (
	reasonHost     = "Only the hosts of this project are allowed: a plain host name, without scheme, port, user or a dot at its end."
	reasonNoHosts  = "This project allows no hosts."
	reasonURL      = "Only http and https URLs of this project's hosts are allowed, as in https://HOST/PATH, without a user name."
	reasonURLPlain = "The URL must be plain ASCII; percent-encode other characters, spaces, quotes and backslashes."
)

// hostReason checks a host; "" where it is allowed.
func (p Lists) hostReason(value string) string {
	switch {
	case len(p.Hosts) == 0:
		return reasonNoHosts
	case !p.allowsHost(value):
		return reasonHost
	}
	return ""
}

// allowsHost reports whether a host is one of the project's.
func (p Lists) allowsHost(value string) bool {
	host := foldASCII(value)
	if _, err := netip.ParseAddr(host); err != nil && !hostName(host) {
		return false
	}
	for _, entry := range p.Hosts {
		entry = foldASCII(entry)
		if entry == host {
			return true
		}
		domain, wild := strings.CutPrefix(entry, "*.")
		if wild && hostName(host) && hostName(domain) && strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}

// hostName reports whether a folded host is a DNS name. One whose last label is a
// number is none: programs read 127.1, 0x7f.1 and 2130706433 as addresses.
func hostName(host string) bool {
	if host == "" || len(host) > maxHost {
		return false
	}
	last := ""
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
		last = label
	}
	if strings.Trim(last, "0123456789") == "" {
		return false
	}
	hex, isHex := strings.CutPrefix(last, "0x")
	return !isHex || strings.Trim(hex, "0123456789abcdef") != ""
}

// HostProblem returns the fault of an entry of a project's hosts; "" for none.
func HostProblem(entry string) string {
	if bad := lexical.NameProblem(entry); bad != "" {
		return bad
	}
	host := foldASCII(entry)
	if address, err := netip.ParseAddr(host); err == nil {
		if address.Zone() != "" || address.String() != host {
			return fmt.Sprintf("found the address %s, expected its usual form without a zone", parser.Quote(entry))
		}
		return ""
	}
	if !hostName(strings.TrimPrefix(host, "*.")) {
		return fmt.Sprintf("found the host %s, expected a host name, *.NAME or an IP address, without scheme, port or a dot at its end",
			parser.Quote(entry))
	}
	return ""
}

// urlReason checks a URL; "" where it is allowed. It accepts only what every
// parser takes for the same host: the authority is cut out by hand as well, and
// must agree with net/url.
func (p Lists) urlReason(value string) string {
	if len(p.Hosts) == 0 {
		return reasonNoHosts
	}
	if len(value) > maxURL {
		return reasonURLPlain
	}
	if !ascii.IsVisible(value) || strings.ContainsAny(value, "\"\\<>^`{|}") {
		return reasonURLPlain
	}
	scheme, rest, found := strings.Cut(value, "://")
	if s := foldASCII(scheme); !found || s != "http" && s != "https" {
		return reasonURL
	}
	authority, tail := rest, ""
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority, tail = rest[:end], rest[end:]
	}
	// Old parsers end the authority only at a slash, so that after ? or # the
	// part behind an @ is their host.
	if strings.Contains(authority, "@") || !strings.HasPrefix(tail, "/") && strings.Contains(tail, "@") {
		return reasonURL
	}
	host, ok := splitPort(authority)
	if !ok {
		return reasonURL
	}
	u, err := url.Parse(value)
	if err != nil || u.User != nil || u.Opaque != "" || u.Host != authority || u.Hostname() != host {
		return reasonURL
	}
	if !p.allowsHost(host) {
		return reasonURL
	}
	return ""
}

// splitPort takes the port off an authority, and the brackets off an IPv6
// address.
func splitPort(authority string) (host string, ok bool) {
	host = authority
	bracketed := strings.HasPrefix(authority, "[")
	if bracketed {
		end := strings.IndexByte(authority, ']')
		if end < 0 {
			return "", false
		}
		host, authority = authority[1:end], authority[end+1:]
		if address, err := netip.ParseAddr(host); err != nil || !address.Is6() || address.Zone() != "" {
			return "", false
		}
	}
	colon := strings.IndexByte(authority, ':')
	if colon < 0 {
		return host, !bracketed || authority == ""
	}
	if bracketed && colon != 0 {
		return "", false
	}
	if !bracketed {
		host = authority[:colon]
	}
	port := authority[colon+1:]
	n, err := strconv.ParseUint(port, 10, 16)
	return host, err == nil && n > 0 && port[0] != '0' && port[0] != '+'
}

// foldASCII lowers A to Z and leaves every other byte.
func foldASCII(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= 'A' && c <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if b[j] >= 'A' && b[j] <= 'Z' {
					b[j] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
