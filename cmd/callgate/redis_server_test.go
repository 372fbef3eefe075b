package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/ports"
)

// redisServer is a redis-server of a test's own, which can be killed and started
// again at the same port.
type redisServer struct {
	port    int
	secure  bool // it listens for TLS alone
	dir     string
	args    []string
	process *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	// file, if there is one, holds what is not among the arguments: a sentinel
	// remembers there what it knows.
	file string
}

// newRedis is a server that does not run yet.
func newRedis(t testing.TB, args ...string) *redisServer {
	t.Helper()
	requires(t, configs.RedisLimiter)
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("skipped: redis-server is not installed")
	}
	_, held, err := net.SplitHostPort(ports.Hold(t))
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(held)
	if err != nil {
		t.Fatal(err)
	}
	s := &redisServer{port: port, dir: t.TempDir(), args: args}
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
	line := append(append(port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no", "--loglevel", "warning"), s.args...)
	if s.file != "" {
		line = append([]string{s.file}, s.args...)
	}
	s.run(t, line)
	eventually(t, "redis-server answers", func() bool {
		select {
		case <-s.ended: // a connection of somebody else has had its port
			s.run(t, line)
		default:
		}
		c, err := net.DialTimeout("tcp", s.address(), time.Second)
		if err != nil {
			return false
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
			return false
		}
		if s.secure {
			c = tls.Client(c, &tls.Config{InsecureSkipVerify: true}) // any answer means that it is up
		}
		fmt.Fprint(c, "PING\r\n")
		line, _ := bufio.NewReader(c).ReadString('\n')
		return strings.HasPrefix(line, "+PONG") || strings.HasPrefix(line, "-NOAUTH")
	})
}

func (s *redisServer) run(t testing.TB, line []string) {
	t.Helper()
	process, ended := exec.Command("redis-server", line...), make(chan struct{})
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	s.process, s.ended = process, ended
	go func() {
		defer close(ended)
		_ = process.Wait() // however it ends
	}()
}

// kill ends the server at once, as kill -9 does.
func (s *redisServer) kill(t testing.TB) {
	t.Helper()
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill() // it may have ended
	<-s.ended
}

func (s *redisServer) signal(t testing.TB, what os.Signal) {
	t.Helper()
	if err := s.process.Process.Signal(what); err != nil {
		t.Fatal(err)
	}
	if what == syscall.SIGSTOP {
		eventually(t, "redis-server stands still", func() bool { return standsStill(s.process.Process.Pid) })
	}
}

// ask sends commands and returns what is answered, up to where nothing more comes.
func (s *redisServer) ask(t testing.TB, commands ...string) string {
	t.Helper()
	reply, err := s.try(patience, commands...)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// try is ask for a server that may not answer. A PING shows where the answers end: a
// sentinel knows no QUIT.
func (s *redisServer) try(within time.Duration, commands ...string) (string, error) {
	c, err := net.DialTimeout("tcp", s.address(), within)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	fmt.Fprint(c, strings.Join(commands, "\r\n")+"\r\nPING\r\n")
	reply, piece := "", make([]byte, 64<<10)
	for {
		n, err := c.Read(piece)
		reply += string(piece[:n])
		if all, ended := strings.CutSuffix(reply, "+PONG\r\n"); ended {
			return all, nil
		}
		if err != nil {
			return reply, err
		}
	}
}
