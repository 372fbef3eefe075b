package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/tool"
)

// servers asks tool servers what they have, and says on standard error whom it waits for: a program
// that is downloaded first takes long.
type servers struct {
	*app.Engine
	env env
}

// Servers is the engine of a command that asks tool servers. The caller closes it.
func (e env) Servers() *servers { return &servers{e.Engine(), e} }

// When somebody is told that a server is waited for.
const (
	firstWait = 3 * time.Second
	nextWait  = 10 * time.Second
)

// Discover lists the tools of a server.
func (s *servers) Discover(ctx context.Context, server tool.Server) ([]tool.Definition, error) {
	answered, told := make(chan struct{}), make(chan struct{})
	start := time.Now()
	go func() {
		defer close(told)
		hint := ""
		if len(server.Command) > 0 {
			hint = "; its program is started, which npx and uvx download at first"
		}
		wait := time.NewTimer(firstWait)
		defer wait.Stop()
		for {
			select {
			case <-answered:
				return
			case <-wait.C:
				fmt.Fprintf(s.env.Stderr, "waiting for %s, %.0f s so far%s\n", server.Name, time.Since(start).Seconds(), hint)
				wait.Reset(nextWait)
			}
		}
	}()
	defer func() { close(answered); <-told }()
	return s.Engine.Discover(ctx, server)
}

// ShowPrograms shows which programs are started for servers, where their command lines stand, and which
// variables they get, without values. It reports whether there are any.
func (e env) ShowPrograms(source string, servers []lockfile.Server) bool {
	found := false
	for _, s := range servers {
		if len(s.Command) == 0 {
			continue
		}
		if !found {
			fmt.Fprintf(e.Stderr, "%s names programs, which run as you do:\n", source)
			found = true
		}
		words := make([]string, len(s.Command))
		for i, word := range s.Command {
			words[i] = shellWord(word)
		}
		fmt.Fprintf(e.Stderr, "  %s: %s\n", s.Name, strings.Join(words, " "))
	}
	return found
}

// shellWord is a word of a command line, in quotes where it is not plain.
func shellWord(word string) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./_-"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return strconv.QuoteToGraphic(word)
}
