package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/server"
)

// broken panics when it is read.
type broken struct{}

func (broken) Read([]byte) (int, error) { panic("canary") }

// TestAgentHook: the hook ends with 0 where the gateway has answered as a hook does, and else with 2, a reason, and nothing on
// standard output: at every other code agents run the tool.
func TestAgentHook(t *testing.T) {
	t.Setenv(keyVariable, "the-key")
	const input = `{"hook_event_name":"PreToolUse"}`
	never, _ := io.Pipe()
	answers := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(server.HeaderCallID, "call_1")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	for name, c := range map[string]struct {
		gateway http.HandlerFunc // nil: it is away
		stdin   io.Reader
		args    []string
		stdout  string // of code 0
		stderr  string // of code 2
	}{
		"permitted": {gateway: answers(200, `{}`), stdout: `{}`},
		"denied":    {gateway: answers(200, `{"hookSpecificOutput":{}}`), stdout: `{"hookSpecificOutput":{}}`},
		"passed on": {gateway: func(w http.ResponseWriter, r *http.Request) {
			if body, err := io.ReadAll(r.Body); err != nil || string(body) != input || r.Method != "POST" || r.URL.Path != "/base/v1/hooks/codex" || r.Header.Get("Authorization") != "Bearer the-key" || r.Header[server.HeaderAgent] != nil {
				t.Errorf("%s %s %s %v, %v", r.Method, r.URL, body, r.Header, err)
			}
			answers(200, `{}`)(w, r)
		}, args: []string{"--url", "BASE/base/"}, stdout: `{}`},
		"passed on, for an agent": {gateway: func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(server.HeaderAgent) != "Coder" {
				t.Errorf("%v", r.Header)
			}
			answers(200, `{}`)(w, r)
		}, args: []string{"--agent", "Coder"}, stdout: `{}`},
		"away":                  {stderr: "the gateway cannot be reached"},
		"no credential":         {gateway: answers(401, `{"error":{"code":"unauthenticated","message":"Who?"}}`), stderr: "status 401: unauthenticated: Who?"},
		"an error":              {gateway: answers(500, `{}`), stderr: "status 500"},
		"no content":            {gateway: answers(204, ``), stderr: "status 204"},
		"nothing":               {gateway: answers(200, ``), stderr: "status 200"},
		"no JSON":               {gateway: answers(200, `ok`), stderr: "status 200"},
		"of no gateway":         {gateway: answers(200, `{"ok":true}`), stderr: "no answer to a hook"},
		"an error as an answer": {gateway: answers(200, `{"error":{"code":"x","message":"Broken."}}`), stderr: "no answer to a hook"},
		"more than an answer":   {gateway: answers(200, `{"hookSpecificOutput":{},"ok":true}`), stderr: "no answer to a hook"},
		"a word for an answer":  {gateway: answers(200, `{"hookSpecificOutput":"deny"}`), stderr: "no answer to a hook"},
		"empty of no gateway":   {gateway: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) }, stderr: "no answer to a hook"},
		"no object":             {gateway: answers(200, `[]`), stderr: "status 200"},
		"null":                  {gateway: answers(200, `null`), stderr: "status 200"},
		"a long answer":         {gateway: answers(200, `{"a":"`+strings.Repeat("x", maxHookAnswer)+`"}`), stderr: "status 200"},
		"elsewhere": {gateway: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, stderr: "status 307"},
		"a late answer": {gateway: func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body) // that the client leaves is seen after it
			<-r.Context().Done()
		}, args: []string{"--timeout", "10ms"}, stderr: "no answer within 10ms"},
		"an endless input": {gateway: answers(200, `{}`), stdin: never, args: []string{"--timeout", "10ms"}, stderr: "no answer within 10ms"},
		"a long input":     {gateway: answers(200, `{}`), stdin: strings.NewReader(strings.Repeat(" ", maxHookInput+1)), stderr: "longer than 16 MiB"},
		"a panic":          {gateway: answers(200, `{}`), stdin: broken{}, stderr: "panic"},
		"no URL":           {args: []string{"--url", "gateway"}, stderr: "expected a URL"},
		"an unknown flag":  {args: []string{"--allow"}, stderr: "unknown flag"},
		"an argument":      {args: []string{"x"}, stderr: "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			gateway := httptest.NewServer(c.gateway)
			defer gateway.Close()
			if c.gateway == nil {
				gateway.Close()
			}
			if c.stdin == nil {
				c.stdin = strings.NewReader(input)
			}
			args := []string{"hook", "codex", "--url", gateway.URL}
			for _, a := range c.args {
				args = append(args, strings.Replace(a, "BASE", gateway.URL, 1))
			}
			code, stdout, stderr := command(t, c.stdin, args...)
			if c.stderr == "" && (code != 0 || stdout != c.stdout || stderr != "") || c.stderr != "" && (code != 2 || stdout != "" || !strings.Contains(stderr, c.stderr)) || strings.Contains(stderr, "canary") || strings.Contains(stderr, "the-key") {
				t.Errorf("%d, %q, %q", code, stdout, stderr)
			}
		})
	}
}

// TestAgentHookShell: the line that Codex is given denies whatever becomes of the program. Codex runs the tool unless the line ends
// with 2 and a text on standard error, or with 0 and a denial that has a reason.
func TestAgentHookShell(t *testing.T) {
	const denial = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"permission_denied: no"}}`
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _ := io.ReadAll(r.Body)
		if agent := r.Header.Get(server.HeaderAgent); agent != "My coder" {
			t.Errorf("asked for the agent %q", agent)
		}
		switch string(asked) {
		case "permit":
			w.Header().Set(server.HeaderCallID, "call_1")
			fmt.Fprint(w, `{}`)
		case "deny":
			fmt.Fprint(w, denial)
		default:
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer gateway.Close()
	away := httptest.NewServer(nil)
	away.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^command = '''(.*)'''$`)
	for name, c := range map[string]struct {
		asked, url string
		program    string // instead of this one
		mode       os.FileMode
		runs       bool
	}{
		"permitted":               {asked: "permit", url: gateway.URL, runs: true},
		"denied":                  {asked: "deny", url: gateway.URL},
		"a gateway that fails":    {asked: "fail", url: gateway.URL},
		"a gateway that is away":  {asked: "permit", url: away.URL},
		"no gateway by that name": {asked: "permit", url: "127.0.0.1:8080"},
		"no program":              {asked: "permit", url: gateway.URL, program: "-"},
		"a program that is none":  {asked: "permit", url: gateway.URL, program: "#!/bin/sh\n", mode: 0o600},
		"a program that is older": {asked: "permit", url: gateway.URL, program: "#!/bin/sh\nexit 1\n", mode: 0o700},
		"a program that is gone":  {asked: "permit", url: gateway.URL, program: "#!/bin/sh\nkill -9 $$\n", mode: 0o700},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "callgate")
			switch c.program {
			case "":
				err = os.Symlink(self, file)
			case "-":
			default:
				err = os.WriteFile(file, []byte(c.program), c.mode)
			}
			if err != nil {
				t.Fatal(err)
			}
			code, printed, _ := command(t, nil, "hook", "install", "codex", "--url", c.url, "--agent", "My coder")
			lines := line.FindAllStringSubmatch(printed, -1)
			if code != 0 || len(lines) != 3 {
				t.Fatalf("%d %s", code, printed)
			}
			for _, l := range lines {
				var out, errs strings.Builder
				sh := exec.Command("/bin/sh", "-c", l[1])
				sh.Env = []string{"PATH=" + dir, asProgram + "=1"}
				sh.Stdin, sh.Stdout, sh.Stderr = strings.NewReader(c.asked), &out, &errs
				_ = sh.Run() // the code says it
				code := sh.ProcessState.ExitCode()
				runs := code != 2 || errs.Len() == 0
				if code == 0 {
					runs = out.String() != denial
				}
				if runs != c.runs || runs && out.String() != "{}" {
					t.Errorf("%s: ends with %d, %q, %q", l[1], code, out.String(), errs.String())
				}
			}
		})
	}
}

// TestHookInstallAgent: the settings name the agent, and no name of which their reader would make another one is printed.
func TestHookInstallAgent(t *testing.T) {
	for agent, want := range map[string]string{"claude-code": `"Callgate-Agent": "My coder"`, "codex": `--agent "My coder" ||`} {
		if code, printed, _ := command(t, nil, "hook", "install", agent, "--agent", "My coder"); code != 0 || !strings.Contains(printed, want) {
			t.Errorf("%s: %d %s", agent, code, printed)
		}
		for _, name := range []string{"$HOME", "`id`", `a"b`, "a'b", `a\b`, "", "a\nb"} {
			if code, printed, _ := command(t, nil, "hook", "install", agent, "--agent", name); code != 2 || printed != "" {
				t.Errorf("%s, %s: %d %s", agent, name, code, printed)
			}
		}
	}
}
