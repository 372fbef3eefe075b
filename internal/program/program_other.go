//go:build !unix

package program

import "os/exec"

// ownProcessGroup does nothing, because there are no process groups.
func ownProcessGroup(*exec.Cmd) {}

// signalGroup kills a program. It can neither ask it to end, nor end the processes that it has started.
func signalGroup(c *exec.Cmd, kill bool) {
	if kill {
		_ = c.Process.Kill()
	}
}
