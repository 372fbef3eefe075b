//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// terminate asks a process to end.
var terminate os.Signal = syscall.SIGTERM

// apart keeps Ctrl-C on a terminal from a process: this program alone ends what
// it started, once and in order.
func apart(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
