package server

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"

	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/refusal"
)

// AllowedOrigins sets which web pages may send requests, and by which names the gateway is
// reached. The zero value allows only pages of this machine, on connections that do not
// leave it. It applies whether callers need a credential or not: a browser may send one
// without being asked.
type AllowedOrigins struct {
	// Origins are those of the allowed web pages, as browsers write them.
	Origins []string
	// Hosts are names of the gateway, in lower case and without a port. Without any, the
	// name is checked only on connections that do not leave the machine.
	Hosts []string
	// SameOrigin allows the pages of the gateway itself: those whose Origin is the request's
	// Host, which is checked before.
	SameOrigin bool
}

// Check refuses requests from web pages that are not allowed, and requests to another
// name than the gateway's.
func (p AllowedOrigins) Check(r *http.Request) *refusal.Error {
	if refused := p.checkHost(r); refused != nil {
		return refused
	}
	return p.checkOrigin(r)
}

// checkOrigin refuses pages that are not allowed: a browser sends an Origin with every request
// that could act. A page can send text across sites without asking first, and a gateway
// that needs no credential would take the page for a caller of this machine.
func (p AllowedOrigins) checkOrigin(r *http.Request) *refusal.Error {
	origins := r.Header["Origin"]
	if len(origins) == 0 ||
		len(origins) == 1 && (slices.Contains(p.Origins, origins[0]) || isLocalConnection(r) && isLoopbackOrigin(origins[0])) {
		return nil
	}
	if p.SameOrigin && len(origins) == 1 && r.Host != "" && (origins[0] == "http://"+r.Host || origins[0] == "https://"+r.Host) {
		return nil
	}
	return refusal.New(refusal.BadRequest, "Pages of this Origin may not ask here (server.origins).")
}

// checkHost refuses requests to a name that its owner has pointed at this machine: a browser
// takes the answer for one of the page's own site, and lets the page read it.
func (p AllowedOrigins) checkHost(r *http.Request) *refusal.Error {
	here := isLocalConnection(r)
	if !here && len(p.Hosts) == 0 || here && netx.IsLoopbackHost(netx.Hostname(r.Host)) || p.allowsHost(r.Host) {
		return nil
	}
	return refusal.New(refusal.BadRequest, "The Host is no name of this gateway: not this machine, not one of server.hosts, and not that of an origin which is configured (server.origins).")
}

// allowsHost reports whether a Host is a name of the gateway, or that of an origin which may
// ask.
func (p AllowedOrigins) allowsHost(host string) bool {
	return slices.Contains(p.Hosts, netx.Hostname(host)) || slices.ContainsFunc(p.Origins, func(origin string) bool {
		u, err := url.Parse(origin)
		return err == nil && u.Host == host
	})
}

// isLocalConnection reports whether a connection does not leave the machine.
func isLocalConnection(r *http.Request) bool {
	address := r.Context().Value(http.LocalAddrContextKey)
	if tcp, ok := address.(*net.TCPAddr); ok && tcp != nil {
		return netx.IsLoopbackAddr(tcp.AddrPort().Addr().Unmap())
	}
	other, _ := address.(net.Addr)
	if other == nil {
		return false
	}
	to, err := netip.ParseAddrPort(other.String())
	return err == nil && netx.IsLoopbackAddr(to.Addr())
}

// isLoopbackOrigin reports whether an origin is a page of this machine.
func isLoopbackOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Scheme+"://"+u.Host == origin && netx.IsLoopbackHost(u.Hostname())
}
