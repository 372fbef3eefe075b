package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"

	"code.dny.dev/ssrf"

	"github.com/callgate/callgate/internal/safe"
)

// blockedError is an address that the policy does not allow.
type blockedError struct{ reason string }

func (e *blockedError) Error() string { return e.reason }

// addressPolicy is one policy of addresses, and the dialer that enforces it.
type addressPolicy struct {
	allowed    []allowedPrefix // not empty: these and no others
	public     *ssrf.Guardian
	resolver   *net.Resolver
	interfaces func() ([]net.Addr, error)
}

// allowedPrefix is one listed prefix. A zone, where it has one, must match.
type allowedPrefix struct {
	prefix netip.Prefix
	zone   string
}

// newAddressPolicy returns the policy of a tool's addresses. One that cannot be read is
// an error: it is not the same as none.
func newAddressPolicy(addresses []string, resolver *net.Resolver, interfaces func() ([]net.Addr, error)) (*addressPolicy, error) {
	g := &addressPolicy{public: ssrf.New(ssrf.WithAnyPort()), resolver: resolver, interfaces: interfaces}
	for i, address := range addresses {
		prefix, err := netip.ParsePrefix(address)
		zone := ""
		if err != nil {
			addr, err := netip.ParseAddr(address)
			if err != nil {
				return nil, fmt.Errorf("entry %d of addresses is neither an address nor a prefix", i+1)
			}
			zone = addr.Zone()
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		if a := prefix.Addr(); a.Is4In6() && prefix.Bits() >= 96 {
			prefix = netip.PrefixFrom(a.Unmap(), prefix.Bits()-96)
		}
		g.allowed = append(g.allowed, allowedPrefix{prefix.Masked(), zone})
	}
	return g, nil
}

// azureWireServer answers inside every Azure network with the machine's own
// configuration, though the block that it is in is public.
var azureWireServer = netip.AddrFrom4([4]byte{168, 63, 129, 16})

// allow returns nil, or why the address may not be connected to.
func (g *addressPolicy) allow(addr netip.Addr) error {
	addr = addr.Unmap()
	if len(g.allowed) > 0 {
		bare := addr.WithZone("")
		for _, e := range g.allowed {
			if e.prefix.Contains(bare) && (e.zone == "" || e.zone == addr.Zone()) {
				return nil
			}
		}
		return &blockedError{fmt.Sprintf("%s is not among the listed addresses", addr)}
	}
	if addr == azureWireServer || g.public.SafeAddr(addr) != nil {
		return &blockedError{fmt.Sprintf("%s is not a public address, and no addresses are listed", addr)}
	}
	own, err := g.interfaces()
	if err != nil {
		return &blockedError{"this host's own addresses could not be read, so none is known to be public"}
	}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == addr {
				return &blockedError{fmt.Sprintf("%s is this host's own address, and no addresses are listed", addr)}
			}
		}
	}
	return nil
}

// dial connects to the first allowed address of a host. It fails with a
// *blockedError where an address was blocked and no other could be connected to.
func (g *addressPolicy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, errors.New("the address has no port")
	}
	if isLegacyIPv4(host) {
		return nil, &blockedError{"the host is an IPv4 address in an old spelling; write it as four decimal numbers"}
	}
	var refused atomic.Pointer[blockedError]
	dialer := net.Dialer{
		Resolver: g.resolver,
		Control: func(network, address string, _ syscall.RawConn) (err error) {
			// On a goroutine of others, where a panic would end the process.
			defer safe.Recover(&err)
			if err = g.checkDial(network, address); err != nil {
				var b *blockedError
				if errors.As(err, &b) {
					refused.Store(b)
				}
			}
			return err
		},
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		if b := refused.Load(); b != nil {
			return nil, b
		}
		return nil, err
	}
	return conn, nil
}

// checkDial judges one resolved address, just before it is connected to.
func (g *addressPolicy) checkDial(network, address string) error {
	if network != "tcp4" && network != "tcp6" {
		return &blockedError{"only TCP is allowed"}
	}
	resolved, err := netip.ParseAddrPort(address)
	if err != nil {
		return &blockedError{"the resolved address cannot be read"}
	}
	return g.allow(resolved.Addr())
}

// isLegacyIPv4 reports whether some resolvers read a host as an IPv4 address although it
// is not in the usual form. That is the case if its last label is a number: no name of the
// DNS ends in one.
func isLegacyIPv4(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	host = strings.TrimSuffix(host, ".")
	last := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		last, digits = hex, digits+"abcdef"
		if last == "" {
			return true
		}
	}
	return last != "" && strings.Trim(last, digits) == ""
}

// Dial connects to a host of which a person typed the name, by the policy of this package: to the listed addresses,
// or to public ones if none is.
func Dial(ctx context.Context, network, address string, addresses []string) (net.Conn, error) {
	policy, err := newAddressPolicy(addresses, nil, net.InterfaceAddrs)
	if err != nil {
		return nil, err
	}
	return policy.dial(ctx, network, address)
}
