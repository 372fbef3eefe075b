// Command replicas starts what a team would run, on this machine and on loopback
// alone: three gateways that read the same files and share their limits on one
// Redis, in front of the sample tool. It says how to call them, and what to try:
// an edit of the policy, a Redis that dies. A Redis that ended is started again.
// On Ctrl-C everything that it started is ended, and its folder is removed.
//
//	replicas [-check] [-programs FOLDER] [-source FOLDER] [-folder FOLDER]
//
// With -check it runs the very commands that it prints, looks at what they say,
// and ends: with 0 if each did what is promised.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program. It ends with 0 when it was asked to end, with 1 when
// something went wrong, and with 2 when it was not called properly.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("replicas", flag.ContinueOnError)
	flags.SetOutput(stderr)
	check := flags.Bool("check", false, "run what is printed, and end")
	programs := flags.String("programs", beside(), "the folder of callgate and sampletool")
	source := flags.String("source", "deploy", "the folder deploy of the checkout")
	folder := flags.String("folder", os.TempDir(), "where the folder of this run is made")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "replicas: found %q; expected only flags\n", flags.Args())
		return 2
	}
	if err := play(ctx, *programs, *source, *folder, *check, stdout); err != nil {
		fmt.Fprintf(stderr, "replicas: %v\n", err)
		return 1
	}
	return 0
}

// beside is the folder of this program.
func beside() string {
	own, err := os.Executable()
	if err != nil {
		return "."
	}
	return filepath.Dir(own)
}

func play(ctx context.Context, programs, source, folder string, check bool, stdout io.Writer) (err error) {
	s, err := newStage(programs, source, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	if err := s.start(ctx); err != nil {
		return err
	}
	s.tell(stdout)
	if check {
		return s.check(ctx, stdout)
	}
	return s.keep(ctx, stdout)
}
