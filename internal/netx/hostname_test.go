package netx_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/netx"
)

// TestHostname: a Host that could be read in more than one way is not this machine.
func TestHostname(t *testing.T) {
	data, err := os.ReadFile("testdata/hosts.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(strings.TrimSpace(line), "\t")
		host, err := strconv.Unquote(parts[0])
		if err != nil || len(parts) != 3 {
			t.Fatalf("%s: %v", line, err)
		}
		rows++
		name := netx.Hostname(host)
		if strconv.Quote(name) != parts[1] || netx.IsLoopbackHost(name) != (parts[2] == "1") {
			t.Errorf("%q: %q, loopback %v", host, name, netx.IsLoopbackHost(name))
		}
	}
	if rows < 30 {
		t.Errorf("only %d rows", rows)
	}
}

// FuzzHostname: a host that is read the short way is read as its URL is.
func FuzzHostname(f *testing.F) {
	for _, host := range []string{"", "localhost", "127.0.0.1:8080", "a.b-c.example:", "a:1:2", "[::1]:80", "A.example", "a_b", ":80", "1.2.3.4.5", "-", ".", "a..b:0099"} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		if plain, ok, parsed := netx.Hostnames(host); ok && plain != parsed {
			t.Errorf("%q: %q the short way, %q parsed", host, plain, parsed)
		}
	})
}
