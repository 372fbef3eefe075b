//go:build !unix

package mcp

import "os/exec"

// apart does nothing where there are no groups of processes.
func apart(*exec.Cmd) {}

// signal kills a program. It cannot be asked to end, nor what it has started.
func signal(c *exec.Cmd, kill bool) {
	if kill {
		_ = c.Process.Kill()
	}
}
