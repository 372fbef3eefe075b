package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// asProgram makes the test binary be the program.
const asProgram = "CALLGATE_TEST_AS_PROGRAM"

// asTool makes the test binary be a tool that listens where the variable says.
const asTool = "CALLGATE_TEST_AS_TOOL"

func TestMain(m *testing.M) {
	if address := os.Getenv(asTool); address != "" {
		serveAsTool(address)
	}
	if os.Getenv(asProgram) != "" {
		os.Exit(env{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, fit: sabotage()}.program(os.Args[1:]))
	}
	testscript.Main(m, map[string]func(){
		"callgate": func() {
			signal.Ignore(syscall.SIGPIPE)
			os.Exit(env{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}.run(context.Background(), os.Args[1:]))
		},
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script"})
}
