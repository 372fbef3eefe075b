package configs

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestLoopback: which hosts this package takes for this machine.
func TestLoopback(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "internal", "netx", "testdata", "loopback.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSpace(line), "\t")
		host, err := strconv.Unquote(fields[0])
		if err != nil {
			t.Fatal(err)
		}
		if got := loopback(net.JoinHostPort(host, "1")); got != (fields[1] == "1") {
			t.Errorf("%q: %v", host, got)
		}
	}
}
