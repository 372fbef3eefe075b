package acpproxy_test

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/acp/wire"
)

// token is put together here, so that no scanner takes this file for one that has a secret.
var token = "gh" + "p_" + strings.Repeat("aB3", 12)

const gone = "[redacted:github-token]"

// TestHooks: what an agent writes, and what it reads of files and commands, passes the hooks.
func TestHooks(t *testing.T) {
	// open begins a prompt. It is answered when the function is called.
	open := func(t *testing.T, action string) (x *proxied, end func()) {
		w := newWaits()
		main := files()["callgate.yaml"] + "hooks: hooks.yaml\n"
		x = openProxy(t, plan{
			files: map[string]string{"callgate.yaml": main, "hooks.yaml": "hooks: [{name: secrets, at: [call, result], patterns: [secrets], on_match: " + action + "}]\n"},
			agent: map[string]answer{wire.MethodSessionPrompt: w.prompt},
			editor: map[string]answer{
				wire.MethodReadTextFile:   says(`{"content":"is ` + token + `"}`),
				wire.MethodTerminalOutput: says(`{"output":"is ` + token + `","truncated":false}`),
			},
		})
		x.begin()
		done := x.prompt()
		return x, func() {
			w.answer <- ended
			done()
		}
	}
	const (
		read   = `{"sessionId":"s1","path":"/w/a.go"}`
		output = `{"sessionId":"s1","terminalId":"t1"}`
		create = `{"sessionId":"s1","command":"go"}`
	)
	write := `{"sessionId":"s1","path":"/w/b","content":"is ` + token + `"}`
	t.Run("redact", func(t *testing.T) {
		x, end := open(t, "redact")
		defer end()
		if got := x.must(x.agent, wire.MethodReadTextFile, read); got != `{"content":"is `+gone+`"}` {
			t.Errorf("read %s", got)
		}
		x.must(x.agent, wire.MethodWriteTextFile, write)
		if all := strings.Join(x.got(&x.toEditor), "\n"); strings.Contains(all, token) || !strings.Contains(all, gone) {
			t.Errorf("the editor got %s", all)
		}
		x.must(x.agent, wire.MethodTerminalCreate, create)
		if got := x.must(x.agent, wire.MethodTerminalOutput, output); got != `{"output":"is `+gone+`","truncated":false}` {
			t.Errorf("the command wrote %s", got)
		}
	})
	t.Run("asked", func(t *testing.T) { // the user sees what would run, and nothing else
		f := asksForAll()
		f["callgate.yaml"] = files()["callgate.yaml"] + "hooks: hooks.yaml\n"
		f["hooks.yaml"] = "hooks: [{name: secrets, at: [call], patterns: [secrets], on_match: redact}]\n"
		w := newWaits()
		x := openProxy(t, plan{files: f, agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}, editor: map[string]answer{wire.MethodRequestPermission: chooses(wire.AllowOnce)}})
		x.begin()
		done := x.prompt()
		x.must(x.agent, wire.MethodWriteTextFile, write)
		x.must(x.agent, wire.MethodTerminalCreate, `{"sessionId":"s1","command":"go","args":["`+token+`"],"env":[{"name":"A","value":"`+token+`"}]}`)
		asked := x.editorGot(wire.MethodRequestPermission)
		if all := strings.Join(asked, "\n"); len(asked) != 2 || strings.Contains(all, token) || !strings.Contains(asked[0], `"newText":"is `+gone+`"`) || !strings.Contains(asked[1], `"title":"Run go `) {
			t.Errorf("the user was asked %s", all)
		}
		w.answer <- ended
		done()
	})
	t.Run("deny", func(t *testing.T) {
		x, end := open(t, "deny")
		defer end()
		x.must(x.agent, wire.MethodTerminalCreate, create)
		for method, params := range map[string]string{wire.MethodReadTextFile: read, wire.MethodWriteTextFile: write, wire.MethodTerminalOutput: output} {
			if got, fault := x.ask(x.agent, method, params); code(fault) != "-32000 hook_denied" || strings.Contains(got+fault.Message, token) {
				t.Errorf("%s: %s %+v", method, got, fault)
			}
		}
	})
}
