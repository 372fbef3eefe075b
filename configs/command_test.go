package configs

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/internal/testkit/configtest"
	"github.com/callgate/callgate/tool"
)

// TestCommands: a program with a relative path stands beside the file that names it, and
// is started in that file's folder, wherever the gateway was started; a name is left to
// PATH, and arguments stay as they are.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	files := serverMain(data, `servers:
  - {name: here, type: mcp, command: [./bin/server, ./notes, bin/x]}
  - {name: up, type: mcp, command: [../server]}
  - {name: named, type: mcp, command: [npx, ./server.js], env: {A: "", TOKEN: "env:TOKEN", KEY: "file:keys/hub", URL: "https://example.com"}}
  - {name: fixed, type: mcp, command: [/usr/bin/node, x.js]}
`)
	files["tools/program.yaml"] = "tools:\n  - {name: single, input_schema: {type: object}, run: {type: mcp, tool: x, command: [bin/server], env: {KEY: \"file:key\"}}}\n# end\n"
	main := configtest.Write(t, dir, configtest.With(t, files))
	t.Chdir(filepath.Dir(dir))
	relative, err := filepath.Rel(filepath.Dir(dir), main)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{main, relative} {
		c, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{
			filepath.Join(dir, "bin/server") + " ./notes bin/x", filepath.Join(filepath.Dir(dir), "server"), "npx ./server.js", "/usr/bin/node x.js",
		} {
			if s := c.Servers[i]; strings.Join(s.Command, " ") != want || s.Folder != dir {
				t.Errorf("%s: %q in %s, want %q", s.Name, s.Command, s.Folder, want)
			}
		}
		want := map[string]string{"A": "", "TOKEN": "env:TOKEN", "KEY": "file:" + filepath.Join(filepath.Dir(path), "keys/hub"), "URL": "https://example.com"}
		if got := c.Servers[2].Env; !maps.Equal(got, want) {
			t.Errorf("%v", got)
		}
		single, _ := c.Tools.Lookup("single")
		run := single.Run()
		if tools := filepath.Join(dir, "tools"); !slices.Equal(run.Command, []string{filepath.Join(tools, "bin/server")}) || run.Folder != tools ||
			run.Env["KEY"] != "file:"+filepath.Join(filepath.Dir(path), "tools/key") {
			t.Errorf("%+v", run)
		}
		run.Env["KEY"] = "changed"
		if second := single.Run(); second.Env["KEY"] == "changed" {
			t.Error("a definition can be changed")
		}
		pinned := lockfile.Accept(c.Servers[2], []tool.Definition{offered("search")}).Pins
		if err := lockfile.Write(c.DataDir, "named", c.Pins["named"], pinned); err != nil {
			t.Fatal(err)
		}
		if c, err = Load(path); err != nil {
			t.Fatal(err)
		}
		if found, ok := c.Tools.Lookup("named.search"); !ok || !maps.Equal(found.Run().Env, want) || found.Run().Folder != dir {
			t.Errorf("%+v", found)
		}
		if err := os.Remove(lockfile.Path(data, "named")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestVariables: what is wrong with a variable is said without its value.
func TestVariables(t *testing.T) {
	long, many := strings.Repeat("canary", 2000), map[string]string{}
	for i := range 65 {
		many[fmt.Sprint("A", i)] = "canary"
	}
	lots, _ := json.Marshal(many)
	for env, expected := range map[string]string{
		`{A: "` + long + `"}`:              "expected at most 8192 bytes without NUL",
		`{A: "canary\0"}`:                  "found a NUL|without NUL|control",
		string(lots):                       "found 65 variables; expected at most 64",
		`{"A=B": canary}`:                  `found the variable "A=B"`,
		`{"": canary}`:                     `found the variable ""`,
		`{A: [canary]}`:                    "found a list; expected a string",
		`{` + long[:129] + `: canary-too}`: "found the variable",
	} {
		_, err := Load(configtest.Write(t, t.TempDir(), configtest.With(t, serverMain(t.TempDir(), "servers:\n  - name: hub\n    type: mcp\n    command: [node]\n    env: "+env+"\n"))))
		if err == nil || !slices.ContainsFunc(strings.Split(expected, "|"), func(part string) bool { return strings.Contains(err.Error(), part) }) || strings.Contains(err.Error(), "canary-too") {
			t.Errorf("%.40s: %v", env, err)
		}
		if err != nil && !strings.Contains(env, "canarycanary") && strings.Contains(err.Error(), "canary") {
			t.Errorf("%.40s: the value is said: %v", env, err)
		}
	}
}
