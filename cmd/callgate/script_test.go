package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/internal/testkit/parallel"
	"github.com/callgate/callgate/internal/testkit/redistest"
)

// asProgram makes the test binary be the program.
const asProgram = "CALLGATE_TEST_AS_PROGRAM"

// asTool makes the test binary be a tool that listens where the variable says.
const asTool = "CALLGATE_TEST_AS_TOOL"

// asLong is how long a process of a test waits for the disk and Redis; 0s is as long
// as in use. Without it, that is inTests, which no machine takes.
const (
	asLong     = "CALLGATE_TEST_WAIT"
	usualWaits = asLong + "=0s"
	inTests    = 20 * time.Second
)

// somewhatLong is for processes whose disk or Redis does not answer at times: so long that
// a busy machine answers within it. A measurement sets its own time.
func somewhatLong() string {
	if wait := os.Getenv(asLong); wait != "" {
		return asLong + "=" + wait
	}
	return asLong + "=1s"
}

// asDrain is how long a process of a test still accepts connections once it drains; 0s is as
// long as in use. Without it, that is next to nothing: only tests of draining look.
const (
	asDrain    = "CALLGATE_TEST_DRAIN"
	usualDrain = asDrain + "=0s"
)

func drainDelayOfTests() time.Duration {
	if delay, err := time.ParseDuration(os.Getenv(asDrain)); err == nil {
		return delay
	}
	return time.Millisecond
}

func waitOfTests() time.Duration {
	if wait, err := time.ParseDuration(os.Getenv(asLong)); err == nil {
		return wait
	}
	return inTests
}

func TestMain(m *testing.M) {
	if address := os.Getenv(asTool); address != "" {
		serveAsTool(address)
	}
	if len(os.Args) > 2 && os.Args[1] == asServer {
		os.Exit(serveTools(os.Args[2]))
	}
	if len(os.Args) > 2 && os.Args[1] == asACPAgent {
		os.Exit(acptest.AgentMain(os.Args[2]))
	}
	if os.Getenv(asProgram) != "" {
		os.Exit(program(env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, ChangeParts: sabotage(), Wait: waitOfTests(), DrainDelay: drainDelayOfTests()}, os.Args[1:]))
	}
	// A parallel test may not open a data folder twice in this process: until a child of
	// another test runs its program, it holds the lock of the first time.
	parallel.Waiting()
	testscript.Main(cleaning{m}, map[string]func(){
		"callgate": func() {
			signal.Ignore(syscall.SIGPIPE)
			os.Exit(run(context.Background(), env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Wait: inTests}, os.Args[1:]))
		},
	})
}

// buildFolder is where tests build programs. It is there while tests run.
var buildFolder string

// cleaning runs the tests with a buildFolder.
type cleaning struct{ *testing.M }

func (c cleaning) Run() int {
	dir, err := os.MkdirTemp("", "callgate-programs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	buildFolder = dir
	// Where a test names no configuration, it means the built-in example. TestLocate is of the rest.
	if err := os.Setenv(configVariable, configs.BuiltIn); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return redistest.Run(c.M.Run)
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Setup: func(e *testscript.Env) error {
		e.Setenv(configVariable, configs.BuiltIn)
		return nil
	}, Condition: func(name string) (bool, error) {
		if name != "redis-limiter" {
			return false, fmt.Errorf("there is no condition %s", name)
		}
		return app.Has(configs.RedisLimiter), nil
	}})
}
