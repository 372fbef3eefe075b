package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// asProgram makes the test binary be the program.
const asProgram = "CALLGATE_TEST_AS_PROGRAM"

// asTool makes the test binary be a tool that listens where the variable says.
const asTool = "CALLGATE_TEST_AS_TOOL"

// usualWaits makes a process of a test wait for the disk and Redis as long as in use:
// for tests of that time. Others wait inTests, which no machine takes.
const (
	usualWaits = "CALLGATE_TEST_USUAL_WAITS=1"
	inTests    = 20 * time.Second
)

func waits() time.Duration {
	if name, value, _ := strings.Cut(usualWaits, "="); os.Getenv(name) == value {
		return 0
	}
	return inTests
}

func TestMain(m *testing.M) {
	if address := os.Getenv(asTool); address != "" {
		serveAsTool(address)
	}
	if os.Getenv(asProgram) != "" {
		os.Exit(env{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, fit: sabotage(), wait: waits()}.program(os.Args[1:]))
	}
	testscript.Main(m, map[string]func(){
		"callgate": func() {
			signal.Ignore(syscall.SIGPIPE)
			os.Exit(env{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, wait: inTests}.run(context.Background(), os.Args[1:]))
		},
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script"})
}
