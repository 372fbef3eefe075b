package netx_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/netx"
)

func TestIsLoopbackHost(t *testing.T) {
	data, err := os.ReadFile("testdata/loopback.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		literal, answer, _ := strings.Cut(strings.TrimSpace(line), "\t")
		host, err := strconv.Unquote(literal)
		if err != nil {
			t.Fatalf("%s: %v", literal, err)
		}
		rows++
		if got := netx.IsLoopbackHost(host); got != (answer == "1") {
			t.Errorf("%q: %v", host, got)
		}
		if got := netx.IsLoopbackListener(net.JoinHostPort(host, "80")); got != (answer == "1") {
			t.Errorf("%q, as a listener: %v", host, got)
		}
	}
	if rows < 30 {
		t.Errorf("only %d rows", rows)
	}
	for _, address := range []string{"", "localhost", "127.0.0.1", "::1", ":80", "[::1]"} {
		if netx.IsLoopbackListener(address) {
			t.Errorf("%q is no listener", address)
		}
	}
}

func TestIsLoopbackAddr(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true, "0.0.0.0": false, "::": false, "::ffff:10.0.0.1": false, "192.0.2.1": false,
	} {
		if netx.IsLoopbackAddr(netip.MustParseAddr(address)) != want {
			t.Errorf("%s: %v", address, !want)
		}
	}
	if netx.IsLoopbackAddr(netip.Addr{}) {
		t.Error("no address is loopback")
	}
}

func TestIsUnspecified(t *testing.T) {
	for host, want := range map[string]bool{
		"": true, "0.0.0.0": true, "::": true, "::%eth0": true, "::ffff:0.0.0.0": true, "0": false, "127.0.0.1": false, "::1": false, "example.com": false,
	} {
		if netx.IsUnspecifiedHost(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
		if netx.IsUnspecifiedListener(net.JoinHostPort(host, "80")) != want {
			t.Errorf("%q, as a listener: %v", host, !want)
		}
	}
	if !netx.IsUnspecifiedListener("no port") {
		t.Error("an address without a port can be connected to")
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"0": time.Second, "7": 7 * time.Second, "1.5": 2 * time.Second, "7.0": 7 * time.Second, "4294967295": 24 * time.Hour,
		"Sun, 22 Nov 2026 12:00:09 GMT": 9 * time.Second, "Sun, 22 Nov 2026 11:59:50 GMT": time.Second, "Thu, 22 Nov 2096 12:00:00 GMT": 24 * time.Hour,
	} {
		if got := netx.RetryAfter(header, now, time.Second); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
	for _, header := range []string{"", "-1", "+1", "1.5.2", "1e3", "0x1", "Inf", "4294967296", "99999999999999", "soon", " 1", "2026-11-22T12:00:09Z"} {
		if got := netx.RetryAfter(header, now, time.Second); got != 0 {
			t.Errorf("%q: %v", header, got)
		}
	}
}

func TestDescribe(t *testing.T) {
	const canary = "what the peer sent"
	for _, c := range []struct {
		err       error
		want      string
		permanent bool
	}{
		{&net.DNSError{Err: canary, Name: canary, IsNotFound: true}, "the host's name does not exist", true},
		{&net.DNSError{Err: canary, Name: canary}, "the host's name could not be resolved", false},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "connection refused", false},
		{x509.UnknownAuthorityError{}, "its certificate is signed by an unknown authority", false},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "its certificate is signed by an unknown authority", true},
		{&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: canary}}, "its certificate is for another host", true},
		{&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: canary}}, "its certificate has expired or is not valid yet", true},
		{&tls.CertificateVerificationError{Err: errors.New(canary)}, "its certificate is not valid", true},
		{tls.RecordHeaderError{Msg: canary}, "no TLS connection could be agreed on", false},
		{&net.OpError{Op: "remote error", Err: errors.New(canary)}, "no TLS connection could be agreed on", false},
		{io.EOF, "the connection ended before the answer did", false},
		{io.ErrUnexpectedEOF, "the connection ended before the answer did", false},
		{errors.New(canary), "", false},
	} {
		err := fmt.Errorf("%s: %w", canary, c.err)
		if got := netx.Describe(err); got != c.want {
			t.Errorf("%v: %q; expected %q", err, got, c.want)
		}
		if netx.IsPermanent(err) != c.permanent {
			t.Errorf("%v: permanent is %v", err, !c.permanent)
		}
	}
}
