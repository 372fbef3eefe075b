package acp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/internal/testkit/facetest"
)

// service is a request of an agent, and the native call that it is.
type service struct {
	method, params string // without the session
	tool           string
	arguments      string
}

func reads(members string) service {
	return service{"fs/read_text_file", members, "acp.fs.read", "{" + members + "}"}
}

func writes(members string) service {
	return service{"fs/write_text_file", members, "acp.fs.write", "{" + members + "}"}
}

func commands(params, arguments string) service {
	return service{"terminal/create", params, "acp.terminal.create", "{" + arguments + "}"}
}

// services are requests for files and terminals, allowed and refused by every rule that can
// concern them.
var services = []service{
	reads(`"path":"/w/a"`), reads(`"path":"/w/a","line":2,"limit":1`), reads(`"path":"/x/deep/a"`),
	reads(`"path":"/w/secret"`), reads(`"path":"/etc/passwd"`), reads(`"path":"/w/../etc/passwd"`), reads(`"path":"/wa"`),
	reads(`"path":"/w/a\u0000b"`), reads(`"path":"/w/` + strings.Repeat("a", 5000) + `"`),
	writes(`"path":"/w/a","content":""`), writes(`"path":"/w/a","content":"\u202e"`), writes(`"path":"/etc/a","content":"x"`), writes(`"path":"/","content":"x"`),
	commands(`"command":"make"`, `"command":"make"`), commands(`"command":"make","args":["-s","a b"]`, `"command":"make","args":["-s","a b"]`),
	commands(`"command":"make","cwd":"/w/sub"`, `"command":"make","cwd":"/w/sub"`), commands(`"command":"make","cwd":"/etc"`, `"command":"make","cwd":"/etc"`),
	commands(`"command":"make","env":[{"name":"A","value":"b"}],"outputByteLimit":10`, `"command":"make","env":{"A":"b"},"outputByteLimit":10`),
	commands(`"command":"make","env":[{"name":"A=B","value":"b"}]`, `"command":"make","env":{"A=B":"b"}`),
}

// TestServiceVectors: a request of an agent for a file or a terminal has the verdict of the same
// native call, and reaches the editor if and only if it passes.
func TestServiceVectors(t *testing.T) {
	f := newFixture(t, facetest.Options{Config: facetest.Config(t, editorTools(t)), Engine: editorsEngine{}})
	b := openBridge(t, f, acptest.Script{}, subject, "/w", nil)
	for _, path := range []string{"/w/a", "/x/deep/a"} {
		b.Put(path, "1\n2\n3\n")
	}
	// A path that could be written shorter is refused unread: two programs may read it differently.
	if _, reported := b.dictate(t, ask("fs/read_text_file", `,"path":"/w/./sub/../a"`)); !strings.HasPrefix(reported, "fs/read_text_file -32602 ") || len(b.Got("fs/read_text_file")) != 0 {
		t.Errorf("a path with dots: the agent was told %q", reported)
	}
	passed := 0
	for _, s := range services {
		want := natively(t, f, subject, s.tool, []byte(s.arguments))
		before := len(b.Got(s.method))
		_, reported := b.dictate(t, ask(s.method, ","+s.params))
		got := ""
		if _, fault, failed := strings.Cut(reported, s.method+" -32000 "); failed {
			at := strings.Index(fault, `{"callgate"`)
			var data struct{ Callgate *refused }
			if at < 0 || json.Unmarshal([]byte(fault[at:]), &data) != nil {
				t.Fatalf("%s: the agent was told %q", s.params, reported)
			}
			got = data.Callgate.verdict()
		} else if strings.HasPrefix(reported, s.method+" -32602 ") && want != "" {
			got = want // it was refused before it was judged: the proxy takes no path such as /w/../a
		} else if !strings.HasPrefix(reported, s.method+" {") {
			t.Errorf("%.200s: the agent was told %q", s.params, reported)
		}
		if got != want {
			t.Errorf("%.200s: the proxy says %q, and the native face %q", s.params, got, want)
		}
		if reached := len(b.Got(s.method)) - before; reached != map[bool]int{true: 1}[want == ""] {
			t.Errorf("%.200s: %q, and the editor was asked %d times", s.params, want, reached)
		}
		if want == "" {
			passed++
		}
	}
	if passed < 9 || len(services)-passed < 8 {
		t.Errorf("%d of %d passed", passed, len(services))
	}
}

// subject is whom the tests stand for.
var subject = gateway.Subject{Agent: "Analyst", Workspace: "acme", Project: "alpha"}
