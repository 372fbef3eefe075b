package configs

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/internal/testkit/configtest"
	"github.com/callgate/callgate/tool"
)

// TestBoundariesOfServers: the boundaries of the servers file hold arguments of accepted tools, and
// what cannot be held does not load.
func TestBoundariesOfServers(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	load := func(boundaries string) (*Config, error) {
		servers := "servers:\n  - {name: files, type: mcp, url: \"https://example.com/mcp\"" + boundaries + "}\n"
		return Load(configtest.Write(t, dir, configtest.With(t, serverMain(data, servers))))
	}
	first, err := load("")
	if err != nil {
		t.Fatal(err)
	}
	move := tool.Definition{Name: "move", InputSchema: json.RawMessage(`{"type":"object","properties":{
		"from":{"type":"string","x-boundary":"host"},"to":{"type":"array","items":{"type":"string"}},"b":{"const":9007199254740993},"big":{"type":"integer"}}}`)}
	accepted := lockfile.Accept(first.Servers[0], []tool.Definition{move})
	if len(accepted.Refused) > 0 {
		t.Fatal(accepted.Refused)
	}
	if err := lockfile.Write(first.DataDir, "files", nil, accepted.Pins); err != nil {
		t.Fatal(err)
	}
	found := func(c *Config) (all []string) {
		entry, ok := c.Tools.Lookup("files.move")
		if !ok {
			t.Fatal("the tool is not there")
		}
		for _, b := range entry.Boundaries(map[string]any{"from": "a", "to": []any{"b", "c"}}) {
			all = append(all, b.Kind+" "+strings.Join(b.Path, "/")+" "+b.Value)
		}
		return all
	}
	c, err := load("")
	if err != nil || !slices.Equal(found(c), []string{"host from a"}) {
		t.Errorf("without boundaries: %v, %v", found(c), err)
	}
	bounded, err := load(", boundaries: {move: {from: path, to: path}}")
	if err != nil {
		t.Fatal(err)
	}
	if got := found(bounded); !slices.Equal(got, []string{"path from a", "path to/0 b", "path to/1 c"}) {
		t.Errorf("found %q", got)
	}
	if bounded.Digest == c.Digest {
		t.Error("the boundaries are not in the digest")
	}
	if got := bounded.Pins["files"][0]; string(got.InputSchema) != string(c.Pins["files"][0].InputSchema) {
		t.Error("what was accepted has changed")
	}
	if c, err = load(", boundaries: {delete: {from: path}}"); err != nil || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].Error(), `servers.yaml:2:75: the boundaries of "delete", which was not accepted from the server "files"`) {
		t.Errorf("a tool that was not accepted: %v, %v", c.Warnings, err)
	}
	for boundaries, says := range map[string]string{
		"{move: {form: path}}": `servers.yaml:2:82: found a boundary of the argument "form" of "move", whose accepted schema does not declare it; expected an argument`,
		"{move: {big: path}}":  "found x-boundary on what is not text",
		"{move: {from: 7}}":    "servers.yaml:2:88: found a whole number; expected a string: path, host,",
		"{move: path}":         "expected a mapping of arguments",
		"[move]":               "expected a mapping of tools",
	} {
		if c, err := load(", boundaries: " + boundaries); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, %v", boundaries, c, err)
		}
	}
}
