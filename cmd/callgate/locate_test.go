package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
)

// TestLocate: every command that reads a configuration finds the same one.
func TestLocate(t *testing.T) {
	const small = "registry: {files: [tools.yaml]}\n# end\n"
	write := func(t *testing.T, file string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"tools.yaml":      "tools:\n  - {name: a.b, input_schema: {type: object}, run: {type: demo}}\n# end\n",
			"policy.csv":      "p, Analyst, acme/alpha, a.b, , allow\n# end\n",
			"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst]}}}}\n# end\n",
			"limits.yaml":     "default: {rate: 5/s}\n# end\n",
		} {
			if err := os.WriteFile(filepath.Join(filepath.Dir(file), name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(file, []byte(small), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commands := map[string]struct {
		args []string
		shot string // what standard output has with a configuration that has the tool a.b alone
	}{
		"config check":   {[]string{"config", "check"}, "1 tool,"},
		"tools list":     {[]string{"tools", "list"}, "a.b"},
		"check":          {[]string{"check"}, `"tool":"a.b"`},
		"call":           {[]string{"call"}, `{"echo":{}}`},
		"policy explain": {[]string{"policy", "explain", "--agent", "Analyst", "--tool", "a.b"}, "allowed"},
		"policy lint":    {[]string{"policy", "lint"}, ""},
		"servers list":   {[]string{"servers", "list"}, ""},
	}
	run := func(t *testing.T, args ...string) (int, string, string) {
		return command(t, strings.NewReader(`{"tool":{"name":"a.b","arguments":{}}}`), args...)
	}
	for name, c := range commands {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv(configVariable, "")
			if code, _, stderr := run(t, c.args...); code != exitUsage || !strings.Contains(stderr, configVariable+" is set, and empty") {
				t.Errorf("an empty variable: exit code %d, %s", code, stderr)
			}
			os.Unsetenv(configVariable)
			if _, stdout, stderr := run(t, c.args...); !strings.Contains(stderr, builtInNote+"\n") || strings.Contains(stdout, "a.b") && name == "tools list" {
				t.Errorf("nothing is named: %s%s", stdout, stderr)
			}
			write(t, "callgate.yaml")
			// Below the folder stands another one, which the variable and the flag name.
			write(t, "other/callgate.yaml")
			if err := os.Remove("other/policy.csv"); err != nil {
				t.Fatal(err)
			}
			if code, stdout, stderr := run(t, c.args...); !strings.Contains(stdout, c.shot) || strings.Contains(stderr, builtInNote) {
				t.Errorf("callgate.yaml here: exit code %d, %s%s", code, stdout, stderr)
			}
			const fault = "other/policy.csv"
			t.Setenv(configVariable, "other/callgate.yaml")
			if code, stdout, stderr := run(t, c.args...); code != exitUsage || !strings.Contains(stderr, fault) {
				t.Errorf("the variable: exit code %d, %s%s", code, stdout, stderr)
			}
			if code, stdout, stderr := run(t, append(c.args, "--config", "callgate.yaml")...); !strings.Contains(stdout, c.shot) || stderr != "" && c.shot != "" || strings.Contains(stderr, fault) {
				t.Errorf("the flag before the variable: exit code %d, %s%s", code, stdout, stderr)
			}
			if _, stdout, stderr := run(t, append(c.args, "--config", configs.BuiltIn)...); strings.Contains(stderr, fault) || strings.Contains(stderr, builtInNote) {
				t.Errorf("the built-in example by its name: %s%s", stdout, stderr)
			}
			os.Unsetenv(configVariable)
			// A file that cannot be read is no reason to use another.
			if err := os.Remove("callgate.yaml"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("nowhere.yaml", "callgate.yaml"); err != nil {
				t.Fatal(err)
			}
			if code, stdout, stderr := run(t, c.args...); code != exitUsage || !strings.Contains(stderr, "callgate.yaml") {
				t.Errorf("a link without a target: exit code %d, %s%s", code, stdout, stderr)
			}
		})
	}
}

// TestConfigCheckFile: the file may stand as the argument, once.
func TestConfigCheckFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"config", "check", configs.BuiltIn}, exitAccepted, "built-in:callgate.yaml is valid"},
		{[]string{"config", "check", "absent.yaml"}, exitUsage, "absent.yaml"},
		{[]string{"config", "check", ""}, exitUsage, "the name is empty"},
		{[]string{"config", "check", "a.yaml", "--config", "b.yaml"}, exitUsage, "found the file a.yaml beside --config b.yaml"},
		{[]string{"config", "check", "a.yaml", "b.yaml"}, exitUsage, "found 2 arguments; expected 1"},
	} {
		if code, stdout, stderr := command(t, nil, c.args...); code != c.code || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%q: exit code %d, %s%s", c.args, code, stdout, stderr)
		}
	}
}

// TestKnownCommand: a mistyped command is answered with the one that may have been meant.
func TestKnownCommand(t *testing.T) {
	for line, says := range map[string]string{
		"serv":        `unknown command "serv" for "callgate"; did you mean serve or servers?`,
		"audit quer":  `unknown command "quer" for "callgate audit"; did you mean query?`,
		"config chek": `unknown command "chek" for "callgate config"; did you mean check?`,
		"zebra":       `unknown command "zebra" for "callgate"`,

		"completion bsh":  `unknown command "bsh" for "callgate completion"`,
		"help zebra":      `unknown command "zebra" for "callgate"`,
		"help audit quer": `unknown command "quer" for "callgate audit"; did you mean query?`,
	} {
		if code, _, stderr := command(t, nil, strings.Fields(line)...); code != exitUsage || !strings.HasPrefix(stderr, "callgate: "+says+"\n") {
			t.Errorf("%s: exit code %d, %s", line, code, stderr)
		}
	}
}

// TestNoCommand: a command that holds others does nothing itself, and does not end as if it had.
func TestNoCommand(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if c.HasSubCommands() {
			path := c.CommandPath()
			code, stdout, stderr := command(t, nil, strings.Fields(path)[1:]...)
			if code != exitUsage || stdout != "" || !strings.Contains(stderr, "Usage:") || !strings.HasSuffix(stderr, "\ncallgate: found no command after \""+path+"\"\n") {
				t.Errorf("%s: exit code %d, %s%s", path, code, stdout, stderr)
			}
		}
		for _, inner := range c.Commands() {
			visit(inner)
		}
	}
	visit(newRoot(env{}))
	for _, line := range []string{"--help", "help", "help policy", "policy --help", "help policy replay"} {
		if code, stdout, stderr := command(t, nil, strings.Fields(line)...); code != exitAccepted || !strings.Contains(stdout, "Usage:") || stderr != "" {
			t.Errorf("%s: exit code %d, %s%s", line, code, stdout, stderr)
		}
	}
}

// TestExplainUnknown: names that the configuration does not have are said; what is known is not.
func TestExplainUnknown(t *testing.T) {
	t.Chdir(t.TempDir())
	for line, says := range map[string]string{
		"--agent Analyst --tool orders.gt":                   "note: the configuration has no tool \"orders.gt\"\n",
		"--agent Analist --tool web.search":                  "note: no project and no principal names the agent \"Analist\"\n",
		"--agent Analyst --tool web.search --project shop/a": "note: the configuration has no project \"shop/a\"\n",
		"--agent Analyst --tool web.search":                  "",
	} {
		if _, _, stderr := command(t, nil, append([]string{"policy", "explain"}, strings.Fields(line)...)...); stderr != says {
			t.Errorf("%s: %q; expected %q", line, stderr, says)
		}
	}
}
