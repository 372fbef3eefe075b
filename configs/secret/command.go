package secret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/program"
)

// The bounds of commands.
const (
	defaultTimeout = 10 * time.Second
	maxTimeout     = time.Minute
	defaultRefresh = 5 * time.Minute
	minRefresh     = time.Second
	maxRefresh     = 24 * time.Hour
)

// command is a program that prints a secret.
type command struct {
	Program []string          `json:"command"`
	Folder  string            `json:"folder"`
	Env     map[string]string `json:"env,omitempty"` // values, or places in the environment and in files
	Timeout time.Duration     `json:"timeout"`
	Refresh time.Duration     `json:"refresh"` // how long its output is used
}

// decodeCommand reads a command with its settings.
func decodeCommand(n document.Node, into *Ref) {
	c := command{Timeout: defaultTimeout, Refresh: defaultRefresh}
	within := func(key, of string, into *time.Duration, low, high time.Duration) document.FieldReader {
		return document.Field(key, func(n document.Node) {
			faults := n.Report.Count()
			if n.Duration(of, into); n.Report.Count() == faults && (*into < low || *into > high) {
				n.Fail("found %s; expected %s to %s: %s", duration.Spell(*into), duration.Spell(low), duration.Spell(high), of)
			}
		})
	}
	if !n.Object(
		document.Field("command", func(n document.Node) { n.ReadCommand(&c.Program, &c.Folder) }),
		document.Field("env", func(n document.Node) { readEnv(n, Decode, &c.Env) }),
		within("timeout", "how long the command may run", &c.Timeout, time.Millisecond, maxTimeout),
		within("refresh", "how long its output is used", &c.Refresh, minRefresh, maxRefresh),
	) {
		return
	}
	if len(c.Program) == 0 {
		n.Fail("found no command; expected a program and its arguments, which prints the secret")
		return
	}
	encoded, err := json.Marshal(c)
	if err != nil {
		n.Fail("found a command that cannot be kept: %v", err)
		return
	}
	*into = Ref{inCommand, string(encoded)}
}

// name names a command for people, without its arguments: they may hold a secret.
func (c *command) name() string { return "the command " + filepath.Base(c.Program[0]) }

// parseCommand reads the place of a Ref of a command.
func parseCommand(place string) (*command, error) {
	var c command
	if err := json.Unmarshal([]byte(place), &c); err != nil || len(c.Program) == 0 {
		return nil, errors.New("found a reference to a command in no form that can be read")
	}
	return &c, nil
}

// run runs the command once, and returns what it prints, when it has ended with success. It is
// ended with its process group when the context ends, or when it prints too much. No error holds
// anything that it printed.
func (c *command) run(ctx context.Context) (string, error) {
	variables, err := c.variables()
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.name(), err)
	}
	p, err := program.Start(c.Program, c.Folder, variables)
	if err != nil {
		return "", fmt.Errorf("%s could not be started: %w", c.name(), document.WithoutPath(err))
	}
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		p.Supervise(done)
	}()
	p.Input.Close()
	type output struct {
		data []byte
		err  error
	}
	printed, drained := make(chan output, 1), make(chan struct{})
	go func() {
		data, err := io.ReadAll(io.LimitReader(p.Output, maxSecretBytes+1))
		printed <- output{data, err}
	}()
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, p.Errors) // it may hold the secret, and must not block the program
	}()
	var o output
	select {
	case o = <-printed:
		if o.err == nil && len(o.data) <= maxSecretBytes {
			select {
			case <-p.Exited():
			case <-ctx.Done():
			}
		}
	case <-ctx.Done():
	}
	ended := ctx.Err()
	close(done)
	<-over
	<-drained
	switch {
	case ended != nil:
		return "", fmt.Errorf("%s did not end in time", c.name())
	case o.err != nil:
		return "", fmt.Errorf("the output of %s could not be read", c.name())
	case len(o.data) <= maxSecretBytes && p.Status() != succeeded:
		return "", fmt.Errorf("%s failed: %s", c.name(), p.Status())
	}
	value, err := secretOf(o.data)
	if err != nil {
		return "", fmt.Errorf("%s printed %w", c.name(), err)
	}
	return value, nil
}

// succeeded is the status of a program that ended with success.
const succeeded = "exit status 0"

// variables are those that the command gets beside the ones that every program inherits.
func (c *command) variables() ([]string, error) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		value := c.Env[name]
		if IsPlace(value) {
			secret, err := Parse(value).Read()
			if err != nil {
				return nil, fmt.Errorf("its variable %s: %w", name, err)
			}
			value = secret
		}
		all = append(all, name+"="+value)
	}
	return all, nil
}
