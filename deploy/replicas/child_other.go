//go:build !unix

package main

import (
	"os"
	"os/exec"
)

// terminate ends a process.
var terminate = os.Kill

func apart(*exec.Cmd) {}
