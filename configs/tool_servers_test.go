package configs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/internal/testkit/configtest"
	"github.com/callgate/callgate/tool"
)

// serverMain is a configuration with servers and a data folder of its own.
func serverMain(data, servers string) map[string]string {
	return map[string]string{
		"callgate.yaml": "registry: {files: [tools/*.yaml, tools/*.json]}\nservers: servers.yaml\ndata_dir: " + data + "\n# end\n",
		"servers.yaml":  servers + "# end\n",
	}
}

const oneServer = `servers:
  - {name: hub, type: mcp, url: "https://example.com/mcp", credential: env:HUB_TOKEN, allow: [search, "get_*"], effects: {search: read}, timeout: 3s}
`

func offered(name string) tool.Definition {
	return tool.Definition{Name: name, Description: "d", InputSchema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"},"extra":{"type":"object"}}}`)}
}

func TestAcceptedToolsAreRegistered(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	main := configtest.Write(t, dir, configtest.With(t, serverMain(data, oneServer)))
	before, err := Load(main)
	if err != nil {
		t.Fatal(err)
	}
	if _, there := before.Tools.Lookup("hub.search"); there || len(before.Servers) != 1 {
		t.Fatal("a tool that nobody has accepted is registered")
	}
	accepted := lockfile.Accept(before.Servers[0], []tool.Definition{offered("search"), offered("get_one"), offered("drop")})
	if len(accepted.Pins) != 3 || len(accepted.Changed) != 3 || len(accepted.Refused) != 0 {
		t.Fatalf("%+v", accepted)
	}
	if err := lockfile.Write(before.DataDir, "hub", before.Pins["hub"], accepted.Pins); err != nil {
		t.Fatal(err)
	}
	if err := lockfile.Write(before.DataDir, "hub", before.Pins["hub"], nil); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("who has not seen what was accepted meanwhile undoes it: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(data, "servers", ".*")); err != nil || len(left) != 0 {
		t.Errorf("%v is left behind: %v", left, err)
	}
	c, err := Load(main)
	if err != nil {
		t.Fatal(err)
	}
	if c.Digest == before.Digest {
		t.Error("what was accepted is not in the digest")
	}
	search, ok := c.Tools.Lookup("hub.search")
	if !ok {
		t.Fatal("an accepted tool is not registered")
	}
	run := search.Run()
	if search.Effect() != "read" || run.Type != "mcp" || run.URL != "https://example.com/mcp" || run.Server != "hub" || run.Tool != "search" ||
		run.Credential.Key() != tool.Bearer("env:HUB_TOKEN").Key() || run.Timeout != 3*time.Second {
		t.Errorf("%s %+v", search.Effect(), run)
	}
	if one, ok := c.Tools.Lookup("hub.get_one"); !ok || one.Effect() != "once" {
		t.Error("what nobody says anything of does not act once")
	}
	if _, ok := c.Tools.Lookup("hub.drop"); ok {
		t.Error("a tool that is not allowed is registered")
	}
	digest, err := lockfile.Digest(offered("search"))
	if at := c.Pins["hub"]; err != nil || len(at) != 3 || at[2].Name != "search" || at[2].Digest != digest {
		t.Errorf("found the pins %+v, %v", at, err)
	}
}

// TestAskingChangesNoDefinition: what the tools of a server may ask is the operator's
// word. It counts for the digest, and what was accepted stays accepted.
func TestAskingChangesNoDefinition(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	main := configtest.Write(t, dir, configtest.With(t, serverMain(data, oneServer)))
	before, err := Load(main)
	if err != nil {
		t.Fatal(err)
	}
	if err := lockfile.Write(before.DataDir, "hub", before.Pins["hub"], lockfile.Accept(before.Servers[0], []tool.Definition{offered("search")}).Pins); err != nil {
		t.Fatal(err)
	}
	if before, err = Load(main); err != nil {
		t.Fatal(err)
	}
	if search, ok := before.Tools.Lookup("hub.search"); !ok || len(search.Run().InputRequests) != 0 {
		t.Fatalf("a tool that nobody lets ask: %+v", search.Run())
	}
	configtest.Write(t, dir, configtest.With(t, serverMain(data, strings.Replace(oneServer, "timeout: 3s", "timeout: 3s, input_requests: [url, form]", 1))))
	after, err := Load(main)
	if err != nil {
		t.Fatal(err)
	}
	search, ok := after.Tools.Lookup("hub.search")
	if !ok || !slices.Equal(search.Run().InputRequests, []string{"url", "form"}) {
		t.Fatalf("a tool that may ask: %v", ok)
	}
	if after.Digest == before.Digest || !reflect.DeepEqual(after.Pins, before.Pins) {
		t.Errorf("digests %s and %s, pins %+v and %+v", before.Digest, after.Digest, before.Pins, after.Pins)
	}
	search.Run().InputRequests[0] = "roots"
	if search.Run().InputRequests[0] != "url" {
		t.Error("a reader has changed what the tool may ask")
	}
}

func TestFaultOfPins(t *testing.T) {
	for content, want := range map[string]string{
		`{"server":"hub","tools":[{"name":"search","digest":"d"`:    "hub.json",
		`{"server":"hut","tools":[]}`:                               `the server "hut"; expected that of "hub"`,
		`{"tools":[]}`:                                              `the server ""; expected that of "hub"`,
		`{"server":"hub","tools":[],"more":1}`:                      `unknown key "more"`,
		`{"server":"hub","tools":[{"name":"search","digest":"d"}]}`: "input_schema",
		`{"server":"hub","tools":[{"name":"a b","digest":"d","input_schema":{"type":"object"}}]}`: "hub.json:1:",
	} {
		dir, data := t.TempDir(), t.TempDir()
		main := configtest.Write(t, dir, configtest.With(t, serverMain(data, strings.Replace(oneServer, `allow: [search, "get_*"], `, "", 1))))
		if err := os.MkdirAll(filepath.Join(data, "servers"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(lockfile.Path(data, "hub"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(main); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; expected %s", content, err, want)
		}
	}
}

func TestAllow(t *testing.T) {
	for list, allowed := range map[string][]string{
		"":                             {"search", "get_one", "drop"},
		`allow: [search, "get_*"], `:   {"search", "get_one"},
		`allow: [nothing], `:           nil,
		`allow: [], `:                  nil,
		`allow: ["*"], `:               {"search", "get_one", "drop"},
		"allow: [search, get_one.x], ": {"search"},
	} {
		main := configtest.Write(t, t.TempDir(), configtest.With(t, serverMain(t.TempDir(), strings.Replace(oneServer, `allow: [search, "get_*"], `, list, 1))))
		c, err := Load(main)
		if err != nil {
			t.Fatal(list, err)
		}
		for _, name := range []string{"search", "get_one", "drop"} {
			if got := c.Servers[0].Allows(name); got != slices.Contains(allowed, name) {
				t.Errorf("%q allows %s: %v", list, name, got)
			}
		}
	}
}

// TestTakesPins: what an operator is about to accept is tried on the whole
// configuration, which is left as it is.
func TestTakesPins(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	files := serverMain(data, strings.Replace(oneServer, `allow: [search, "get_*"], `, "", 1))
	files["tools/own.yaml"] = "tools:\n  - {name: hub_own.search, input_schema: {type: object}, run: {type: demo}}\n# end\n"
	files["policy.csv"] = "p, Analyst, *, hub.search, \"args.q == 'x'\", allow\n# end\n"
	c, err := Load(configtest.Write(t, dir, configtest.With(t, files)))
	if err != nil {
		t.Fatal(err)
	}
	other := offered("search")
	other.InputSchema = json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)
	for why, c2 := range map[string]struct {
		offer tool.Definition
		fault string
	}{
		"it fits":                           {offered("search"), ""},
		"a condition reads what it has not": {other, "policy.csv:1:"},
		"one name where there are no dots":  {offered("own_search"), `becomes "hub_own_search" like "hub_own.search"`},
	} {
		pins := lockfile.Accept(c.Servers[0], []tool.Definition{c2.offer}).Pins
		if len(pins) != 1 {
			t.Fatalf("%s: it is not even a pin", why)
		}
		if err := c.CheckLockfile("hub", pins); (err == nil) != (c2.fault == "") || err != nil && !strings.Contains(err.Error(), c2.fault) {
			t.Errorf("%s: %v; expected %q", why, err, c2.fault)
		}
	}
	if second, err := Load(c.Files[0]); err != nil || second.Digest != c.Digest {
		t.Errorf("the configuration has changed: %v", err)
	}
}
