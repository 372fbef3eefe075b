package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
)

// page reads a page of the repository.
func page(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// timings are what differs from run to run: which call a limit refuses, until when, and how many records that makes.
var timings = regexp.MustCompile(`(wait |#|log: )[0-9]+`)

// firstSteps is the page of longer first steps.
const firstSteps = "docs/first-steps.md"

// TestPageShowsTheDemo keeps the tour of the page and the demo equal.
func TestPageShowsTheDemo(t *testing.T) {
	requires(t, configs.Console) // whose address the demo ends with
	_, rest, _ := strings.Cut(page(t, firstSteps), "```text\n")
	excerpt, _, _ := strings.Cut(rest, "```\n")
	code, stdout, stderr := command(t, nil, "demo")
	if code != exitAccepted || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if got, want := timings.ReplaceAllString(stdout, "$1…"), timings.ReplaceAllString(excerpt, "$1…"); got != want {
		t.Errorf("the page shows another tour than the demo:\n%s", stdout)
	}
}

// TestReadmeExamples runs the commands that the README shows with an answer.
func TestReadmeExamples(t *testing.T) {
	text := page(t, "README.md")
	t.Chdir(t.TempDir())
	seen := 0
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		example, ok := strings.CutPrefix(line, "    $ echo '")
		if !ok {
			continue
		}
		completion, rest, _ := strings.Cut(example, "' | ./callgate ")
		_, stdout, _ := command(t, strings.NewReader(completion+"\n"), strings.Fields(rest)...)
		if want := strings.TrimPrefix(lines[i+1], "    ") + "\n"; stdout != want {
			t.Errorf("%s\ngot  %swant %s", line, stdout, want)
		}
		seen++
	}
	if seen < 2 {
		t.Errorf("%d examples", seen)
	}
}
