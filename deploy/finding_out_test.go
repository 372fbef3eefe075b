package deploy_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// What differs from run to run: times, ids, durations, digests, and the name of the machine.
var (
	pageTimes   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	pageIDs     = regexp.MustCompile(`call_[A-Z2-7]{26}`)
	pageSpans   = regexp.MustCompile(`took       \d+ µs`)
	pageDigests = regexp.MustCompile(`configuration [0-9a-f]+…`)
	pageHosts   = regexp.MustCompile(`\(seq (\d+) of [^)]*\)`)
)

func normalized(text string) string {
	text = pageTimes.ReplaceAllString(text, "TIME")
	text = pageIDs.ReplaceAllString(text, "CALL")
	text = pageSpans.ReplaceAllString(text, "took N µs")
	text = pageDigests.ReplaceAllString(text, "configuration DIGEST")
	return pageHosts.ReplaceAllString(text, "(seq $1 of HOST)")
}

// Every command of docs/finding-out.md prints what the page says, in an empty folder, in the order
// of the page.
func TestFindingOut(t *testing.T) {
	page, err := os.ReadFile("../docs/finding-out.md")
	if err != nil {
		t.Fatal(err)
	}
	folder, ids, commands := t.TempDir(), map[string]string{}, 0
	lines := strings.Split(string(page), "\n")
	for i := 0; i < len(lines); i++ {
		command, ok := strings.CutPrefix(lines[i], "    $ ")
		if !ok {
			continue
		}
		commands++
		var want []string
		for i+1 < len(lines) && !strings.HasPrefix(lines[i+1], "    $ ") && (strings.HasPrefix(lines[i+1], "    ") || lines[i+1] == "" && i+2 < len(lines) && strings.HasPrefix(lines[i+2], "    ")) {
			i++
			want = append(want, strings.TrimPrefix(lines[i], "    "))
		}
		// An id of the page stands for the one that an earlier command printed in its place.
		for written, real := range ids {
			command = strings.ReplaceAll(command, written, real)
		}
		shell := exec.CommandContext(t.Context(), "sh", "-c", command)
		shell.Dir, shell.Env = folder, append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
		output, err := shell.Output()
		if code := shell.ProcessState.ExitCode(); code > 1 {
			t.Fatalf("%s: %v", command, err)
		}
		got := strings.TrimSuffix(string(output), "\n")
		if normalized(got) != normalized(strings.Join(want, "\n")) {
			t.Errorf("$ %s\ngot\n%s\nthe page says\n%s", command, got, strings.Join(want, "\n"))
		}
		written, real := pageIDs.FindAllString(strings.Join(want, "\n"), -1), pageIDs.FindAllString(got, -1)
		for n := range min(len(written), len(real)) {
			ids[written[n]] = real[n]
		}
	}
	if commands < 9 {
		t.Errorf("the page has %d commands", commands)
	}
}
