//go:build unix

package mcp_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Whatever a program does against it, it ends with the client, and so does what it
// has started.
func TestProgramsEnd(t *testing.T) {
	t.Parallel()
	h := newFixture(t, engine.Options{}, nil)
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
		eventually(t, func() bool { return processEnded(pid) })
	}
}

// A program of a server that was taken out ends at once, and one whose call is still in
// flight when that is over.
func TestKeepEndsPrograms(t *testing.T) {
	t.Parallel()
	h := newFixture(t, engine.Options{}, nil)
	command := program(t, "script")
	pid, err := strconv.Atoi(string(must(t, h, local(command, "pid", "once")).Body))
	if err != nil {
		t.Fatal(err)
	}
	h.client.RetainOnly([]tool.Server{{Name: "s", Type: "mcp", Command: command}})
	if second := string(must(t, h, local(command, "pid", "once")).Body); second != strconv.Itoa(pid) {
		t.Errorf("the program %d was followed by %s", pid, second)
	}
	h.client.RetainOnly([]tool.Server{{Name: "s", Type: "mcp", Command: append(command, "changed")}})
	eventually(t, func() bool { return processEnded(pid) })

	next, err := strconv.Atoi(string(must(t, h, local(command, "pid", "once")).Body))
	if err != nil || next == pid {
		t.Fatalf("the program %d: %v", next, err)
	}
	// Of one attempt: the program that it was sent to was not taken from it.
	k := local(command, "reports for ever", "read")
	k.Run.Timeout = 5 * time.Second
	kept := false
	k.Progress = func(tool.Progress) {
		if !kept {
			h.client.RetainOnly(nil)
		}
		kept = true
	}
	result, refused := h.run(t, k)
	if refused == nil || refused.Code != refusal.ToolTimeout || result.Attempts != 1 || !kept {
		t.Errorf("%v after %d attempts", refused, result.Attempts)
	}
	eventually(t, func() bool { return processEnded(next) })
}

// processEnded tells whether a process is no more, or is one that somebody else has to
// reap: the child of a program that was killed.
func processEnded(pid int) bool {
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
