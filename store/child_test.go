package store_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/boltstore"
	"github.com/callgate/callgate/store/redisstore"
)

// The test binary is also the processes that are killed, and that race.

const (
	childEnv   = "CALLGATE_STORE_CHILD"
	folderEnv  = "CALLGATE_STORE_FOLDER"
	addressEnv = "CALLGATE_STORE_ADDRESS"
	prefixEnv  = "CALLGATE_STORE_PREFIX"
	nameEnv    = "CALLGATE_STORE_NAME"
)

// child is a process of its own. It prints only what is already confirmed.
func child(part string) int {
	dir, name := os.Getenv(folderEnv), os.Getenv(nameEnv)
	f, err := boltstore.Open(dir, boltstore.Options{Wait: patient})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	switch part {
	case "file":
		write(f, name, nil)
		return 1
	case "approvals in a file":
		fmt.Println("error", writeApprovals(f))
		return 1
	}
	var lease time.Duration
	if part == "stopped" {
		lease = stoppedLease
	}
	r, err := newRedis(ctx, redisstore.Options{
		Options: redisconn.Options{URL: func() string { return "redis://" + os.Getenv(addressEnv) }, Prefix: os.Getenv(prefixEnv)}, Node: strings.ReplaceAll(dir, "/", "_"),
	}, nil, lease)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	switch part {
	case "redis":
		write(r, name, make(chan struct{}))
	case "race":
		race(r, name)
	case "stopped":
		stopped(r, filepath.Join(dir, resumed))
	case "approvals":
		raceApprovals(r, name)
	}
	return 0
}

// write takes calls through their lives and leaves some at each step. With a
// hold it stops after a while, and does nothing more.
func write(s calls, name string, hold chan struct{}) {
	for i := 0; ; i++ {
		if hold != nil && i == 40 {
			fmt.Println("holds")
			<-hold
		}
		id := fmt.Sprintf("%s-%d", name, i)
		key := ""
		if i%2 == 0 {
			key = "key " + id
		}
		if _, err := s.Open(ctx, newCall(id, key)); err != nil {
			fmt.Println("error", err)
			return
		}
		if i%8 == 7 {
			continue
		}
		if err := s.Dispatch(ctx, id, once); err != nil {
			fmt.Println("error", err)
			return
		}
		fmt.Println("dispatched", id)
		if i%4 == 3 {
			continue
		}
		if i%4 == 1 {
			if err := s.Update(ctx, id, store.Defer{Until: time.Now().Add(time.Hour)}); err != nil {
				fmt.Println("error", err)
				return
			}
			fmt.Println("waiting", id)
			continue
		}
		if _, err := s.Finish(ctx, id, ending("a", "result of "+id)); err != nil {
			fmt.Println("error", err)
			return
		}
		fmt.Println("ended", id)
	}
}

const raceKeys = 150

// race claims every key, several at once.
func race(s calls, name string) {
	var all sync.WaitGroup
	for racer := range 4 {
		all.Go(func() {
			for k := range raceKeys {
				id := fmt.Sprintf("%s-%d-%d", name, racer, k)
				prior, err := s.Open(ctx, newCall(id, fmt.Sprint("key", k)))
				if err != nil {
					fmt.Println("error", err)
					continue
				}
				if prior != nil {
					continue
				}
				if err := s.Dispatch(ctx, id, once); err != nil {
					fmt.Println("error", err)
					continue
				}
				fmt.Println("dispatched", fmt.Sprint("key", k))
			}
		})
	}
	all.Wait()
}

const (
	stoppedLease = 500 * time.Millisecond
	resumed      = "resumed"
)

// stopped dispatches two calls, and goes on with them once there is a file.
func stopped(s calls, resumed string) {
	for _, id := range []string{"ended", "taken"} {
		_, err := s.Open(ctx, newCall(id, id))
		if err == nil {
			err = s.Dispatch(ctx, id, read)
		}
		if err != nil {
			fmt.Println("error", err)
			return
		}
	}
	fmt.Println("holds")
	for _, err := os.Stat(resumed); err != nil; _, err = os.Stat(resumed) {
		time.Sleep(time.Millisecond)
	}
	report := func(what string, err, want error) {
		if !errors.Is(err, want) {
			fmt.Printf("error %s: %v, expected %v\n", what, err, want)
		}
	}
	report("another attempt of a call that was ended", s.Update(ctx, "ended", store.Redispatch{}), store.ErrEnded)
	_, err := s.Finish(ctx, "ended", ending("stopped", "late"))
	report("an end of a call that was ended", err, store.ErrEnded)
	report("another attempt of a call that was taken over", s.Update(ctx, "taken", store.Redispatch{}), store.ErrNotOwner)
	report("a wait of a call that was taken over", s.Update(ctx, "taken", store.Defer{Until: time.Now().Add(time.Hour)}), store.ErrNotOwner)
	_, err = s.Open(ctx, newCall("after", "after"))
	report("a call after that", err, nil)
	report("its dispatch", s.Dispatch(ctx, "after", once), nil)
	fmt.Println("dispatched after")
	time.Sleep(time.Hour) // until it is killed
}

// spawned is a child process, and the lines that it prints.
type spawned struct {
	cmd   *exec.Cmd
	lines chan [2]string
}

func spawn(t testing.TB, part, dir, name string, o redisstore.Options, before ...string) *spawned {
	t.Helper()
	command := append(before, os.Args[0], "-test.run=^$")
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), childEnv+"="+part, folderEnv+"="+dir, nameEnv+"="+name, prefixEnv+"="+o.Prefix)
	if o.URL != nil {
		cmd.Env = append(cmd.Env, addressEnv+"="+o.URL()[len("redis://"):])
	}
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	s := &spawned{cmd, make(chan [2]string, 1<<20)}
	go func() {
		defer close(s.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var line [2]string
			if n, _ := fmt.Sscan(lines.Text(), &line[0], &line[1]); n == 0 || line[0] == "error" {
				line = [2]string{"error", lines.Text()}
			}
			s.lines <- line
		}
	}()
	t.Cleanup(s.kill)
	return s
}

func (s *spawned) kill() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		for range s.lines {
		}
		_ = s.cmd.Wait()
	}
}

// said are the lines that are there, with the furthest step for each name.
func (s *spawned) said(t testing.TB) map[string]string {
	t.Helper()
	steps := map[string]string{}
	for line := range s.lines {
		if line[0] == "error" {
			t.Error(line[1])
		}
		if line[1] != "" {
			steps[line[1]] = line[0]
		}
	}
	return steps
}
