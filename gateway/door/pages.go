package door

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"

	"github.com/callgate/callgate/refusal"
)

// Pages are the origins of web pages that may ask, beside pages of this machine
// where the connection does not leave it.
type Pages []string

// Origin refuses what a web page sends that may not ask: a browser tells its Origin
// with everything that could act. A page can send a text across sites without asking
// first, and whoever is asked for no credential would take it for a caller of this
// machine.
func (p Pages) Origin(r *http.Request) *refusal.Error {
	origins := r.Header["Origin"]
	if len(origins) == 0 || len(origins) == 1 && (slices.Contains(p, origins[0]) || onThisMachine(r) && local(origins[0])) {
		return nil
	}
	return refusal.New(refusal.BadRequest, "Pages of this Origin may not ask here (server.origins).")
}

// Host refuses what was sent to another name that its owner has led to this
// machine: a browser takes that for the page's own site.
func (p Pages) Host(r *http.Request) *refusal.Error {
	if onThisMachine(r) && !p.hosts(r.Host) {
		return refusal.New(refusal.BadRequest, "The Host is not this machine, nor that of an origin which is configured (server.origins).")
	}
	return nil
}

// onThisMachine tells whether a connection does not leave the machine.
func onThisMachine(r *http.Request) bool {
	address, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if address == nil {
		return false
	}
	to, err := netip.ParseAddrPort(address.String())
	return err == nil && to.Addr().Unmap().IsLoopback()
}

// hosts tells whether a Host is this machine's own, or that of an origin which may
// ask.
func (p Pages) hosts(host string) bool {
	return loopback(nameOf(host)) || slices.ContainsFunc(p, func(origin string) bool {
		u, err := url.Parse(origin)
		return err == nil && u.Host == host
	})
}

// local tells whether an origin is a page of this machine.
func local(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Scheme+"://"+u.Host == origin && loopback(nameOf(u.Host))
}

// nameOf is a host without its port, or brackets.
func nameOf(host string) string {
	u, err := url.Parse("http://" + host)
	if err != nil || u.Host != host {
		return ""
	}
	return u.Hostname()
}

// loopback tells whether a name or an address can only be this machine.
func loopback(name string) bool {
	if name == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && address.Zone() == "" && address.Unmap().IsLoopback()
}
