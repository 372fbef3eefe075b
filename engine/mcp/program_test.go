package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// serve is a server on standard input and output, of a kind.
func serve(kind string, arguments []string) int {
	switch kind {
	case "sample":
		if err := sample().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			return 1
		}
		return 0
	case "talker":
		if err := talker().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			return 1
		}
		return 0
	case "script":
		new(script).serve()
		return 0
	case "replies":
		(&script{replies: true}).serve()
		return 0
	case "expects":
		f, err := os.OpenFile(arguments[0], os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			f.WriteString("x")
		}
		(&script{expects: true}).serve()
		return 0
	case "garbled":
		(&script{list: arguments[0]}).serve()
		return 0
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		new(script).serve()
		select {}
	case "chatty":
		for _, line := range arguments {
			fmt.Println(strings.ReplaceAll(line, "TOKEN", os.Getenv("TOKEN")))
		}
		new(script).serve()
		return 0
	case "slow":
		time.Sleep(time.Second)
		new(script).serve()
		return 0
	case "silent":
		select {}
	case "dies":
		fmt.Fprint(os.Stderr, strings.Repeat("before ", 1000), os.Getenv("TOKEN"), "\n", "Cannot find module \x1b[31m'x' with ", os.Getenv("TOKEN"), "\nand no more\n")
		return 1
	case "recorded":
		return serveRecorded(arguments[0], arguments[1])
	case "gone":
		f, err := os.OpenFile(arguments[0], os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			f.WriteString("x")
		}
		return 3
	}
	return 2
}

// script is a server below the SDK, whose tools are ways to misbehave.
type script struct {
	list    string // instead of the answer to tools/list
	replies bool   // it answers notifications, and its errors name no request
	expects bool   // it ends on a request before initialize
	mu      sync.Mutex
	release chan struct{}
}

func (s *script) serve() {
	s.release = make(chan struct{})
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments struct{ Params string }
				Meta      struct {
					Token string `json:"progressToken"`
				} `json:"_meta"`
			}
		}
		if json.Unmarshal(line, &m) != nil {
			os.Exit(4)
		}
		id := string(m.ID)
		if s.expects && m.Method != "initialize" {
			return
		}
		s.expects = false
		switch m.Method {
		case "notifications/initialized":
			if s.replies {
				time.AfterFunc(100*time.Millisecond, func() { s.say(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"x"}}`) })
			}
		case "server/discover", "ping":
			if s.replies && m.Method == "server/discover" {
				s.say(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"x"}}`)
				continue
			}
			s.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"SECRET"}}`)
		case "initialize":
			s.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`)
		case "tools/list":
			if s.list != "" {
				s.say(s.list)
				continue
			}
			s.say(`{"result":{"tools":` + oneTool + `},"jsonrpc":"2.0","id":` + id + `}`)
		case "tools/call":
			switch m.Params.Name {
			case "deaf":
				select {} // it reads no more
			case "busy":
				time.Sleep(7 * time.Second) // it does one thing at a time
			case "line":
				s.say(`{"jsonrpc":"2.0","id":`+id+`,"result":`, text(string(line)), "}")
				continue
			case "reports", "reports late", "reports for ever", "logs":
				fill := strings.NewReplacer("ID", id, "TOKEN", m.Params.Meta.Token)
				go s.report(m.Params.Name, fill, m.Params.Arguments.Params)
				continue
			}
			go s.act(m.Params.Name, id)
		case "":
			s.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
			if id == `"asked"` {
				os.Stderr.WriteString(string(line))
				close(s.release)
			}
		}
	}
}

func (s *script) say(parts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		io.WriteString(os.Stdout, p)
	}
	io.WriteString(os.Stdout, "\n")
}

// report says how far a tool is, and answers.
func (s *script) report(tool string, fill *strings.Replacer, params string) {
	at := func(n int) { s.say(fill.Replace(reporting(fmt.Sprintf(`{"progressToken":"TOKEN","progress":%d}`, n)))) }
	switch tool {
	case "reports":
		s.say(fill.Replace(reporting(params)))
		s.say(fill.Replace(done))
	case "logs":
		s.say(fill.Replace(logging(params)))
		s.say(fill.Replace(done))
	case "reports late":
		at(1)
		s.say(fill.Replace(done))
		at(2)
	case "reports for ever":
		for n := 0; ; n++ {
			at(n)
			time.Sleep(time.Millisecond)
		}
	}
}

// act does what a tool is named for.
func (s *script) act(tool, id string) {
	head := `{"jsonrpc":"2.0","id":` + id + `,"result":`
	switch tool {
	case "echo":
		s.say(head, text("hi"), "}")
	case "pid":
		s.say(head, text(strconv.Itoa(os.Getpid())), "}")
	case "folder":
		folder, _ := os.Getwd()
		s.say(head, text(folder), "}")
	case "environment":
		s.say(head, text(strings.Join(os.Environ(), "\n")), "}")
	case "slow echo":
		time.Sleep(800 * time.Millisecond)
		s.say(head, text("hi"), "}")
	case "carriage return":
		s.say(head, text("hi"), "}\r\n")
	case "duplicate":
		s.say(head, `{"content":[{"type":"text","text":"SECRET","text":"SECRET"}]}}`)
	case "duplicate, id last":
		s.say(`{"result":{"id":99,"content":[],"content":[{"id":98}]},"x":"\"id\":97","jsonrpc":"2.0","id":` + id + `}`)
	case "bad text":
		s.say(head, "{\"content\":[{\"type\":\"text\",\"text\":\"\xff\"}]}}")
	case "large":
		s.say(head, text(strings.Repeat("x", 8<<20)), "}")
	case "large, id last":
		s.say(`{"result":{"id":99,"content":[{"type":"text","text":"`, strings.Repeat(`"id\\\":98,`[1:], 1<<20), `"}]},"jsonrpc":"2.0","id":`, id, `}`)
	case "very large":
		s.say(`{"jsonrpc":"2.0","result":`, text(strings.Repeat("x", 40<<20)), `,"id":`+id+`}`)
	case "log lines":
		s.say(`{"level":"info","id":` + id + `,"msg":"SECRET"}`)
		s.say(`{"level":"info","id":` + id + `,"raw":{"jsonrpc":"2.0","id":` + id + `}}`)
		s.say(`DEBUG received {"jsonrpc":"2.0","id":` + id + `,"method":"tools/call"}`)
		s.say(`[DEBUG] received {"jsonrpc":"2.0","id":` + id + `,"method":"tools/call"}`)
		s.say(head, text("hi"), "}")
	case "byte order mark":
		s.say("\ufeff", head, text("hi"), "}")
	case "no line end":
		os.Stdout.WriteString(head + text("last words") + "}")
		os.Exit(0)
	case "a little large":
		s.say(head, text(strings.Repeat("x", 1<<20+1)), "}")
	case "endless":
		for {
			if _, err := io.WriteString(os.Stdout, strings.Repeat("x", 1<<16)); err != nil {
				return
			}
		}
	case "die":
		os.Stdout.WriteString(head)
		os.Exit(3)
	case "answer and die":
		s.say(head, text("last words"), "}")
		os.Exit(3)
	case "garbage":
		s.say("SECRET")
	case "batch":
		s.say("[", head, text("SECRET"), "}]")
	case "hang":
	case "noise":
		for range 1000 {
			s.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"SECRET"}}`)
		}
		s.say(head, text("hi"), "}")
	case "stderr":
		noise := strings.Repeat("SECRET\n", 1<<10)
		for range 1000 {
			os.Stderr.WriteString(noise)
		}
		s.say(head, text("hi"), "}")
	case "asks":
		s.say(`{"jsonrpc":"2.0","id":"asked","method":"roots/list"}`)
		<-s.release
		s.say(head, text("hi"), "}")
	case "wrong id":
		s.say(`{"jsonrpc":"2.0","id":12345,"result":` + text("SECRET") + "}")
		s.say(`{"jsonrpc":"2.0","id":"` + id + `.0","result":` + text("SECRET") + "}")
		s.say(head, text("hi"), "}")
		s.say(head, text("SECRET"), "}")
	case "id as text":
		s.say(`{"jsonrpc":"2.0","id":"` + id + `","result":` + text("hi") + "}")
	case "no id":
		s.say(`{"jsonrpc":"2.0","result":` + text("SECRET") + "}")
		s.say(`{"jsonrpc":"2.0","error":{"code":-32700,"message":"SECRET"}}`)
		s.say(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"SECRET"}}`)
		s.say(`{"level":"info","id":"` + id + `","msg":"SECRET"}`)
		s.say(head, text("hi"), "}")
	case "wait":
		<-s.release
		s.say(head, text("hi"), "}")
	case "release":
		close(s.release)
		s.say(head, text("hi"), "}")
	case "child":
		// It holds the standard output of its parent, and outlives it.
		c := exec.Command(os.Args[0], "server", "stubborn")
		c.Stdout = os.Stdout
		stdin, _ := c.StdinPipe()
		_ = stdin
		if err := c.Start(); err != nil {
			os.Exit(5)
		}
		s.say(head, text(fmt.Sprint(os.Getpid(), " ", c.Process.Pid)), "}")
	}
}

// Every way in which a program can misbehave. It is sent a call that acts once at
// most once; what it says is in no cause.
func TestHostilePrograms(t *testing.T) {
	t.Parallel()
	const (
		away    = refusal.ToolUnavailable // outcome_unknown for once
		late    = refusal.ToolTimeout     // outcome_unknown for once
		invalid = refusal.InvalidResult
		large   = refusal.ResultTooLarge
	)
	for tool, want := range map[string]refusal.Code{
		"echo": "", "carriage return": "", "noise": "", "stderr": "", "asks": "", "wrong id": "", "answer and die": "",
		"log lines": "", "byte order mark": "", "no line end": "", "very large": large,
		"duplicate": invalid, "duplicate, id last": invalid, "bad text": invalid,
		"id as text": "", "no id": "",
		"large": large, "large, id last": large, "a little large": large,
		"endless": away, "die": away, "batch": invalid,
		"hang": late, "deaf": late, "garbage": late,
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			for _, effect := range []string{"read", "once"} {
				h := newFixture(t, engine.Options{}, nil)
				c := local(program(t, "script"), tool, effect)
				want, attempts := want, 1
				if want == late {
					c.Run.Timeout = 3 * time.Second
				}
				// On a busy machine a program may take too long to begin, which is another fault.
				eventually(t, func() bool {
					_, refused := h.run(t, local(c.Run.Command, "echo", "read"))
					return refused == nil
				})
				switch {
				case effect == "read" && want == away:
					attempts = 3
				case effect == "once" && (want == late || want == away):
					want = refusal.OutcomeUnknown
				}
				result, refused := h.run(t, c)
				got := refusal.Code("")
				if refused != nil {
					got = refused.Code
					if strings.Contains(fmt.Sprint(refused.Cause), "SECRET") {
						t.Errorf("%s: %v", effect, refused.Cause)
					}
				}
				if got != want || result.Attempts != attempts || got == "" && strings.Contains(string(result.Body), "SECRET") {
					t.Errorf("%s: %q, %v after %d attempts, want %q after %d", effect, result.Body, refused, result.Attempts, want, attempts)
				}
			}
		})
	}
}

// An invalid answer to one call does not affect another: the program keeps running.
func TestOneCallsFaultIsItsOwn(t *testing.T) {
	t.Parallel()
	h := newFixture(t, engine.Options{}, nil)
	command := program(t, "script")
	first := must(t, h, local(command, "pid", "once"))
	waiting := make(chan *refusal.Error, 1)
	go func() {
		_, refused := h.run(t, local(command, "wait", "once"))
		waiting <- refused
	}()
	for _, tool := range []string{"duplicate", "duplicate, id last", "bad text", "large", "large, id last", "a little large", "very large", "log lines", "wrong id", "noise"} {
		h.run(t, local(command, tool, "once"))
	}
	must(t, h, local(command, "release", "once"))
	if refused := <-waiting; refused != nil {
		t.Errorf("the call that waited: %v", refused)
	}
	if second := must(t, h, local(command, "pid", "once")); string(second.Body) != string(first.Body) {
		t.Errorf("the program %s was followed by %s", first.Body, second.Body)
	}
}

// The program is given nothing of the gateway's environment but three variables.
func TestEnvironmentOfPrograms(t *testing.T) {
	t.Setenv("CALLGATE_SECRET", "SECRET")
	t.Setenv("LANG", "C.UTF-8")
	t.Setenv("HOME", "/nonexistent")
	h := newFixture(t, engine.Options{}, nil)
	got := strings.Split(string(must(t, h, local(program(t, "script"), "environment", "once")).Body), "\n")
	for _, variable := range got {
		if name, _, _ := strings.Cut(variable, "="); name != "PATH" && name != "HOME" && name != "LANG" {
			t.Errorf("given %s", name)
		}
	}
	if len(got) != 3 {
		t.Errorf("given %d variables", len(got))
	}
}

// A program that ends is started anew, and one that cannot be is left alone for some
// time.
func TestProgramsAreStartedAnew(t *testing.T) {
	t.Parallel()
	h := newFixture(t, engine.Options{}, nil)
	command := program(t, "script")
	first := must(t, h, local(command, "pid", "once"))
	h.run(t, local(command, "die", "once"))
	if second := must(t, h, local(command, "pid", "read")); string(second.Body) == string(first.Body) {
		t.Errorf("the program %s is still there", second.Body)
	}
	counter := t.TempDir() + "/starts"
	if err := os.WriteFile(counter, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	attempts := 0
	eventually(t, func() bool {
		c := local(program(t, "gone", counter), "echo", "once")
		c.Tool = fmt.Sprint("sample-", attempts) // of which no breaker is open
		_, refused := h.run(t, c)
		attempts++
		if refused == nil || refused.Code != refusal.ToolUnavailable {
			t.Fatalf("%v", refused)
		}
		return strings.Contains(refused.Error(), "given some time")
	})
	starts, err := os.ReadFile(counter)
	if err != nil || len(starts) == 0 || len(starts) >= 2*attempts {
		t.Errorf("%d starts for %d calls: %v", len(starts), attempts, err)
	}
}

// TestProgramsThatExpectInitialize: a program that ends on a request before initialize is started once more
// without it, and from then on never with it.
func TestProgramsThatExpectInitialize(t *testing.T) {
	t.Parallel()
	starts := t.TempDir() + "/starts"
	if err := os.WriteFile(starts, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h := newFixture(t, engine.Options{}, nil)
	command := program(t, "expects", starts)
	for i, want := range []int{2, 3, 4} {
		must(t, h, local(command, "echo", "read"))
		if all, err := os.ReadFile(starts); err != nil || len(all) != want {
			t.Errorf("%d: %d starts, want %d: %v", i, len(all), want, err)
		}
		h.run(t, local(command, "die", "once"))
	}
}

// TestErrorsWithoutAnID: one that comes before there is a session answers the request that begins it, and one
// that comes later answers no call.
func TestErrorsWithoutAnID(t *testing.T) {
	t.Parallel()
	h := newFixture(t, engine.Options{}, nil)
	start := time.Now()
	must(t, h, local(program(t, "replies"), "slow echo", "once"))
	if took := time.Since(start); took > 9*time.Second {
		t.Errorf("the error that names no request was waited for: %v", took)
	}
}

// A program that says nothing at all any longer is given up.
func TestHangingProgramIsGivenUp(t *testing.T) {
	t.Parallel()
	h := newFixture(t, engine.Options{}, nil)
	command := program(t, "script")
	first := must(t, h, local(command, "pid", "once"))
	c := local(command, "deaf", "once")
	c.Run.Timeout = 3 * time.Second
	if _, refused := h.run(t, c); refused == nil || refused.Code != refusal.OutcomeUnknown {
		t.Errorf("%v", refused)
	}
	eventually(t, func() bool {
		c := local(command, "pid", "read")
		c.Run.Timeout = time.Second
		second, refused := h.run(t, c)
		return refused == nil && string(second.Body) != string(first.Body)
	})
	if log := h.log.String(); strings.Count(log, "has ended") != 1 || !strings.Contains(log, "server=s") || !strings.Contains(log, "said nothing while two calls") {
		t.Errorf("logged %s", log)
	}
}

// TestBusyProgramIsKept: a program that does one thing at a time is not ended at work because it has not answered a ping, and does
// what it was sent meanwhile.
func TestBusyProgramIsKept(t *testing.T) {
	t.Parallel()
	h := newFixture(t, engine.Options{}, nil)
	command := program(t, "script")
	first := must(t, h, local(command, "pid", "once"))
	c := local(command, "busy", "once")
	c.Run.Timeout = 300 * time.Millisecond
	if _, refused := h.run(t, c); refused == nil || refused.Code != refusal.OutcomeUnknown {
		t.Errorf("%v", refused)
	}
	if second := must(t, h, local(command, "pid", "once")); string(second.Body) != string(first.Body) || h.log.String() != "" {
		t.Errorf("the program %s was given up for %s: %s", first.Body, second.Body, h.log.String())
	}
}

// One that is slow with a call, and answers others, is not.
func TestSlowProgramIsKept(t *testing.T) {
	t.Parallel()
	h := newFixture(t, engine.Options{}, nil)
	command := program(t, "script")
	first := must(t, h, local(command, "pid", "once"))
	c := local(command, "hang", "once")
	c.Run.Timeout = 300 * time.Millisecond
	h.run(t, c)
	for range 3 {
		if second := must(t, h, local(command, "pid", "once")); string(second.Body) != string(first.Body) {
			t.Errorf("the program %s was given up for %s", first.Body, second.Body)
		}
	}
}

// TestSlowStart: a program that is slow to start, as one that npx downloads at first, is waited for by
// every attempt to list its tools, beyond the time of an answer, and is not started anew.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	h := newFixture(t, engine.Options{}, nil)
	server := tool.Server{Name: "s", Type: "mcp", Command: program(t, "slow"), Timeout: 300 * time.Millisecond}
	if found, err := h.Discover(t.Context(), server); err != nil || len(found) != 1 {
		t.Errorf("%v: %v", found, err)
	}
	server = tool.Server{Name: "short", Type: "mcp", Command: program(t, "silent"), Timeout: patient, StartTimeout: 300 * time.Millisecond}
	if _, err := h.Discover(t.Context(), server); err == nil || !strings.Contains(err.Error(), "start_timeout") || !strings.Contains(err.Error(), "300ms") {
		t.Errorf("%v", err)
	}
}

// TestLinesOfTheirOwn: lines of a program that have nothing of a message are passed over, before a call
// and with it. Others end the program, and the operator reads the line without what it brings.
func TestLinesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"Server started.", "[INFO] ready", "42", `"hi"`, "[]", "null", "{'a': 1}", "{", "}", `{"level":"info","msg":"ready"}`, "caf\xe9", "\x1b[32mok\x1b[0m", "a\rb",
		`{"id":77,"msg":"no call"}`, `{"level":"info","id":2,"msg":"ready"}`, "INFO vscode-jsonrpc connection listening on stdio",
		`ready {"jsonrpc":"2.0","id":900,"result":"x"}`, `[INFO] {"jsonrpc":"2.0","id":900,"result":"x"}`, `{"raw":{"jsonrpc":"2.0"}}`,
	} {
		h := newFixture(t, engine.Options{}, nil)
		if _, refused := h.run(t, local(program(t, "chatty", line), "echo", "once")); refused != nil {
			t.Errorf("%q: %v", line, refused)
		}
	}
	many := slices.Repeat([]string{"TOKEN \x1b[1mstarting"}, 1001)
	for want, lines := range map[string][]string{
		`"[secret] \x1b[1mstarting"`: many,
		`"aaaaaaaa`:                  slices.Repeat([]string{strings.Repeat("a", 100_000)}, 11),
		`"  \"jsonrpc\": \"2.0\","`:  {"{", `  "jsonrpc": "2.0",`},
		`"[{\"jsonrpc\":\"2.0\","`:   {`[{"jsonrpc":"2.0","result":"LEAK"}]`},
		`"{\"jsonrpc\":\"2.0\",`:     {`{"jsonrpc":"2.0","id":900,"result":"LEAK"`},
	} {
		h := newFixture(t, engine.Options{ReadSecret: func(context.Context, string) (string, error) { return "s3cret", nil }}, nil)
		_, err := h.Discover(t.Context(), tool.Server{
			Name: "s", Type: "mcp", Command: program(t, append([]string{"chatty"}, lines...)...), Timeout: patient, Env: map[string]string{"TOKEN": "env:T"},
		})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "standard error") || strings.Contains(err.Error(), "LEAK") ||
			strings.Contains(err.Error(), "s3cret") || len(err.Error()) > 1000 {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A program that never greets is ended when its time is over.
func TestProgramsThatDoNotGreet(t *testing.T) {
	t.Parallel()
	h := newFixture(t, engine.Options{}, nil)
	c := local(program(t, "silent"), "echo", "once")
	c.Run.Timeout = 300 * time.Millisecond
	if _, refused := h.run(t, c); refused == nil || refused.Code != refusal.ToolTimeout {
		t.Errorf("silent: %v", refused)
	}
}
