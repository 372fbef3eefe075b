// Command callgate stands between a language model and its tools: it decides
// whether what the model wrote may act.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(program(env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}, os.Args[1:]))
}

// program is run, ended by a signal.
func program(e env, args []string) int {
	// A closed pipe is an error to report, not a signal to die of.
	signal.Ignore(syscall.SIGPIPE)
	// net/http writes what peers sent to the standard logger.
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	return run(ctx, e, args)
}

// run is the whole program: it reads and writes nothing but what it is given,
// the files that its arguments name, and the configuration.
func run(ctx context.Context, e env, args []string) int {
	out := &output{Writer: e.Stdout}
	e.Stdout, e.Version = out, built().version
	root := newRoot(e)
	root.SetArgs(args)
	root.SetIn(e.Stdin)
	root.SetOut(out)
	root.SetErr(e.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = out.err
	}
	return exitCode(e.Stderr, err)
}
