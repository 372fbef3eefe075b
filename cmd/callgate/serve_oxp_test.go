package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/registry"
)

// called is the call that a vector is, where it is one that a face can bring whose
// calls come apart: by its tool's name and its arguments.
func called(t testing.TB, v corpora.Vector) (name string, arguments []byte, ok bool) {
	r := parser.Parse(v.Bytes(t), false, parser.Options{})
	return r.Name, r.Arguments, r.Kind == parser.Call && v.FinishReason == "" && v.Expect.Stage != "parse" && !r.Claimed
}

// oxpID is the form of the names that OXP can bring.
var oxpID = regexp.MustCompile(`^[A-Za-z0-9_]+\.[A-Za-z0-9_]+$`)

// byOXP brings calls to the face of a tool server, without an id of their own.
func byOXP(t *testing.T, of vectors) carry {
	config, data := unlimited(t, of.config)
	g := serveGate(t, config)
	loaded, err := configs.Load(config)
	if err != nil {
		t.Fatal(err)
	}
	ids := wireNames(t, loaded, registry.OXP())
	sent := 0
	t.Cleanup(func() {
		if decisions, _ := g.countRecords(t, data); decisions != sent {
			t.Errorf("%d decisions in the log, want %d", decisions, sent)
		}
	})
	return func(t *testing.T, v corpora.Vector) (vectorVerdict, bool) {
		name, arguments, ok := bytesCalled(t, v)
		id, known := ids.Wire(name)
		if !known {
			id = name
		}
		if !ok {
			return vectorVerdict{}, false
		}
		ask := func() reply {
			quoted, err := json.Marshal(id)
			if err != nil {
				t.Fatal(err)
			}
			return g.ask(t, http.MethodPost, "/tools/call", `{"tool_id":`+string(quoted)+`,"input":`+string(arguments)+`}`,
				"Content-Type", "application/json", "Callgate-Agent", v.Agent, "Callgate-Workspace", v.Workspace, "Callgate-Project", v.Project)
		}
		if !oxpID.MatchString(id) { // such a name cannot be meant, so nothing is judged
			if r := ask(); r.status != http.StatusBadRequest || oxpVerdict(t, r).Code != "bad_request" {
				t.Errorf("%s: %d %s", v.ID, r.status, r.body)
			}
			return vectorVerdict{}, false
		}
		sent++
		return oxpVerdict(t, ask()), true
	}
}

// oxpVerdict is a verdict by the classes of the protocol.
func oxpVerdict(t *testing.T, r reply) vectorVerdict {
	t.Helper()
	var decoded struct {
		Success    *bool
		Code       string
		Stage      string
		Violations []struct{ Path string }
		Error      struct{ Stage string }
	}
	if err := json.Unmarshal([]byte(r.body), &decoded); err != nil || r.header.Get("OXP-Version") != "1.0" {
		t.Errorf("%d %v %s", r.status, r.header, r.body)
	}
	if r.status == http.StatusOK {
		// A tool of the demonstration may not find what the vector points at.
		if decoded.Success == nil || !*decoded.Success && decoded.Error.Stage != "execute" {
			t.Errorf("%d %s", r.status, r.body)
		}
		return vectorVerdict{Verdict: "tool_call"}
	}
	h := vectorVerdict{Verdict: "refused", Code: decoded.Code, Stage: decoded.Stage}
	if len(decoded.Violations) > 0 {
		h.Path = decoded.Violations[0].Path
	}
	if want := http.StatusUnprocessableEntity; (r.status == want) != (decoded.Stage == "schema" && decoded.Code != "unknown_tool") {
		t.Errorf("%d %s", r.status, r.body)
	}
	return h
}

// TestOXP44And45Tokens: a token must say when it ends, and that has not come; it must be
// for this gateway. Any other is 401 as the protocol has it, and runs nothing.
func TestOXP44And45Tokens(t *testing.T) {
	t.Parallel()
	known := newSigner(t, "k1")
	from := newIssuer(t, known)
	config, data := tokenConfig(t, of(from.URL))
	g := serveGate(t, config)
	hence := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	for _, c := range []struct {
		name    string
		changes members
		status  int
	}{
		{"good", nil, 200},
		{"several audiences", members{"aud": []string{"other", "callgate"}}, 200},
		{"without an end", members{"exp": nil}, 401},
		{"an end in words", members{"exp": "tomorrow"}, 401},
		{"expired", members{"exp": hence(-time.Hour)}, 401},
		{"for somebody else", members{"aud": "other"}, 401},
		{"for others", members{"aud": []string{"other", "callgate2"}}, 401},
		{"for nobody", members{"aud": nil}, 401},
	} {
		for path, body := range map[string]string{"/tools/call": `{"tool_id":"callgate.echo"}`, "/tools": ""} {
			method := http.MethodGet
			if body != "" {
				method = http.MethodPost
			}
			r := g.ask(t, method, path, body, "Content-Type", "application/json", "Authorization", "Bearer "+known.token(t, from.URL, c.changes))
			var decoded struct{ Code, Message string }
			if err := json.Unmarshal([]byte(r.body), &decoded); err != nil || r.status != c.status || r.header.Get("OXP-Version") != "1.0" {
				t.Errorf("%s, %s: %d %s", c.name, path, r.status, r.body)
			}
			if c.status == 401 && (decoded.Code != "unauthenticated" || decoded.Message == "" || r.header.Get("WWW-Authenticate") != "Bearer") {
				t.Errorf("%s, %s: %v %s", c.name, path, r.header, r.body)
			}
		}
	}
	if decisions, outcomes := g.countRecords(t, data); decisions != 2 || outcomes != 2 {
		t.Errorf("%d decisions and %d outcomes in the log", decisions, outcomes)
	}
}

// TestServeOXPAuthorizations: a gateway of which nobody has said how others see it tells
// where to ask for an authorization all the same, and is asked there.
func TestServeOXPAuthorizations(t *testing.T) {
	t.Parallel()
	challenge := `{"id":"mail","url":"https://accounts.example.com/","check_url":"http://SERVER/check"}`
	var status atomic.Value
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/check" {
			fmt.Fprintf(w, `{"status":%q}`, status.Load())
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"message":"x","missing_requirements":{"authorization":[%s]}}`, strings.ReplaceAll(challenge, "SERVER", r.Host))
	}))
	defer far.Close()
	config, _ := layout(t, map[string]string{
		"callgate.yaml": "server: {" + anyPort + "}\nregistry: {files: [tools.yaml]}\n",
		"tools.yaml":    fmt.Sprintf("tools:\n  - {name: mail.read, input_schema: {type: object}, run: {type: oxp, url: %q, tool: Mail.Read@1.0.0, addresses: [127.0.0.1/32]}}\n", far.URL),
	})
	g := serveGate(t, config)
	defer g.stop(t)
	r := g.ask(t, http.MethodPost, "/tools/call", `{"tool_id":"mail.read"}`, "Content-Type", "application/json")
	var decoded struct {
		Missing struct {
			Authorization []struct {
				URL   string `json:"url"`
				Check string `json:"check_url"`
			}
		} `json:"missing_requirements"`
	}
	if err := json.Unmarshal([]byte(r.body), &decoded); err != nil || r.status != http.StatusBadRequest || len(decoded.Missing.Authorization) != 1 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	path, ours := strings.CutPrefix(decoded.Missing.Authorization[0].Check, "http://"+g.listen)
	if want := "/tools/authorizations/" + r.header.Get("Callgate-Call-Id") + "/0"; !ours || path != want {
		t.Fatalf("%s", r.body)
	}
	for says, want := range map[string]string{"pending": "pending", "completed": "completed", "failed": "failed", "weird": "pending"} {
		status.Store(says)
		if r := g.ask(t, http.MethodGet, path, ""); r.status != http.StatusOK || r.body != `{"status":"`+want+"\"}\n" {
			t.Errorf("%s: %d %q", says, r.status, r.body)
		}
	}
}

// TestServeOXPBehindOXP: a gateway has the tools of another one, by its server's
// file, and what the other refuses is said to who asked.
func TestServeOXPBehindOXP(t *testing.T) {
	t.Parallel()
	far, farData := layout(t, map[string]string{
		"callgate.yaml": "server: {" + anyPort + "}\nregistry: {files: [tools.yaml]}\n",
		"tools.yaml":    "tools:\n  - {name: text.echo, version: 2.1.0, effect: read, description: Echoes., input_schema: {type: object, required: [n], properties: {n: {type: integer}}}, run: {type: demo}}\n  - {name: lone, input_schema: {type: object}, run: {type: demo}}\n",
	})
	behind := serveGate(t, far)
	near, data := layout(t, map[string]string{
		"callgate.yaml": "server: {" + anyPort + "}\nregistry: {files: [tools.yaml]}\nservers: servers.yaml\n",
		"tools.yaml":    "tools: []\n",
		"servers.yaml":  fmt.Sprintf("servers:\n  - {name: far, type: oxp, url: %q, addresses: [127.0.0.1/32], effects: {text.echo: read}}\n", "http://"+behind.listen),
	})
	if code, stdout, stderr := command(t, nil, "servers", "accept", "far", "--config", near); code != exitAccepted || !strings.Contains(stdout, "far.text.echo 2.1.0") || !strings.Contains(stdout, "far.callgate.lone 0.0.0") {
		t.Fatalf("%d %s %s", code, stdout, stderr)
	}
	g := serveGate(t, near)
	eventually(t, "the server was asked", func() bool {
		return strings.Contains(g.ask(t, http.MethodGet, "/v1/tools", "").body, "far.text.echo")
	})
	ok := g.call(t, `{"tool":{"name":"far.text.echo","arguments":{"n":1.0}}}`, "Callgate-User", "u-1")
	if ok.status != http.StatusOK || !strings.Contains(ok.body, `"output":{"echo":{"n":1.0}}`) {
		t.Errorf("%d %s", ok.status, ok.body)
	}
	// The same, through its own face: mapped, since the name has two dots.
	r := g.ask(t, http.MethodPost, "/tools/call", `{"tool_id":"far.text_echo@2","call_id":"c","input":{"n":2}}`, "Content-Type", "application/json")
	if oxpVerdict(t, r).Code != "unknown_tool" {
		t.Errorf("%d %s", r.status, r.body)
	}
	r = g.ask(t, http.MethodPost, "/tools/call", `{"tool_id":"far.text_echo@2.1.0","call_id":"c","input":{"n":2}}`, "Content-Type", "application/json")
	if oxpVerdict(t, r).Verdict != "tool_call" || !strings.Contains(r.body, `"value":{"echo":{"n":2}}`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	g.stop(t)
	behind.stop(t)
	for _, log := range []string{data, farData} {
		outcomes := 0
		for _, r := range verified(t, log) {
			if r["event"] == "outcome" {
				outcomes++
			}
		}
		if outcomes != 2 {
			t.Errorf("%d outcomes in %s", outcomes, log)
		}
	}
	if _, err := os.Stat(filepath.Join(data, "servers", "far.json")); err != nil {
		t.Error(err)
	}
}
