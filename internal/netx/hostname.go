package netx

import (
	"net/url"
	"strings"
)

// Hostname is the host of an authority, host:port or host alone, as a Host header and an origin
// have it: without the port and brackets, in lower case. Of what is no authority it is empty.
func Hostname(host string) string {
	if name, ok := plainHostname(host); ok {
		return name
	}
	return parsedHostname(host)
}

func parsedHostname(host string) string {
	u, err := url.Parse("http://" + host)
	if err != nil || u.Host != host {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// plainHostname is Hostname for a host of lower-case letters, digits, hyphens and dots, with or
// without a port: nothing of it needs to be decoded.
func plainHostname(host string) (name string, ok bool) {
	name, port, _ := strings.Cut(host, ":")
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return "", false
		}
	}
	for _, c := range []byte(port) {
		if c < '0' || c > '9' {
			return "", false
		}
	}
	return name, name != ""
}
