package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// redisServer is a redis-server of a test's own, which can be killed and started
// again at the same port.
type redisServer struct {
	port    int
	secure  bool // it listens for TLS alone
	dir     string
	args    []string
	process *exec.Cmd
}

// newRedis is a server that does not run yet.
func newRedis(t testing.TB, args ...string) *redisServer {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("skipped: redis-server is not installed")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := &redisServer{port: l.Addr().(*net.TCPAddr).Port, dir: t.TempDir(), args: args}
	t.Cleanup(func() { s.kill(t) })
	return s
}

func (s *redisServer) address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// start returns when the server answers.
func (s *redisServer) start(t testing.TB) {
	t.Helper()
	port := []string{"--port", strconv.Itoa(s.port)}
	if s.secure {
		port = []string{"--port", "0", "--tls-port", strconv.Itoa(s.port)}
	}
	s.process = exec.Command("redis-server", append(append(port,
		"--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no", "--loglevel", "warning",
	), s.args...)...)
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "redis-server answers", func() bool {
		c, err := net.DialTimeout("tcp", s.address(), time.Second)
		if err != nil {
			return false
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
			return false
		}
		if s.secure {
			c = tls.Client(c, &tls.Config{InsecureSkipVerify: true}) // whoever answers has come up
		}
		fmt.Fprint(c, "PING\r\n")
		line, _ := bufio.NewReader(c).ReadString('\n')
		return strings.HasPrefix(line, "+PONG") || strings.HasPrefix(line, "-NOAUTH")
	})
}

// kill ends the server at once, as kill -9 does.
func (s *redisServer) kill(t testing.TB) {
	t.Helper()
	if s.process == nil || s.process.ProcessState != nil {
		return
	}
	if err := s.process.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = s.process.Wait() // it ends with the signal
}

func (s *redisServer) signal(t testing.TB, what os.Signal) {
	t.Helper()
	if err := s.process.Process.Signal(what); err != nil {
		t.Fatal(err)
	}
}

// ask sends commands and returns what is answered, up to where nothing more comes.
func (s *redisServer) ask(t testing.TB, commands ...string) string {
	t.Helper()
	c, err := net.Dial("tcp", s.address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, strings.Join(commands, "\r\n")+"\r\nQUIT\r\n")
	said, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(said), "+OK\r\n")
}
