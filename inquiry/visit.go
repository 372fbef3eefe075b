package inquiry

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/callgate/callgate/wrapper"
)

// maxURL bounds an address.
const maxURL = 2048

// readVisit reads the parameters of a question that a person answers elsewhere. The
// id that older revisions give it says nothing to a caller of this one.
func readVisit(m members) (object, error) {
	if err := m.only("mode", "message", "url", "elicitationId"); err != nil {
		return nil, err
	}
	if _, _, err := m.text("elicitationId"); err != nil {
		return nil, err
	}
	if m["mode"] != "url" {
		return nil, errors.New("a question of an address is of another mode")
	}
	message, err := m.needed("message")
	if err != nil {
		return nil, err
	}
	address, err := m.needed("url")
	if err != nil {
		return nil, err
	}
	if !visitable(address) {
		return nil, errors.New("an address of a question is not one that people are sent to: https, or http on this machine, plain, absolute and without user info")
	}
	return object{{"mode", "url"}, {"message", wrapper.Shown(message)}, {"url", address}}, nil
}

// visitable tells whether a person may be sent to an address. Every reader must find
// the same host in it.
func visitable(address string) bool {
	if len(address) > maxURL || !uriBytes(address) {
		return false
	}
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" || u.User != nil || strings.Contains(u.Host, "@") || !hostName(u) {
		return false
	}
	switch u.Scheme {
	case "https":
		return true
	case "http":
		return loopback(u.Hostname())
	}
	return false
}

// uriBytes tells whether a text holds nothing but what may stand in a URI.
func uriBytes(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			return false
		}
	}
	return true
}

// hostName tells whether the host of an address is a plain name or an address, with
// a port or without.
func hostName(u *url.URL) bool {
	host := u.Hostname()
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return false
		}
	} else if strings.HasSuffix(u.Host, ":") {
		return false
	}
	if strings.HasPrefix(u.Host, "[") {
		address, err := netip.ParseAddr(host)
		return err == nil && address.Is6() && address.Zone() == ""
	}
	for i := range len(host) {
		c := host[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.') {
			return false
		}
	}
	if numbered(host) {
		address, err := netip.ParseAddr(host)
		return err == nil && address.Is4()
	}
	return strings.Trim(host, ".") != ""
}

// numbered tells whether the last part of a host is a number. Browsers read all of it as
// an address then, in forms that others take for names.
func numbered(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		last, digits = "0"+hex, digits+"abcdef"
	}
	return last != "" && strings.Trim(last, digits) == ""
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}
