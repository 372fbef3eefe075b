package outbound

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func nowhere() ([]net.Addr, error) { return nil, nil }

func policyOf(t testing.TB, addresses ...string) *addressPolicy {
	t.Helper()
	g, err := newAddressPolicy(addresses, nil, nowhere)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestPublicAddresses(t *testing.T) {
	raw, err := os.ReadFile("testdata/addresses.txt")
	if err != nil {
		t.Fatal(err)
	}
	public := policyOf(t)
	counts := map[string]int{}
	for line := range bytes.Lines(raw) {
		row := strings.Fields(string(line))
		if len(row) == 0 || row[0] == "#" {
			continue
		}
		addr, err := netip.ParseAddr(row[len(row)-1])
		if err != nil || len(row) != 2 {
			t.Fatalf("cannot read %q", line)
		}
		counts[row[0]]++
		if got := public.allow(addr) == nil; got != (row[0] == "public") {
			t.Errorf("%s: allowed is %v, want it %s", row[1], got, row[0])
		}
		var b *blockedError
		if err := public.allow(addr); err != nil && !errors.As(err, &b) {
			t.Errorf("%s: the error is a %T", row[1], err)
		}
		// A listed address is allowed, whatever its kind, and no other is.
		listed := policyOf(t, addr.WithZone("").String())
		if err := listed.allow(addr); err != nil {
			t.Errorf("%s is listed and was blocked: %v", addr, err)
		}
		if listed.allow(netip.MustParseAddr("8.8.4.4")) == nil {
			t.Errorf("with %s listed, a public address that is not was allowed", addr)
		}
	}
	if counts["blocked"] < 60 || counts["public"] < 15 {
		t.Errorf("the table has shrunk: %v", counts)
	}
}

func TestListedAddresses(t *testing.T) {
	for _, c := range []struct {
		listed  []string
		address string
		allowed bool
	}{
		{[]string{"127.0.0.1/32"}, "127.0.0.1", true},
		{[]string{"127.0.0.1/32"}, "::ffff:127.0.0.1", true},
		{[]string{"::ffff:127.0.0.1/128"}, "127.0.0.1", true},
		{[]string{"::ffff:10.0.0.0/104"}, "10.1.2.3", true},
		{[]string{"::ffff:10.0.0.0/104"}, "11.1.2.3", false},
		{[]string{"127.0.0.1/32"}, "127.0.0.2", false},
		{[]string{"127.0.0.1/32"}, "::1", false},
		{[]string{"127.0.0.1/32"}, "::127.0.0.1", false},
		{[]string{"127.0.0.1/32"}, "64:ff9b::127.0.0.1", false},
		{[]string{"127.0.0.1"}, "127.0.0.1", true},
		{[]string{"10.1.2.3/8"}, "10.200.0.1", true},
		{[]string{"0.0.0.0/0"}, "127.0.0.1", true},
		{[]string{"0.0.0.0/0"}, "::1", false},
		{[]string{"::/0"}, "fd00::1", true},
		{[]string{"::/0"}, "10.0.0.1", false},
		{[]string{"fe80::/10"}, "fe80::1%eth0", true},
		{[]string{"fe80::1%eth0"}, "fe80::1%eth0", true},
		{[]string{"fe80::1%eth0"}, "fe80::1%eth1", false},
		{[]string{"fe80::1%eth0"}, "fe80::1", false},
		{[]string{"10.0.0.0/8", "192.168.0.0/16"}, "192.168.3.4", true},
	} {
		if got := policyOf(t, c.listed...).allow(netip.MustParseAddr(c.address)) == nil; got != c.allowed {
			t.Errorf("%s with %v listed: allowed is %v", c.address, c.listed, got)
		}
	}
	for _, broken := range []string{"", "localhost", "127.0.0.1/33", "127.0.0.1:80", "*", "127.1"} {
		if _, err := newAddressPolicy([]string{"10.0.0.0/8", broken}, nil, nowhere); err == nil {
			t.Errorf("the entry %q was taken", broken)
		}
	}
}

func TestOwnAddressesAreNotPublic(t *testing.T) {
	own := func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.ParseIP("8.8.8.8"), Mask: net.CIDRMask(24, 32)}}, nil
	}
	g, err := newAddressPolicy(nil, nil, own)
	if err != nil {
		t.Fatal(err)
	}
	if g.allow(netip.MustParseAddr("8.8.8.8")) == nil {
		t.Error("this host's own address was allowed")
	}
	if err := g.allow(netip.MustParseAddr("8.8.8.9")); err != nil {
		t.Errorf("a neighbour was blocked: %v", err)
	}
	g.interfaces = func() ([]net.Addr, error) { return nil, errors.New("no interfaces") }
	if g.allow(netip.MustParseAddr("8.8.8.9")) == nil {
		t.Error("an address was allowed though this host's own are not known")
	}
}

func TestOnlyTCP(t *testing.T) {
	g := policyOf(t, "127.0.0.1/32")
	for _, c := range [][2]string{{"udp4", "127.0.0.1:1"}, {"unix", "/run/x.sock"}, {"tcp", "127.0.0.1:1"}, {"tcp4", "127.0.0.1"}, {"tcp4", "localhost:1"}, {"tcp4", ""}} {
		if g.checkDial(c[0], c[1]) == nil {
			t.Errorf("%s %q was allowed", c[0], c[1])
		}
	}
	if err := g.checkDial("tcp4", "127.0.0.1:1"); err != nil {
		t.Error(err)
	}
}

// Whatever form an IPv4 address that is not public takes within IPv6, it is
// blocked as well, and mapping an address changes nothing.
func TestEmbeddedAddresses(t *testing.T) {
	public := policyOf(t)
	rapid.Check(t, func(t *rapid.T) {
		var v4 [4]byte
		copy(v4[:], rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "v4"))
		addr := netip.AddrFrom4(v4)
		mapped := netip.AddrFrom16(addr.As16())
		if (public.allow(addr) == nil) != (public.allow(mapped) == nil) {
			t.Fatalf("%s and %s differ", addr, mapped)
		}
		if addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() {
			if public.allow(addr) == nil {
				t.Fatalf("%s was allowed", addr)
			}
		}
		for _, prefix := range []string{"::", "64:ff9b::", "64:ff9b:1::", "::ffff:0:0:0"} {
			b := netip.MustParseAddr(prefix).As16()
			copy(b[12:], v4[:])
			if a := netip.AddrFrom16(b); public.allow(a) == nil {
				t.Fatalf("%s was allowed", a)
			}
		}
	})
}

func TestDialContainsAPanic(t *testing.T) {
	g := policyOf(t)
	g.interfaces = func() ([]net.Addr, error) { panic("secret") }
	_, err := g.dial(t.Context(), "tcp", "8.8.8.8:1")
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}
