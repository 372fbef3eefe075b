package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/internal/ports"
)

// gateway is one of the three.
type gateway struct {
	*child
	listen, admin string // host:port
}

// stage is everything that runs, and the folder it runs in.
type stage struct {
	programs, source string
	folder           string
	redisServer      string

	tool     *child
	toolAt   string // host:port
	redis    *child
	redisAt  string // host:port
	gateways []*gateway
}

// newStage makes the folder. Nothing runs yet.
func newStage(programs, source, folder string) (*stage, error) {
	server, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("found no redis-server; expected it to be installed")
	}
	s := &stage{programs: programs, source: source, redisServer: server}
	if s.folder, err = os.MkdirTemp(folder, "callgate-replicas-"); err != nil {
		return nil, err
	}
	for _, path := range []*string{&s.programs, &s.source, &s.folder} {
		if *path, err = filepath.Abs(*path); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// config is the folder of the files that all gateways read.
func (s *stage) config() string { return filepath.Join(s.folder, "config") }

// start starts the tool, Redis and the gateways, and returns when all serve.
func (s *stage) start(ctx context.Context) (err error) {
	if s.tool, err = launch("sampletool", s.folder, nil, filepath.Join(s.programs, "sampletool"), "--listen", "127.0.0.1:0"); err != nil {
		return err
	}
	if s.toolAt, err = s.tool.await(ctx, func(line string) (string, bool) {
		return strings.CutPrefix(strings.TrimSpace(line), "sampletool listening on ")
	}); err != nil {
		return err
	}
	if err := s.configure(); err != nil {
		return err
	}
	if err := s.startRedis(ctx); err != nil {
		return err
	}
	for _, name := range []string{"a", "b", "c"} {
		if err := s.startGateway(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// configure writes the files that all gateways read: those of the quick start,
// with the addresses and the folders of this run, and the two of replicas/.
func (s *stage) configure() error {
	texts, err := filepath.Abs(filepath.Join(s.source, "..", "cmd", "sampletool", "texts"))
	if err != nil {
		return err
	}
	for to, from := range map[string]string{
		"callgate.yaml":     "replicas/callgate.yaml",
		"limits.yaml":       "replicas/limits.yaml",
		"policy.csv":        "quickstart/policy.csv",
		"workspaces.yaml":   "quickstart/workspaces.yaml",
		"tools/sample.yaml": "sampletool.yaml",
	} {
		data, err := os.ReadFile(filepath.Join(s.source, from))
		if err != nil {
			return err
		}
		text := strings.NewReplacer("127.0.0.1:9000", s.toolAt, "../../cmd/sampletool/texts", texts).Replace(string(data))
		path := filepath.Join(s.config(), to)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// startRedis starts Redis, at the port that it had before if there was one.
func (s *stage) startRedis(ctx context.Context) error {
	if s.redisAt == "" {
		port, _, err := ports.Take(0) // held until this process ends, as it comes back there
		if err != nil {
			return err
		}
		s.redisAt = fmt.Sprintf("127.0.0.1:%d", port)
	}
	_, port, err := net.SplitHostPort(s.redisAt)
	if err != nil {
		return err
	}
	s.redis, err = launch("redis", s.folder, nil, s.redisServer,
		"--port", port, "--bind", "127.0.0.1", "--dir", s.folder, "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction")
	if err != nil {
		return err
	}
	for late := time.Now().Add(comeUp); !answers(s.redisAt); {
		select {
		case <-ctx.Done():
			return errors.New("it was asked to end before everything had come up")
		case <-s.redis.ended:
			return fmt.Errorf("redis has ended; see %s", filepath.Join(s.folder, "redis.log"))
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(late) {
			return errors.New("redis does not come up")
		}
	}
	return nil
}

// answers reports whether a Redis is at an address.
func answers(address string) bool {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }() // it was only a question
	if c.SetDeadline(time.Now().Add(time.Second)) != nil {
		return false
	}
	fmt.Fprint(c, "PING\r\n")
	line, err := bufio.NewReader(c).ReadString('\n')
	return err == nil && line == "+PONG\r\n"
}

func (s *stage) startGateway(ctx context.Context, name string) error {
	folder := filepath.Join(s.folder, name)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	if err := s.link(folder); err != nil {
		return err
	}
	c, err := launch("gateway-"+name, folder, []string{"REDIS_URL=redis://" + s.redisAt},
		filepath.Join(s.programs, "callgate"), "serve", "--config", filepath.Join(folder, "callgate.yaml"))
	if err != nil {
		return err
	}
	g := &gateway{child: c}
	s.gateways = append(s.gateways, g)
	_, err = c.await(ctx, func(line string) (string, bool) {
		var l struct{ Msg, Listen, Admin string }
		if json.Unmarshal([]byte(line), &l) != nil || l.Msg != "serving" {
			return "", false
		}
		g.listen, g.admin = l.Listen, l.Admin
		return "", true
	})
	return err
}

// link puts links to the files that all gateways read into the folder of one: its data
// is beside them there, and an edit of a file is one for all.
func (s *stage) link(folder string) error {
	entries, err := os.ReadDir(s.config())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Symlink(filepath.Join(s.config(), e.Name()), filepath.Join(folder, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// away is how long a Redis that ended stays away.
const away = 10 * time.Second

// keep stays until it is asked to end. A Redis that ended is started again; when
// a gateway ends, the others continue.
func (s *stage) keep(ctx context.Context, stdout io.Writer) error {
	gone := make(chan *gateway)
	for _, g := range s.gateways {
		go func() {
			<-g.ended
			select {
			case gone <- g:
			case <-ctx.Done():
			}
		}()
	}
	for left := len(s.gateways); left > 0; {
		select {
		case <-ctx.Done():
			return nil
		case g := <-gone:
			left--
			fmt.Fprintf(stdout, "\n%s has ended; %d are still running. Its log is %s\n", g.name, left, filepath.Join(g.cmd.Dir, g.name+".log"))
		case <-s.redis.ended:
			fmt.Fprintf(stdout, "\nRedis has ended. It is started again in %v; until then each gateway grants a third.\n", away)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(away):
			}
			if err := s.startRedis(ctx); err != nil {
				return err
			}
			fmt.Fprintf(stdout, "Redis is back, as process %d, and the limits are shared again within 5 s.\n", s.redis.cmd.Process.Pid)
		}
	}
	return errors.New("all gateways have ended")
}

// end ends everything that was started, what calls before what is called, and
// removes the folder.
func (s *stage) end() error {
	var failed error
	stopped := make(chan error)
	for _, g := range s.gateways {
		go func() { stopped <- g.stop() }()
	}
	for range s.gateways {
		failed = errors.Join(failed, <-stopped)
	}
	for _, c := range []*child{s.redis, s.tool} {
		if c != nil {
			failed = errors.Join(failed, c.stop())
		}
	}
	return errors.Join(failed, os.RemoveAll(s.folder))
}

// pid of Redis, as the commands name it.
func (s *stage) pid() string { return strconv.Itoa(s.redis.cmd.Process.Pid) }
