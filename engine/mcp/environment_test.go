//go:build unix

package mcp_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// vault holds secrets by their places.
type vault map[string]string

func (v vault) read(_ context.Context, place string) (string, error) {
	if secret, there := v[place]; there {
		return secret, nil
	}
	return "", errors.New("found nothing at " + place)
}

// A program has variables of its own beside those that are passed on: values as they are
// stated, and what stands at the places of secrets.
func TestVariablesOfPrograms(t *testing.T) {
	t.Setenv("CALLGATE_SECRET", "SECRET")
	t.Setenv("HOME", "/nonexistent")
	h := newFixture(t, engine.Options{ReadSecret: vault{"env:TOKEN": "t0ken", "file:/run/key": "line 1\nline 2"}.read}, nil)
	c := local(program(t, "script"), "environment", "once")
	c.Run.Env = map[string]string{"A": "value = $HOME", "EMPTY": "", "HOME": "/srv", "TOKEN": "env:TOKEN", "KEY": "file:/run/key", "COLON": "environment:x"}
	got := string(must(t, h, c).Body)
	for _, want := range []string{"A=value = $HOME", "EMPTY=", "HOME=/srv", "TOKEN=t0ken", "KEY=line 1\nline 2", "COLON=environment:x"} {
		if !strings.Contains("\n"+got+"\n", "\n"+want+"\n") {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "SECRET") || strings.Contains(got, "/nonexistent") {
		t.Errorf("given %s", got)
	}
}

// The program ends with its last call once another secret stands at its place, or its
// variables are stated otherwise, and the next call has one that knows them.
func TestVariablesThatChange(t *testing.T) {
	secrets := vault{"env:TOKEN": "first"}
	h := newFixture(t, engine.Options{ReadSecret: secrets.read}, nil)
	send := func(tool, other string) string {
		c := local(program(t, "script"), tool, "once")
		c.Run.Env = map[string]string{"TOKEN": "env:TOKEN", "OTHER": other}
		return string(must(t, h, c).Body)
	}
	server := func(other string) []tool.Server {
		return []tool.Server{{Name: "s", Type: "mcp", Command: program(t, "script"), Env: map[string]string{"TOKEN": "env:TOKEN", "OTHER": other}}}
	}
	pid, err := strconv.Atoi(send("pid", "x"))
	if err != nil {
		t.Fatal(err)
	}
	h.client.RetainOnly(server("x"))
	if second := send("pid", "x"); second != strconv.Itoa(pid) {
		t.Fatalf("without a change the program %d was followed by %s", pid, second)
	}
	secrets["env:TOKEN"] = "second"
	if got := send("environment", "x"); !strings.Contains(got, "TOKEN=second") {
		t.Errorf("given %s", got)
	}
	eventually(t, func() bool { return processEnded(pid) })
	if pid, err = strconv.Atoi(send("pid", "x")); err != nil {
		t.Fatal(err)
	}
	h.client.RetainOnly(server("y"))
	eventually(t, func() bool { return processEnded(pid) })
	if got := send("environment", "y"); !strings.Contains(got, "OTHER=y") {
		t.Errorf("given %s", got)
	}
}

// A program whose variables cannot be read is not started. An operator is told the name
// of the variable, and nobody what stands at its place.
func TestVariablesThatCannotBeRead(t *testing.T) {
	h := newFixture(t, engine.Options{ReadSecret: vault{"env:NUL": "SECR\x00ET"}.read}, nil)
	marks := filepath.Join(t.TempDir(), "started")
	if err := os.WriteFile(marks, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for place, why := range map[string]string{"env:ABSENT": "its variable TOKEN cannot be read: found nothing at env:ABSENT", "env:NUL": "its variable TOKEN holds a NUL"} {
		c := local(program(t, "gone", marks), "echo", "once")
		c.Run.Env = map[string]string{"TOKEN": place}
		_, refused := h.run(t, c)
		if refused == nil || refused.Code != refusal.ToolUnavailable || refused.Cause == nil || !strings.Contains(refused.Cause.Error(), why) || strings.Contains(refused.Message, "TOKEN") {
			t.Errorf("%s: %v, %v", place, refused, refused.Cause)
		}
		_, err := h.client.Discover(t.Context(), tool.Server{Name: "s", Type: "mcp", Command: c.Run.Command, Env: c.Run.Env})
		if err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "SECR") {
			t.Errorf("%s: %v", place, err)
		}
	}
	if started, err := os.ReadFile(marks); err != nil || len(started) != 0 {
		t.Errorf("it was started %d times: %v", len(started), err)
	}
}

// A program is started in its folder.
func TestFolderOfPrograms(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := newFixture(t, engine.Options{}, nil)
	c := local(program(t, "script"), "folder", "once")
	c.Run.Folder = folder
	if got := string(must(t, h, c).Body); got != folder {
		t.Errorf("started in %s, want %s", got, folder)
	}
	c.Run.Folder = ""
	if got := string(must(t, h, c).Body); got == folder {
		t.Errorf("a program without a folder shares one that has %s", got)
	}
}

// An operator reads what a program wrote last before it died: bounded, without control
// characters, and without the secrets that it was given.
func TestWordsOfProgramsThatDie(t *testing.T) {
	h := newFixture(t, engine.Options{ReadSecret: vault{"env:TOKEN": "s3cret-of-it"}.read}, nil)
	_, err := h.client.Discover(t.Context(), tool.Server{Name: "s", Type: "mcp", Command: program(t, "dies"), Env: map[string]string{"TOKEN": "env:TOKEN"}})
	if err == nil || !strings.Contains(err.Error(), `its program ended; last output: "Cannot find module \x1b[31m'x' with [secret]\nand no more"`) {
		t.Errorf("%v", err)
	}
	if err != nil && (strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "before") || strings.ContainsAny(err.Error(), "\x1b\n")) {
		t.Errorf("%v", err)
	}
	_, err = h.client.Discover(t.Context(), tool.Server{Name: "s", Type: "mcp", Command: program(t, "no such server")})
	if err == nil || !strings.HasSuffix(err.Error(), "its program ended") {
		t.Errorf("one that says nothing: %v", err)
	}
}

// All settings of an endpoint are part of its key: two programs with different settings
// never share a session.
func TestPlacesOfPrograms(t *testing.T) {
	h := newFixture(t, engine.Options{}, nil)
	pids := map[string]map[string]string{}
	for _, env := range []map[string]string{nil, {"A": "1"}, {"A": "2"}, {"B": "1"}, {"A": "1", "B": "1"}} {
		c := local(program(t, "script"), "pid", "once")
		c.Run.Env = env
		pid := string(must(t, h, c).Body)
		if with, taken := pids[pid]; taken {
			t.Errorf("%v and %v share a program", env, with)
		}
		pids[pid] = maps.Clone(env)
	}
	if len(slices.Collect(maps.Keys(pids))) != 5 {
		t.Errorf("%d programs", len(pids))
	}
}
