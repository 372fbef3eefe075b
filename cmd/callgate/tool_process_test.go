package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// serveAsTool makes this process a tool that answers each call at once. It says
// where it listens.
func serveAsTool(address string) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	fmt.Fprintln(os.Stderr, http.Serve(l, newSteady(0)))
	os.Exit(1)
}

// toolProcess starts a tool in a process of its own, which can be stopped by
// signals. It ends with the test.
func toolProcess(t testing.TB) (process *os.Process, url string) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), asTool+"=127.0.0.1:0")
	url = "http://" + announced(t, c)
	return c.Process, url
}

// announced starts a process, and returns the first line that it says. It ends with the
// test.
func announced(t testing.TB, c *exec.Cmd) string {
	t.Helper()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it ends with the signal
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the process says %q: %v", line, err)
	}
	return strings.TrimSpace(line)
}
