package main

import (
	"context"
	"encoding/json"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestFirstStepsServe runs the very lines by which the page starts the sample tool
// and the gateway and makes a call, and wants the answer that it shows.
func TestFirstStepsServe(t *testing.T) {
	t.Parallel()
	got, want := pageStart(t, "Serve", "127.0.0.1:9000")
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestFirstStepsAgentLoop does the same for the sample model.
func TestFirstStepsAgentLoop(t *testing.T) {
	t.Parallel()
	got, want := pageStart(t, "An agent loop, without a key", "127.0.0.1:9001")
	var completion struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal([]byte(got), &completion); err != nil || len(completion.Choices) != 1 || completion.Choices[0].Message.Content != want {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
}

// pagePorts is held by the test that uses the ports of the page.
var pagePorts sync.Mutex

// pageStart runs a section's lines: the gateway and a program beside it, which
// listens on an address, and what asks them. It returns the answer, and the one
// that the section shows.
func pageStart(t *testing.T, heading, beside string) (got, want string) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: the page's start builds and runs two programs")
	}
	pagePorts.Lock()
	defer pagePorts.Unlock()
	for _, address := range []string{"127.0.0.1:8080", "127.0.0.1:9090", beside} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Skipf("skipped: the page's start needs %s, which is in use", address)
		}
		l.Close()
	}
	_, section, _ := strings.Cut(page(t, firstSteps), "## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var start []string
	var curl, answer string
	for line := range strings.Lines(section) {
		line, code := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "    ")
		switch {
		case !code:
		case strings.HasSuffix(line, " &"):
			start = append(start, line)
		case strings.HasPrefix(line, "curl "):
			curl = line
		default:
			answer = line
		}
	}
	if len(start) != 2 || curl == "" || answer == "" {
		t.Fatalf("the page's start: %q, %q, %q", start, curl, answer)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("skipped: there is no curl")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // both are compiled first
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-c", strings.Join(start, "\n")+"\nwait")
	shell.Dir = "../.."
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var output syncBuffer
	shell.Stdout, shell.Stderr = &output, &output
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		syscall.Kill(-shell.Process.Pid, syscall.SIGTERM)
		shell.Wait()
	}()
	// Both say that they serve: who answers may be another's gateway, which has taken
	// the address meanwhile.
	for ready := false; !ready; time.Sleep(100 * time.Millisecond) {
		text := output.String()
		switch {
		case strings.Contains(text, "another program has it"), strings.Contains(text, "address already in use"):
			t.Skipf("skipped: the page's start needs addresses that are in use: %s", text)
		case ctx.Err() != nil:
			t.Fatalf("the gateway did not come up: %s", text)
		}
		ready = strings.Contains(text, `"msg":"serving"`) && strings.Contains(text, " listening on "+beside)
	}
	if code, _, stderr := command(t, nil, "healthcheck", "--address", "127.0.0.1:8080"); code != exitAccepted {
		t.Errorf("healthcheck: %d %s", code, stderr)
	}
	out, err := exec.CommandContext(ctx, "sh", "-c", curl).Output()
	if err != nil {
		t.Fatalf("%s: %v", curl, err)
	}
	return strings.TrimSuffix(string(out), "\n"), answer
}
