package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestHelpInGroups: the help lists each command once, below the title of what it is for.
func TestHelpInGroups(t *testing.T) {
	root := newRoot(env{})
	for _, c := range root.Commands() {
		if c.GroupID == "" {
			t.Errorf("the command %s is in no group", c.Name())
		}
	}
	_, help, _ := command(t, nil, "--help")
	at := 0
	for _, part := range []string{"\nTo begin:\n", "  demo ", "  serve ", "\nTo connect applications and models:\n", "  mcp ", "\nTo configure:\n", "  policy ", "\nTo operate:\n", "  audit ", "\nOf the program itself:\n", "  completion ", "  version "} {
		i := strings.Index(help[at:], part)
		if i < 0 {
			t.Fatalf("%q is missing, or out of order: %s", part, help)
		}
		at += i
	}
	if strings.Contains(help, "Additional Commands") {
		t.Errorf("found commands below no title: %s", help)
	}
}

// TestFlagValueNames: a flag that takes a value shows a name for it in capital letters, so that
// nobody types it, and its text has that name, too, or says in another way what to write there.
func TestFlagValueNames(t *testing.T) {
	name := regexp.MustCompile(`^[A-Z]+([:/|=][A-Z]+)*$`)
	seen := 0
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() == "bool" {
				return
			}
			seen++
			if value, usage := pflag.UnquoteUsage(f); !name.MatchString(value) || !strings.Contains(usage, value) {
				t.Errorf("%s --%s %s: %s; expected a name in capital letters, in backquotes in the text", c.CommandPath(), f.Name, value, usage)
			}
		})
		for _, child := range c.Commands() {
			if child.Name() != "completion" {
				visit(child)
			}
		}
	}
	visit(newRoot(env{}))
	if seen < 50 {
		t.Errorf("found only %d flags", seen)
	}
}

// TestProjectFlag: --project takes WORKSPACE/PROJECT in every command that has it.
func TestProjectFlag(t *testing.T) {
	t.Chdir(t.TempDir())
	call := `{"tool":{"name":"time.now","arguments":{}}}`
	for line, says := range map[string]string{
		"check --project acme/alpha":                                           `"workspace":"acme","project":"alpha"`,
		"check --workspace acme --project acme/alpha":                          `"workspace":"acme","project":"alpha"`,
		"check --project alpha":                                                `"workspace":"acme","project":"alpha"`,
		"check --project shop/alpha":                                           `"code":"permission_denied"`,
		"check --workspace a --project acme/alpha":                             `--project is "acme/alpha" beside --workspace "a"; expected the same workspace`,
		"check --project /alpha":                                               `--project is "/alpha"; expected PROJECT or WORKSPACE/PROJECT`,
		"mcp --project a/b/c":                                                  `--project is "a/b/c"; expected PROJECT or WORKSPACE/PROJECT`,
		"policy explain --agent Intern --project acme/alpha --tool web.search": "web.search",
	} {
		if _, stdout, stderr := command(t, strings.NewReader(call), strings.Fields(line)...); !strings.Contains(stdout+stderr, says) {
			t.Errorf("%s: %s%s; expected %s", line, stdout, stderr, says)
		}
	}
}

// TestTerminalIsWaitedFor: a command that reads a terminal says so, and is silent over a pipe.
func TestTerminalIsWaitedFor(t *testing.T) {
	t.Chdir(t.TempDir())
	const says = "callgate: reading standard input from this terminal"
	if _, _, stderr := command(t, strings.NewReader("text"), "check"); strings.Contains(stderr, says) {
		t.Errorf("over a pipe: %s", stderr)
	}
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminal can be made here:", err)
	}
	defer pty.Close()
	for _, line := range []string{"check", "call -", "tools import mcp -"} {
		ctx, cancel := context.WithCancel(t.Context())
		said := &firstLines{until: says, found: cancel}
		run(ctx, env{Stdin: pty, Stdout: io.Discard, Stderr: said, Wait: inTests}, strings.Fields(line))
		cancel()
		if !slices.ContainsFunc(strings.Split(said.String(), "\n"), func(l string) bool { return strings.HasPrefix(l, says) }) {
			t.Errorf("%s: %s", line, said)
		}
	}
}

// firstLines keeps what is written, and calls found once it holds a text. Nothing is written to it
// by two goroutines at once.
type firstLines struct {
	bytes.Buffer
	until string
	found func()
}

func (f *firstLines) Write(p []byte) (int, error) {
	n, err := f.Buffer.Write(p)
	if strings.Contains(f.String(), f.until) {
		f.found()
	}
	return n, err
}
