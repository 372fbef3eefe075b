package mcp

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"

	"github.com/callgate/callgate/refusal"
)

// site refuses what a web page sends that may not: a browser tells its Origin. A
// page of another name that its owner has led to this machine tells that name as
// the Host.
func (f *Face) site(r *http.Request) *refusal.Error {
	here := onThisMachine(r)
	if here && !f.hosts(r.Host) {
		return refusal.New(refusal.BadRequest, "The Host is not this machine, nor that of an origin which is configured (server.origins).")
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return nil
	}
	if len(origins) == 1 && (slices.Contains(f.options.Origins, origins[0]) || here && local(origins[0])) {
		return nil
	}
	return refusal.New(refusal.BadRequest, "Pages of this Origin may not ask here (server.origins).")
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
func (f *Face) hosts(host string) bool {
	return loopback(nameOf(host)) || slices.ContainsFunc(f.options.Origins, func(origin string) bool {
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
