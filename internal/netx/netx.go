// Package netx holds checks of host names, addresses, charsets and network errors that several
// packages need, so that each exists once in this module.
//
// The predicates decide what is allowed over the network. In doubt they are strict: a host
// that could be read in more than one way is not loopback.
package netx

import (
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// IsLoopbackHost reports whether a host, without a port or brackets, can only be this
// machine: the name localhost, spelled so, or an address of loopback in its usual form and
// without a zone. Host names that are compared with it must be in lower case.
func IsLoopbackHost(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Zone() == "" && IsLoopbackAddr(address)
}

// IsLoopbackListener reports whether a listener at host:port is reached from this machine
// alone.
func IsLoopbackListener(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && IsLoopbackHost(host)
}

// IsLoopbackAddr reports whether the address of a connection is one of loopback. An IPv4
// address may be mapped to IPv6.
func IsLoopbackAddr(address netip.Addr) bool { return address.Unmap().IsLoopback() }

// IsUnspecifiedHost reports whether a host, without a port or brackets, means all addresses
// of a machine: a server can listen on it, but a client cannot connect to it.
func IsUnspecifiedHost(host string) bool {
	if host == "" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().WithZone("").IsUnspecified()
}

// IsUnspecifiedListener reports whether a listener at host:port listens on all addresses of
// the machine. An address that cannot be read names no host that could be connected to.
func IsUnspecifiedListener(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err != nil || IsUnspecifiedHost(host)
}

// maxRetryAfter bounds the time of a Retry-After header.
const maxRetryAfter = 24 * time.Hour

// RetryAfter parses a Retry-After header (RFC 9110, section 10.2.3): seconds or a date. Of seconds
// with a fraction, which some servers send, the next whole ones are meant. It returns 0 if there is none or it is invalid; otherwise at least shortest, also for a time
// in the past, and at most a day.
func RetryAfter(header string, now time.Time, shortest time.Duration) time.Duration {
	var wait time.Duration
	seconds, err := strconv.ParseFloat(header, 64)
	if err == nil && strings.Trim(header, "0123456789.") == "" && seconds <= math.MaxUint32 {
		wait = time.Duration(math.Ceil(seconds)) * time.Second
	} else if date, err := http.ParseTime(header); err == nil {
		wait = date.Sub(now)
	} else {
		return 0
	}
	return min(max(wait, shortest), maxRetryAfter)
}
