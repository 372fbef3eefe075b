//go:build unix

package program

import (
	"os/exec"
	"syscall"
)

// ownProcessGroup puts a program into a group of its own, so that signals of the terminal do
// not reach it, and those of the gateway reach whatever it starts.
func ownProcessGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signalGroup asks a program's group to end, or kills it.
func signalGroup(c *exec.Cmd, kill bool) {
	s := syscall.SIGTERM
	if kill {
		s = syscall.SIGKILL
	}
	_ = syscall.Kill(-c.Process.Pid, s)
}
