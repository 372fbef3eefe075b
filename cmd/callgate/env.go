package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/input"
	"github.com/callgate/callgate/internal/oserr"
)

// env is what a command may touch.
type env struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// version is that of the program.
	version string
	// changeParts changes the parts of a kernel before it is made. It is how a test has a
	// process fail at a point that it names; the program has none, and nothing that
	// it reads can give it one.
	changeParts func(calls.Deps) calls.Deps
	// wait is how long the disk and Redis are waited for; zero is as long as the
	// packages that ask them say. A test has more patience, on a machine that is busy
	// with others.
	wait time.Duration
}

// configFlag adds the flag --config.
func configFlag(c *cobra.Command, into *string) {
	c.Flags().Var((*fileFlag)(into), "config", "the main `FILE` of the configuration (default: $"+configVariable+", else ./"+hereFile+", else the built-in example)")
	// A flag that was just added can be marked.
	_ = c.MarkFlagFilename("config", "yaml")
}

// wrongLetters is how many letters of a mistyped command may be wrong, so that a name is offered.
const wrongLetters = 2

// knownCommand refuses words behind a group of commands, with the command that may have been meant.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], c.CommandPath(), hint)
}

// group is a command that holds others and does nothing itself.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: knownCommand, SuggestionsMinimumDistance: wrongLetters, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(commands...)
	return c
}

// withConfig has a command load the configuration of its flag --config before it runs.
func (e env) withConfig(c *cobra.Command, run func(ctx context.Context, loaded *configs.Config, args []string) error) *cobra.Command {
	return withLoaded(c, e.load, run)
}

// withUntested is withConfig for a command that only looks at the policy: also at one that breaks
// its own tests.
func (e env) withUntested(c *cobra.Command, run func(ctx context.Context, loaded *configs.Config, args []string) error) *cobra.Command {
	return withLoaded(c, e.loadUntested, run)
}

func withLoaded(c *cobra.Command, load func(file string) (*configs.Config, error), run func(context.Context, *configs.Config, []string) error) *cobra.Command {
	var file string
	configFlag(c, &file)
	c.RunE = func(c *cobra.Command, args []string) error {
		loaded, err := load(file)
		if err != nil {
			return err
		}
		return run(c.Context(), loaded, args)
	}
	return c
}

// load reads the configuration that locate finds, and says its warnings on standard error.
func (e env) load(flag string) (*configs.Config, error) { return e.loadBy(configs.Load, flag) }

// loadUntested is load that does not run the tests of the policy.
func (e env) loadUntested(flag string) (*configs.Config, error) {
	return e.loadBy(configs.LoadUntested, flag)
}

func (e env) loadBy(read func(file string) (*configs.Config, error), flag string) (*configs.Config, error) {
	file, err := e.locate(flag)
	if err != nil {
		return nil, err
	}
	return e.warned(read(file))
}

// warned says the warnings of a configuration that was loaded.
func (e env) warned(c *configs.Config, err error) (*configs.Config, error) {
	if err != nil {
		return nil, err
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(e.stderr, "warning: %v\n", w)
	}
	return c, nil
}

// warningLog is a log for people: events in the background, on standard
// error, where it is worth a line.
func warningLog(e env) *slog.Logger {
	return slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// runtimeOptions are those of a runtime of this process.
func runtimeOptions(e env, logger *slog.Logger) app.Options {
	b := built()
	return app.Options{Logger: logger, Version: b.version, Revision: b.commit, Wait: e.wait, ChangeDeps: e.changeParts}
}

// engine is that of a command which does not serve: it asks tool servers what they have, or runs
// the tools of scenes.
func (e env) engine() *app.Engine {
	return app.NewEngine(e.version, engine.Options{}, nil)
}

// open opens the file of an argument, or standard input for none and "-". Reading
// ends when the context does. A terminal is said to be waited for: a command that is silent
// there looks as if it hung.
func (e env) open(ctx context.Context, args []string) (io.ReadCloser, string, error) {
	if len(args) == 0 || args[0] == "-" {
		if e.isTerminal() {
			fmt.Fprintln(e.stderr, "callgate: reading standard input from this terminal; Ctrl-D at the beginning of a line ends it")
		}
		return input.ContextReader(ctx, io.NopCloser(e.stdin)), "standard input", nil
	}
	f, err := os.Open(args[0])
	if err != nil {
		return nil, "", fmt.Errorf("cannot read %s: %w", args[0], oserr.Reason(err))
	}
	if info, err := f.Stat(); err != nil || info.IsDir() {
		f.Close()
		if err != nil {
			return nil, "", fmt.Errorf("cannot read %s: %w", args[0], oserr.Reason(err))
		}
		return nil, "", fmt.Errorf("cannot read %s: it is a directory", args[0])
	}
	return input.ContextReader(ctx, f), args[0], nil
}

// fileFlag is a flag that names a file: an empty name is a variable of the shell
// that was not set, and must not mean another file.
type fileFlag string

func (f *fileFlag) String() string { return string(*f) }

func (f *fileFlag) Type() string { return "file" }

func (f *fileFlag) Set(s string) error {
	if s == "" {
		return errors.New("the name is empty")
	}
	*f = fileFlag(s)
	return nil
}
