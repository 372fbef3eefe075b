package deploy_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callgate/callgate/internal/testkit/ports"
)

// The bounds of a tutorial until its first enforced call, and the speed of its reader.
const (
	mostCommands    = 5
	mostHuman       = 2 * time.Minute
	readPerMinute   = 200 // words
	typedPerMinute  = 40
	tutorialPatient = 3 * time.Minute
)

// TestTutorials runs the pages from nothing to the first enforced call, each in an empty folder, as
// they stand: their files, their commands, and what these print. make first-minutes shows the times.
func TestTutorials(t *testing.T) {
	t.Run("application", func(t *testing.T) {
		address := ports.Hold(t)
		model := exec.Command(filepath.Join(programs, "samplemodel"), "-listen", address)
		started(t, model, "listening on "+address)
		runTutorial(t, "tutorial-application.md", "MODEL_URL=http://"+address+"/v1")
	})
	t.Run("operator", func(t *testing.T) {
		var mu sync.Mutex
		var asked []string
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, r.Method+" "+r.URL.Path)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"id":7,"name":"Rex"}`)
		}))
		defer service.Close()
		runTutorial(t, "tutorial-operator.md", "API_URL="+service.URL)
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(asked, ", "); got != "GET /pets/7" {
			t.Errorf("the service was asked %s", got)
		}
	})
	t.Run("desktop", func(t *testing.T) {
		// In the place of the server from npm, one with some of its tools.
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		if err := os.Symlink(self, filepath.Join(folder, asNPX)); err != nil {
			t.Fatal(err)
		}
		runTutorial(t, "tutorial-desktop.md", "PATH="+folder+":"+programs+":"+os.Getenv("PATH"))
	})
}

// asNPX is the name by which the test binary is a server of tools.
const asNPX = "npx"

// serveFiles is a server with tools of the names that the file server from npm has, which do nothing.
func serveFiles() int {
	type arguments struct {
		Path string `json:"path"`
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1"}, nil)
	for _, name := range []string{"list_directory", "read_text_file", "write_file"} {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: "Files: " + name}, func(context.Context, *mcp.CallToolRequest, arguments) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
		})
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

// pageFile is a file that a page shows: its name stands behind the language of the block.
var pageFile = regexp.MustCompile("(?ms)^```(?:json|yaml) (\\S+)\n(.*?)^```$")

// pageCommand is a command of a page, and what it prints.
type pageCommand struct{ line, output string }

// commandsOfPage are the commands of a page, a line each.
func commandsOfPage(page string) []pageCommand {
	var all []pageCommand
	for line := range strings.Lines(page) {
		text, code := strings.CutPrefix(line, "    ")
		switch command, is := strings.CutPrefix(text, "$ "); {
		case code && is:
			all = append(all, pageCommand{line: strings.TrimSuffix(command, "\n")})
		case code && len(all) > 0:
			all[len(all)-1].output += text
		}
	}
	return all
}

// shown is what a page says that a command prints: … stands for the rest of a line, or alone for lines.
func shown(output string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`\A`)
	for line := range strings.Lines(output) {
		if line = strings.TrimSuffix(line, "\n"); line == "…" {
			b.WriteString(`(?:.*\n)*`)
			continue
		}
		b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + `\n`)
	}
	return regexp.MustCompile(b.String() + `\z`)
}

func runTutorial(t *testing.T, name string, variables ...string) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("skipped: there is no curl")
	}
	text, err := os.ReadFile("../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	path, _, found := strings.Cut(page, "\n## Notes\n")
	commands := commandsOfPage(path)
	if !found || len(commands) == 0 || len(commandsOfPage(page)) != len(commands) {
		t.Fatalf("%s has %d commands before its notes, of %d", name, len(commands), len(commandsOfPage(page)))
	}
	folder := t.TempDir()
	for _, file := range pageFile.FindAllStringSubmatch(page, -1) {
		if err := os.WriteFile(filepath.Join(folder, file[1]), []byte(file[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listen, admin := ports.Hold(t), ports.Hold(t)
	begun := time.Now()
	for _, c := range commands {
		// The ports of the page may be taken here.
		line := strings.ReplaceAll(c.line, "localhost:8080", listen)
		background := strings.HasSuffix(line, " &")
		command := func(line string) *exec.Cmd {
			shell := exec.CommandContext(t.Context(), "sh", "-c", line)
			shell.Dir, shell.Env = folder, append(append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH")), variables...)
			return shell
		}
		if background {
			started(t, command("exec "+strings.TrimSuffix(line, " &")), `"msg":"serving"`)
			continue
		}
		got, stderr := answered(t, func() *exec.Cmd { return command(line) })
		if !shown(c.output).MatchString(got) {
			t.Errorf("$ %s\ngot\n%s%s\nthe page says\n%s", c.line, got, stderr, c.output)
		}
		listenAt(t, filepath.Join(folder, "callgate.yaml"), listen, admin)
	}
	clock := time.Since(begun)

	read, typed := 0, 0
	for line := range strings.Lines(pageFile.ReplaceAllString(path, "")) {
		if !strings.HasPrefix(line, "    ") {
			read += len(strings.Fields(line))
		}
	}
	for _, c := range commands {
		typed += (len(c.line) + 4) / 5 // a word to type is five characters
	}
	human := time.Duration(float64(time.Minute) * (float64(read)/readPerMinute + float64(typed)/typedPerMinute))
	t.Logf("%s: %d commands; the clock says %.1f s; about %.0f s of a person: %d words to read, %d to type", name, len(commands), clock.Seconds(), human.Seconds(), read, typed)
	if len(commands) > mostCommands || human > mostHuman {
		t.Errorf("%s takes %d commands and about %v of a person; expected at most %d and %v", name, len(commands), human, mostCommands, mostHuman)
	}
}

// answered runs a command until it is answered otherwise than that the decision could not be
// recorded: where the disk of a busy machine does not answer in time, nothing is executed, and the
// answer says to retry.
func answered(t *testing.T, command func() *exec.Cmd) (stdout, stderr string) {
	t.Helper()
	for deadline := time.Now().Add(tutorialPatient); ; time.Sleep(100 * time.Millisecond) {
		c := command()
		var errs bytes.Buffer
		c.Stderr = &errs
		output, err := c.Output()
		if code := c.ProcessState.ExitCode(); code > 1 {
			t.Fatalf("$ %s: %v\n%s", c, err, errs.String())
		}
		stdout = string(output)
		if !strings.HasSuffix(stdout, "\n") {
			stdout += "\n" // of curl
		}
		if !strings.Contains(stdout, `"code":"audit_unavailable"`) || time.Now().After(deadline) {
			return stdout, errs.String()
		}
	}
}

// listenAt has a configuration listen at addresses of the test.
func listenAt(t *testing.T, main, listen, admin string) {
	t.Helper()
	text, err := os.ReadFile(main)
	if err != nil || bytes.Contains(text, []byte("server:")) {
		return
	}
	text = append([]byte(fmt.Sprintf("server: {listen: \"%s\", admin_listen: \"%s\"}\n", listen, admin)), text...)
	if err := os.WriteFile(main, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// started starts a program, waits until it says that it serves, and ends it with the test.
func started(t *testing.T, program *exec.Cmd, says string) {
	t.Helper()
	output, err := os.CreateTemp(t.TempDir(), "output")
	if err != nil {
		t.Fatal(err)
	}
	program.Stdout, program.Stderr = output, output
	program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-program.Process.Pid, syscall.SIGTERM) // it may have ended
		_ = program.Wait()
		output.Close()
	})
	for deadline := time.Now().Add(tutorialPatient); ; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(output.Name())
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte(says)) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come up: %s", program, text)
		}
	}
}
