package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/terminal"
)

// TestDemoFitsAScreen of 24 lines and 100 columns.
func TestDemoFitsAScreen(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t, nil, "demo")
	if code != exitAccepted || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	if len(lines) > 24 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > demoWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestDemoWithoutTemporaryFolder: an image from scratch has none.
func TestDemoWithoutTemporaryFolder(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, name := range []string{"TMPDIR", "TMP"} {
		t.Setenv(name, none)
	}
	want := "in " + none + ": no such file or directory; set TMPDIR to"
	if code, stdout, stderr := command(t, nil, "demo"); code != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, printed %q and %q, want %q", code, stdout, stderr, want)
	}
}

// TestDemoJSON has a line for each step, with what the model would read of all but text.
func TestDemoJSON(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t, nil, "demo", "--json")
	if code != exitAccepted || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	steps := demoSteps()
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	if len(lines) != len(steps) {
		t.Fatalf("%d lines for %d steps", len(lines), len(steps))
	}
	for i, line := range lines {
		var x demoExchange
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		refused := strings.Contains(string(x.Reads), `"output":{"error":{"code":`)
		if x.Completion != steps[i].completion || (x.Verdict == verdictRefused) != refused || (x.Verdict == verdictText) != (string(x.Reads) == "null") {
			t.Errorf("step %q: %s", steps[i].title, line)
		}
	}
}

// TestDemoColor: color moves no column.
func TestDemoColor(t *testing.T) {
	t.Parallel()
	exchanges := []demoExchange{
		{Verdict: verdictText, reason: "text"},
		{Verdict: verdictRefused, tool: "files.delete", code: "permission_denied", reason: "No."},
		{Verdict: verdictRan, tool: "time.now", reason: strings.Repeat("é", 200)},
	}
	var plain, colored bytes.Buffer
	printExchanges(&plain, terminal.Colorizer(false), exchanges)
	printExchanges(&colored, terminal.Colorizer(true), exchanges)
	if got := regexp.MustCompile(`\x1b\[[0-9]+m`).ReplaceAllString(colored.String(), ""); got != plain.String() || colored.Len() == plain.Len() {
		t.Errorf("colored:\n%splain:\n%s", colored.String(), plain.String())
	}
}

func TestShortened(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"It fits.", 8, "It fits."},
		{"One. Two? Three is long.", 12, "One. Two?"},
		{"One. Two?", 5, "One."},
		{"One. Two?", 4, "One."},
		{"You may, but not so.", 12, "You may,…"},
		{"You may, but not so.", 8, "You…"},
		{`{"a":[1,2,3,4]}`, 8, `{"a":[1…`},
		{"éééééé", 4, "ééé…"},
	} {
		if got := shortened(c.text, c.width); got != c.want {
			t.Errorf("%q in %d: got %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

// TestDemoSaysHowToGoOn: init writes what the last line says, and its console is where it says.
func TestDemoSaysHowToGoOn(t *testing.T) {
	requires(t, configs.Console)
	_, stdout, _ := command(t, nil, "demo")
	next := regexp.MustCompile(`\nNext: callgate (init (\S+)) && cd (\S+) && callgate serve   \(console: http://(\S+)/console\)\n$`).FindStringSubmatch(stdout)
	if next == nil {
		t.Fatalf("the last line names no commands: %s", stdout)
	}
	t.Chdir(t.TempDir())
	if code, _, stderr := command(t, nil, strings.Fields(next[1])...); code != exitAccepted || next[2] != next[3] {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	loaded, err := configs.Load(next[3] + "/callgate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Server.AdminListen != next[4] || !loaded.Server.Console {
		t.Errorf("the console is on %s (%t), the demo says %s", loaded.Server.AdminListen, loaded.Server.Console, next[4])
	}
}
