//go:build unix

package mcp_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/callgate/callgate/engine"
)

// Whatever a program does against it, it ends with the client, and so does what it
// has started.
func TestProgramsEnd(t *testing.T) {
	h := newHouse(t, engine.Options{}, nil)
	var pids []int
	for _, kind := range []string{"script", "stubborn"} {
		tool := "pid"
		if kind == "script" {
			tool = "child"
		}
		for _, field := range strings.Fields(string(must(t, h, local(program(t, kind), tool, "once")).Body)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	if len(pids) != 3 {
		t.Fatalf("started %v", pids)
	}
	h.client.Close()
	for _, pid := range pids {
		eventually(t, func() bool { return ended(pid) })
	}
}

// ended tells whether a process is no more, or is one that somebody else has to
// reap: the child of a program that was killed.
func ended(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return os.IsNotExist(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}
