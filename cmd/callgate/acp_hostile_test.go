//go:build unix

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// lockedOutput collects the output of a process.
type lockedOutput struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedOutput) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b.Len() < 1<<20 {
		l.b.Write(p)
	}
	return len(p), nil
}

func (l *lockedOutput) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// acpPatience is far longer than a process takes to end.
const acpPatience = 60 * time.Second

// agentPIDs finds the processes that an agent names on its standard error.
var agentPIDs = regexp.MustCompile(`agent: pid ([0-9]+)`)

// TestACPHostileProcesses: whatever an agent does with its pipes, its children and its signals, and
// however the editor leaves, callgate acp ends, and with it every process of the agent.
func TestACPHostileProcesses(t *testing.T) {
	t.Parallel()
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true}}}}` + "\n"
	leave := func(c *exec.Cmd, in io.Closer) { in.Close() }
	term := func(c *exec.Cmd, _ io.Closer) { _ = c.Process.Signal(syscall.SIGTERM) }
	nothing := func(*exec.Cmd, io.Closer) {}
	for name, s := range map[string]struct {
		script   string
		pids     int                        // that it names
		then     func(*exec.Cmd, io.Closer) // once it has
		code     int
		reported string // in what the editor gets
	}{
		"leaves a child that keeps its output open": {`sleep 1000 & echo pid $! >&2; exit 0`, 1, nothing, exitRefused, `"error"`},
		"exits within a request":                    {`echo pid $$ >&2; read line; exit 9`, 1, nothing, exitRefused, `"error"`},
		"closes its output and continues":           {`echo pid $$ >&2; exec >&-; sleep 1000`, 1, nothing, exitRefused, `"error"`},
		"dies in the middle of a line":              {`echo pid $$ >&2; read line; printf '{"jsonrpc":"2.0","id":1,"resu'; kill -9 $$`, 1, nothing, exitRefused, `"error"`},
		"never reads":                               {`echo pid $$ >&2; sleep 1000`, 1, leave, exitAccepted, ``},
		"ignores the end of its input and signals":  {`trap '' TERM HUP INT; sleep 1000 & echo pid $! >&2; echo pid $$ >&2; while :; do wait; sleep 1; done`, 2, leave, exitAccepted, ``},
		"writes a line without an end":              {`echo pid $$ >&2; exec tr '\0' x 3<&0 </dev/zero`, 1, leave, exitAccepted, ``},
		"writes lines that are no messages":         {`echo pid $$ >&2; exec yes`, 1, leave, exitAccepted, ``},
		"floods its standard error":                 {`echo pid $$ >&2; yes >&2 & while :; do sleep 1; done`, 1, leave, exitAccepted, ``},
		"speaks to a gateway that is told to end":   {`trap '' TERM; echo pid $$ >&2; while :; do sleep 1; done`, 1, term, exitAccepted, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, _ := acpConfig(t)
			c := process(t.Context(), nil, "acp", "--config", config, "--", "sh", "-c", s.script)
			var out, log lockedOutput
			c.Stdout, c.Stderr = &out, &log
			in, err := c.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- c.Wait() }()
			_, _ = io.WriteString(in, hello) // the agent may have ended
			var pids []int
			for end := time.Now().Add(acpPatience); len(pids) < s.pids; time.Sleep(5 * time.Millisecond) {
				pids = nil
				for _, m := range agentPIDs.FindAllStringSubmatch(log.String(), -1) {
					pid, _ := strconv.Atoi(m[1])
					pids = append(pids, pid)
				}
				if time.Now().After(end) {
					t.Fatalf("the agent does not start: %.1000s", log.String())
				}
			}
			s.then(c, in)
			select {
			case err = <-ended:
			case <-time.After(acpPatience):
				_ = c.Process.Kill()
				t.Fatalf("callgate acp does not end: %.1000s", log.String())
			}
			in.Close()
			code := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			}
			if code != s.code || !strings.Contains(out.String(), s.reported) {
				t.Errorf("exit code %d, the editor got %.500q: %.1000s", code, out.String(), log.String())
			}
			if strings.Count(out.String(), "\n") > 1 {
				t.Errorf("the editor got %.500q", out.String())
			}
			for _, pid := range pids {
				awaitNoProcess(t, pid)
			}
		})
	}
}

// awaitNoProcess waits for a process to be no more, or to be one that somebody else has to reap.
func awaitNoProcess(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(acpPatience); syscall.Kill(pid, 0) == nil; time.Sleep(5 * time.Millisecond) {
		stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if _, rest, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(rest, "Z") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %d still runs", pid)
		}
	}
}
