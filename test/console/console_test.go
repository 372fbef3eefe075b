// Package console_test opens the console in Chromium, by Playwright, and looks for what axe
// and the browser complain about. It is what `make test-console` runs. The packages of npm are
// fetched; what is not installed, or cannot be fetched, is left out and said; where CI is true,
// that is a failure.
package console_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// longest bounds each program that is run.
const longest = 15 * time.Minute

func TestConsole(t *testing.T) {
	if os.Getenv("CALLGATE_CONSOLE") == "" {
		t.Skip("skipped: make test-console opens the console in a browser")
	}
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			browser = found
			break
		}
	}
	if browser == "" {
		leaveOut(t, "there is no chromium")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		leaveOut(t, "there is no npm")
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "console.test.mjs"} {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if out, err := run(t, dir, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		leaveOut(t, "the packages cannot be fetched: "+out)
	}
	listen, admin := serve(t)
	report, err := run(t, dir, append(os.Environ(), "CONSOLE_URL=http://"+admin, "CONSOLE_CALLS=http://"+listen, "CONSOLE_BROWSER="+browser), "node", "--test", "--test-reporter=tap")
	passed := regexp.MustCompile(`(?m)^# pass ([1-9][0-9]*)$`).FindString(report)
	if err != nil || passed == "" {
		t.Fatalf("%v\n%s", err, report)
	}
	t.Log(passed)
}

// serve serves the built-in configuration with the content of completions in its log, and with
// refunds over 100, or after a search, that people are asked about. It returns the addresses of both listeners.
func serve(t *testing.T) (listen, admin string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "callgate") // pictures show its name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "callgate")
	if out, err := run(t, "../..", nil, "go", "build", "-o", program, "./cmd/callgate"); err != nil {
		t.Fatal(out)
	}
	if err := os.CopyFS(filepath.Join(dir, "configs"), os.DirFS("../../configs")); err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(dir, "configs", "callgate.yaml")
	text, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer("127.0.0.1:8080", "127.0.0.1:0", "127.0.0.1:9090", "127.0.0.1:0", "record: digest", "record: completion", "#approvals: approvals.yaml", "approvals: approvals.yaml",
		"#candidate: {policy: policy.next.csv}", "candidate: {policy: policy.next.csv}",
		"#threads:\n", "threads: {labels: [untrusted], default_labels: [untrusted], unnamed: shared}\n").Replace(string(text))
	if err := os.WriteFile(main, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]*strings.Replacer{
		"approvals.yaml": strings.NewReplacer("#remember: {same: 8h, thread: 1h}", "remember: {same: 8h}", "#hint:", "hint:"),
		"policy.csv":     strings.NewReplacer("# end", `p, Analyst, acme/alpha, payments.refund, "'untrusted' in thread.labels || args.amount > 100", ask:refunds`+"\n# end"),
	} {
		path := filepath.Join(dir, "configs", name)
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(change.Replace(string(text))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// The candidate lets the Analyst do nothing.
	if err := os.WriteFile(filepath.Join(dir, "configs", "policy.next.csv"), []byte("p, Intern, *, *, , allow\n# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := exec.CommandContext(ctx, program, "serve", "--config", main)
	c.Dir = dir
	log, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = c.Wait() // it was killed
	})
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ Msg, Listen, Admin string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
			go func() {
				for lines.Scan() { // so that it can go on writing
				}
			}()
			return line.Listen, line.Admin
		}
	}
	t.Fatalf("it does not serve: %v", lines.Err())
	return "", ""
}

// run returns what a program said.
func run(t *testing.T, dir string, env []string, program string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	c.Dir, c.Env = dir, env
	c.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.String(), err
}

// leaveOut ends a test that cannot be run here.
func leaveOut(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("left out: %s", why)
	}
	t.Skipf("left out: %s", why)
}
