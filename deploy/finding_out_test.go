package deploy_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The parts of an output that differ from run to run: times, ids, durations, digests, and the name of the machine.
var (
	pageTimes   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	pageIDs     = regexp.MustCompile(`call_[A-Z2-7]{26}`)
	pageDays    = regexp.MustCompile(`\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?`)
	pageSpan    = regexp.MustCompile(`days: \d+`) // two around midnight
	pageHashes  = regexp.MustCompile(`hash [0-9a-f]{64}`)
	pageSpans   = regexp.MustCompile(`took       \d+ µs`)
	pageDigests = regexp.MustCompile(`configuration [0-9a-f]+…`)
	pageHosts   = regexp.MustCompile(`\(seq (\d+) of [^)]*\)`)
)

func normalized(text string) string {
	text = pageTimes.ReplaceAllString(text, "TIME")
	text = pageDays.ReplaceAllString(text, "DAY")
	text = pageSpan.ReplaceAllString(text, "days: N")
	text = pageHashes.ReplaceAllString(text, "hash HASH")
	text = pageIDs.ReplaceAllString(text, "CALL")
	text = pageSpans.ReplaceAllString(text, "took N µs")
	text = pageDigests.ReplaceAllString(text, "configuration DIGEST")
	return pageHosts.ReplaceAllString(text, "(seq $1 of HOST)")
}

func TestFindingOut(t *testing.T) { runPage(t, "../docs/finding-out.md", 8) }

func TestPolicyTestsPage(t *testing.T) { runPage(t, "../docs/policy-tests.md", 15) }

func TestPolicyTutorial(t *testing.T) { runPage(t, "../docs/tutorial-policy.md", 20) }

func TestPolicyLintPage(t *testing.T) { runPage(t, "../docs/policy-lint.md", 2) }

// runPage runs the commands of a page in an empty folder, in its order: each prints what the page
// says. A line that starts with "> " continues a command.
func runPage(t *testing.T, name string, least int) {
	page, err := os.ReadFile(name)
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
		for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "    > ") {
			i++
			command += "\n" + strings.TrimPrefix(lines[i], "    > ")
		}
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
		if code := shell.ProcessState.ExitCode(); code > 2 || code == 2 && !strings.HasSuffix(command, "2>&1") {
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
	if commands < least {
		t.Errorf("the page has %d commands", commands)
	}
}
