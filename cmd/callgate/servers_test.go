package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/toolservers"
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/tool"
)

// stage has servers that have the tools that a test gives them.
type stage struct {
	says map[string][]tool.Definition
}

func (s *stage) Discover(_ context.Context, of tool.Server) ([]tool.Definition, error) {
	return s.says[of.Name], nil
}

func (s *stage) say(server string, found ...tool.Definition) { s.says[server] = found }

func defined(name, description string) tool.Definition {
	return tool.Definition{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

// hubConfig writes a configuration with the server hub, and returns its main file.
func hubConfig(t *testing.T, policy, tools string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"callgate.yaml":   "servers: servers.yaml\nregistry: {files: [tools.yaml]}\ndata_dir: " + t.TempDir() + "\n",
		"servers.yaml":    "servers: [{name: hub, type: mcp, url: \"https://example.com/mcp\"}]\n",
		"tools.yaml":      "tools: [" + tools + "]\n",
		"policy.csv":      policy,
		"limits.yaml":     "{}\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst]}}}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"# end\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "callgate.yaml")
}

// accepting accepts what the hub says now, and tells what was printed.
func accepting(t *testing.T, hub *stage, config string, a toolservers.Accepter, names ...string) (stdout, stderr string, err error) {
	t.Helper()
	loaded, err := configs.Load(config)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	a.Loaded, a.Server = loaded, loaded.Servers[0]
	a.Out, a.Err = &out, &errs
	err = a.Ask(context.Background(), hub, names)
	return out.String(), errs.String(), err
}

// digestIn is the digest that a dry run has printed.
func digestIn(t *testing.T, stdout string) string {
	t.Helper()
	for line := range strings.Lines(stdout) {
		if digest, ok := strings.CutPrefix(line, "digest\t"); ok {
			return strings.TrimSpace(digest)
		}
	}
	t.Fatalf("found no digest in %q", stdout)
	return ""
}

// fates are what was printed of each tool, before the digest at the end.
func fates(t *testing.T, stdout string) string {
	t.Helper()
	return strings.TrimSuffix(stdout, "digest\t"+digestIn(t, stdout)+"\n")
}

func TestAcceptWhatIsMeant(t *testing.T) {
	hub := &stage{says: map[string][]tool.Definition{}}
	config := hubConfig(t, "p, Analyst, *, hub.*, , allow\n", "")
	pins := func() (names []string) {
		loaded, err := configs.Load(config)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range loaded.Pins["hub"] {
			names = append(names, p.Name+" "+p.Description)
		}
		return names
	}
	hub.say("hub", defined("a", "1"), defined("b", "1"))
	stdout, _, err := accepting(t, hub, config, toolservers.Accepter{DryRun: true})
	if err != nil || len(pins()) != 0 {
		t.Fatalf("a dry run: %v, %v", err, pins())
	}
	digest := digestIn(t, stdout)
	hub.say("hub", defined("b", "1"), defined("a", "2"))
	if stdout, _, err := accepting(t, hub, config, toolservers.Accepter{Digest: digest}); err == nil || stdout != "" || len(pins()) != 0 {
		t.Fatalf("what is not expected: %v, %q, %v", err, stdout, pins())
	}
	hub.say("hub", defined("b", "1"), defined("a", "1")) // the order is the server's own
	if _, _, err := accepting(t, hub, config, toolservers.Accepter{Digest: digest}); err != nil || !slices.Equal(pins(), []string{"a 1", "b 1"}) {
		t.Fatalf("what is expected: %v, %v", err, pins())
	}
	hub.say("hub", defined("a", "2"), defined("c", "2"))
	if stdout, _, err := accepting(t, hub, config, toolservers.Accepter{}, "a"); err != nil || fates(t, stdout) != "changed\thub.a\n" || !slices.Equal(pins(), []string{"a 2", "b 1"}) {
		t.Fatalf("one by its name: %v, %q, %v", err, stdout, pins())
	}
	if stdout, _, err := accepting(t, hub, config, toolservers.Accepter{}); err != nil || fates(t, stdout) != "forgotten\thub.b\nunchanged\thub.a\naccepted\thub.c\n" || !slices.Equal(pins(), []string{"a 2", "c 2"}) {
		t.Fatalf("all: %v, %q, %v", err, stdout, pins())
	}
	if _, _, err := accepting(t, hub, config, toolservers.Accepter{}, "b"); err == nil {
		t.Error("a tool that nobody has is accepted")
	}
	faulty := defined("c", "3")
	faulty.InputSchema = json.RawMessage(`{"type":"object","$dynamicRef":"#c"}`)
	hub.say("hub", defined("a", "2"), faulty)
	if stdout, stderr, err := accepting(t, hub, config, toolservers.Accepter{}); !errors.Is(err, cli.ErrRefused) || fates(t, stdout) != "forgotten\thub.c\nunchanged\thub.a\n" ||
		!strings.Contains(stderr, "left out: ") || !slices.Equal(pins(), []string{"a 2"}) {
		t.Fatalf("one that cannot be accepted any more: %v, %q, %q, %v", err, stdout, stderr, pins())
	}
	hub.say("hub", faulty)
	if stdout, stderr, err := accepting(t, hub, config, toolservers.Accepter{}); !errors.Is(err, cli.ErrRefused) || stdout != "" ||
		!strings.Contains(stderr, "left out: ") || !strings.Contains(stderr, "hub has no tool that can be accepted") || !slices.Equal(pins(), []string{"a 2"}) {
		t.Fatalf("none that can be accepted: %v, %q, %q, %v", err, stdout, stderr, pins())
	}
}

// TestAcceptLeavesTheConfigurationWhole: tools with which it would not load are not
// accepted: the gateway could not be started any more.
func TestAcceptLeavesTheConfigurationWhole(t *testing.T) {
	hub := &stage{says: map[string][]tool.Definition{}}
	hub.say("hub", defined("own_search", "d"), defined("fine", "d"))
	config := hubConfig(t, "p, Analyst, *, hub.*, , allow\n", "{name: hub_own.search, input_schema: {type: object}, run: {type: demo}}")
	for _, dry := range []bool{true, false} {
		_, stderr, err := accepting(t, hub, config, toolservers.Accepter{DryRun: dry})
		if err == nil || !strings.Contains(err.Error(), `"hub_own.search"`) || !strings.Contains(stderr, "nothing is accepted") {
			t.Errorf("%v, %q", err, stderr)
		}
		if loaded, err := configs.Load(config); err != nil || len(loaded.Pins["hub"]) != 0 {
			t.Fatalf("after that: %v", err)
		}
	}
	if _, _, err := accepting(t, hub, config, toolservers.Accepter{}, "fine"); err != nil {
		t.Errorf("one that fits: %v", err)
	}
}

// TestNothingOfAServerMovesTheTerminal: what is printed of a server's words shows
// them, and obeys none.
func TestNothingOfAServerMovesTheTerminal(t *testing.T) {
	const trick = "\x1b[2J\raccepted\thub.other\n\u202e\u200b\x9b"
	schema := func(format string) json.RawMessage {
		quoted, err := json.Marshal(trick)
		if err != nil {
			t.Fatal(err)
		}
		return json.RawMessage(strings.ReplaceAll(format, "TRICK", string(quoted)))
	}
	open, faulty, named, versioned := defined("open", trick), defined("faulty", trick), defined(trick, trick), defined("versioned", trick)
	open.InputSchema = schema(`{"type":"object","properties":{"q":{"type":"object","description":TRICK}}}`)
	faulty.InputSchema = schema(`{"type":"object",TRICK:1,"properties":{TRICK:{"format":TRICK,"pattern":TRICK,"$ref":TRICK}},"required":[TRICK]}`)
	versioned.Version, versioned.Unusable = trick, trick
	hub := &stage{says: map[string][]tool.Definition{}}
	hub.say("hub", open, faulty, named, versioned)
	config := hubConfig(t, "p, Analyst, *, hub.*, , allow\n", "")
	stdout, stderr, _ := accepting(t, hub, config, toolservers.Accepter{DryRun: true})
	if !strings.Contains(stderr, "changed: ") || strings.Count(stderr, "left out: ") < 3 {
		t.Errorf("found %q", stderr)
	}
	listed := ""
	for _, r := range toolservers.Compare(lockfile.Server{Server: tool.Server{Name: "hub"}, Prefix: "hub"}, nil, hub.says["hub"]) {
		listed += strings.Join(r.Cells(), " ")
	}
	for _, text := range []string{strings.ReplaceAll(stdout+stderr, "\n", ""), listed} {
		for _, r := range text {
			if r < ' ' && r != '\t' || r == 0x7F || r >= 0x80 && r < 0xA0 || r == '\u202e' || r == '\u200b' {
				t.Errorf("%U reaches the terminal in %q", r, text)
				break
			}
		}
	}
	for line := range strings.Lines(stdout + stderr) {
		if strings.HasPrefix(line, "accepted\thub.other") {
			t.Errorf("the server writes the line %q", line)
		}
	}
}

// TestTIP15ToolsetsAreAcceptedWhole: of a toolset in which one tool cannot be judged
// none is accepted.
func TestTIP15ToolsetsAreAcceptedWhole(t *testing.T) {
	hub := &stage{says: map[string][]tool.Definition{}}
	config := hubConfig(t, "p, Analyst, *, hub.*, , allow\n", "")
	servers := filepath.Join(filepath.Dir(config), "servers.yaml")
	if err := os.WriteFile(servers, []byte("servers: [{name: hub, type: callback, url: \"https://example.com\"}]\n# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := defined("b", "1")
	bad.InputSchema = json.RawMessage(`{"type":"object","additionalproperties":false}`)
	hub.say("hub", defined("a", "1"), bad)
	if stdout, stderr, err := accepting(t, hub, config, toolservers.Accepter{}); err == nil || stdout != "" || !strings.Contains(stderr, "additionalproperties") {
		t.Errorf("%v, %q, %q", err, stdout, stderr)
	}
	loaded, err := configs.Load(config)
	if err != nil || len(loaded.Pins["hub"]) != 0 {
		t.Errorf("%v, %v", loaded.Pins, err)
	}
	hub.say("hub", defined("a", "1"), defined("b", "1"))
	if stdout, _, err := accepting(t, hub, config, toolservers.Accepter{}); err != nil || fates(t, stdout) != "accepted\thub.a\naccepted\thub.b\n" {
		t.Errorf("%v, %q", err, stdout)
	}
}

// TestAcceptElsewhere: what one gateway has accepted is carried to another, by its
// digest or as a file, and is the same there.
func TestAcceptElsewhere(t *testing.T) {
	t.Parallel()
	hub := &stage{says: map[string][]tool.Definition{}}
	hub.say("hub", defined("a", "1"), defined("b", "1"))
	policy := "p, Analyst, *, hub.*, , allow\n"
	here, there := hubConfig(t, policy, ""), hubConfig(t, policy, "")
	digestOfAll := func(config string) string {
		t.Helper()
		loaded, err := configs.Load(config)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := toolservers.DigestOf(loaded.Pins["hub"])
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	if code, stdout, stderr := command(t, nil, "servers", "export", "hub", "--config", here); code != exitUsage || stdout != "" || !strings.Contains(stderr, "nothing was accepted of hub") {
		t.Errorf("of nothing: %d, %s%s", code, stdout, stderr)
	}
	stdout, _, err := accepting(t, hub, here, toolservers.Accepter{})
	if err != nil {
		t.Fatal(err)
	}
	digest := digestIn(t, stdout)
	if _, _, err := accepting(t, hub, there, toolservers.Accepter{Digest: digest}); err != nil || digestOfAll(there) != digestOfAll(here) {
		t.Errorf("by its digest: %v", err)
	}
	for _, r := range toolservers.Compare(lockfile.Server{Server: tool.Server{Name: "hub"}, Prefix: "hub"}, nil, hub.says["hub"]) {
		if want, err := lockfile.Digest(defined(strings.TrimPrefix(r.Tool, "hub."), "1")); err != nil || r.Digest != want {
			t.Errorf("%s is listed with the digest %q; expected %q: %v", r.Tool, r.Digest, want, err)
		}
	}

	hub.say("hub", defined("a", "2"), defined("c", "1"))
	if _, _, err := accepting(t, hub, here, toolservers.Accepter{}); err != nil {
		t.Fatal(err)
	}
	code, exported, stderr := command(t, nil, "servers", "export", "hub", "--config", here)
	if code != exitAccepted {
		t.Fatalf("%d: %s", code, stderr)
	}
	from := func(text string, args ...string) (int, string, string) {
		t.Helper()
		return command(t, strings.NewReader(text), append([]string{"servers", "accept", "hub", "--from", "-", "--config", there}, args...)...)
	}
	before, expected := digestOfAll(there), digestOfAll(here)
	for what, c := range map[string]struct {
		text string
		args []string
	}{
		"half a file":                 {exported[:len(exported)/2], nil},
		"of another server":           {strings.Replace(exported, `"hub"`, `"far"`, 1), nil},
		"an unknown member":           {strings.Replace(exported, `"digest"`, `"digests"`, 1), nil},
		"a schema that does not load": {strings.Replace(exported, `"type": "object"`, `"type": "objekt"`, 1), nil},
		"what is not meant":           {exported, []string{"--expect", before}},
		"an edited schema":            {strings.Replace(exported, `"type": "object"`, `"type": "object", "additionalProperties": true`, 1), []string{"--expect", expected}},
		"an edited description":       {strings.Replace(exported, `"description": "2"`, `"description": "3"`, 1), []string{"--expect", expected}},
		"an edited endpoint":          {strings.Replace(exported, `"name"`, `"endpoint": "https://example.net/", "name"`, 1), []string{"--expect", expected}},
		"an empty digest":             {exported, []string{"--expect", ""}},
		"half a digest":               {exported, []string{"--expect", expected[:32]}},
		"names of tools":              {exported, []string{"a"}},
		"only to be looked at":        {exported, []string{"--dry-run"}},
	} {
		code, stdout, stderr := from(c.text, c.args...)
		if what == "only to be looked at" && !strings.HasPrefix(stdout, "would forget\thub.b\nwould change\thub.a\nwould accept\thub.c\n") {
			t.Errorf("%s: %s", what, stdout)
		}
		if dry := what == "only to be looked at"; dry != (code == exitAccepted) || !dry && (code != exitUsage || stdout != "" || stderr == "") {
			t.Errorf("%s: %d, %s%s", what, code, stdout, stderr)
		}
		if digestOfAll(there) != before {
			t.Fatalf("%s was accepted", what)
		}
	}
	code, stdout, stderr = from(exported, "--expect", digestOfAll(here))
	if code != exitAccepted || fates(t, stdout) != "forgotten\thub.b\nchanged\thub.a\naccepted\thub.c\n" {
		t.Errorf("%d, %q, %s", code, stdout, stderr)
	}
	if _, repeated, _ := command(t, nil, "servers", "export", "hub", "--config", there); repeated != exported {
		t.Errorf("found %s; expected %s", repeated, exported)
	}
	// The server's definition is the same, but the schemas that judge calls are not.
	edited := strings.Replace(exported, `"type": "object"`, `"type": "object", "title": "x"`, 1)
	if code, stdout, stderr := from(edited, "--dry-run"); code != exitAccepted || !strings.HasPrefix(stdout, "would change\thub.a\nunchanged\thub.c\n") {
		t.Errorf("an edited schema: %d, %q, %s", code, stdout, stderr)
	}
	servers := filepath.Join(filepath.Dir(there), "servers.yaml")
	if err := os.WriteFile(servers, []byte("servers: [{name: hub, type: mcp, url: \"https://example.com/mcp\", allow: [a]}]\n# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := from(exported); code != exitUsage || stdout != "" || !strings.Contains(stderr, "not among those") {
		t.Errorf("a tool that is not allowed: %d, %s%s", code, stdout, stderr)
	}
	// A tool that is no longer allowed is not exported.
	if code, stdout, stderr := command(t, nil, "servers", "export", "hub", "--config", there); code != exitAccepted || !strings.Contains(stdout, `"a"`) || strings.Contains(stdout, `"c"`) {
		t.Errorf("what is allowed: %d, %s%s", code, stdout, stderr)
	}
}

// TestFilesSendCallsNowhereElse: a file of what another gateway has accepted names no
// place for calls that the server itself could not name.
func TestFilesSendCallsNowhereElse(t *testing.T) {
	config := hubConfig(t, "p, Analyst, *, hub.*, , allow\n", "")
	for _, c := range []struct{ server, endpoint, says string }{
		{`type: mcp, url: "https://example.com/mcp"`, "https://example.com/mcp", "expected none with the type mcp"},
		{`type: callback, url: "https://example.com"`, "http://example.com/call", "without TLS"},
		{`type: callback, url: "https://example.com"`, "/call", "not an absolute URL"},
		{`type: callback, url: "https://example.com", credential: env:HUB`, "https://example.net/call", "on another server"},
		{`type: callback, url: "http://example.com", credential: env:HUB`, "https://example.com/call", "on another server"},
		{`type: callback, url: "https://example.com"`, "https://example.net/call", ""},
		{`type: callback, url: "https://example.com", credential: env:HUB`, "https://example.com/call", ""},
	} {
		servers := filepath.Join(filepath.Dir(config), "servers.yaml")
		if err := os.WriteFile(servers, []byte("servers: [{name: hub, "+c.server+"}]\n# end\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		file := `{"server":"hub","tools":[{"name":"a","endpoint":"` + c.endpoint + `","digest":"d","input_schema":{"type":"object"}}]}`
		code, stdout, stderr := command(t, strings.NewReader(file), "servers", "accept", "hub", "--from", "-", "--dry-run", "--config", config)
		if refused := c.says != ""; refused != (code == exitUsage) || refused != (stdout == "") || !strings.Contains(stderr, c.says) {
			t.Errorf("%s with %s: %d, %s%s", c.server, c.endpoint, code, stdout, stderr)
		}
	}
}
