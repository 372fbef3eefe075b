package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
)

// TestConfigFormat: config fmt, seal, schema and check --format json, with their exit codes.
func TestConfigFormat(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	run := func(code int, out string, args ...string) string {
		t.Helper()
		found, stdout, stderr := command(t, strings.NewReader(""), args...)
		if found != code || !strings.Contains(stdout+stderr, out) {
			t.Errorf("callgate %s: found exit code %d, expected %d with %q:\n%s%s", strings.Join(args, " "), found, code, out, stdout, stderr)
		}
		return stdout
	}
	const loose, tidy = "default:   {rate: 5/s}   # all\n\n\n# end\n", "default: {rate: 5/s} # all\n# end\n"
	write("real.yaml", loose, 0o640)
	if err := os.Symlink("real.yaml", "limits.yaml"); err != nil {
		t.Fatal(err)
	}
	run(1, "limits.yaml", "config", "fmt", "--check", "limits.yaml")
	run(0, "-default:   {rate: 5/s}   # all\n", "config", "fmt", "--diff", "limits.yaml")
	if read("limits.yaml") != loose {
		t.Error("--check or --diff wrote the file")
	}
	write("broken.yaml", "default: {\n# end\n", 0o600)
	run(2, "broken.yaml:3:1: found", "config", "fmt", "broken.yaml", "limits.yaml")
	info, err := os.Stat("real.yaml")
	if err != nil || info.Mode().Perm() != 0o640 || read("real.yaml") != tidy {
		t.Errorf("found %v, %v, %q; expected the mode 0640 and %q", info.Mode(), err, read("real.yaml"), tidy)
	}
	if link, err := os.Readlink("limits.yaml"); err != nil || link != "real.yaml" {
		t.Errorf("the link is replaced: %q, %v", link, err)
	}
	if out := run(0, "", "config", "fmt", "--check", "limits.yaml"); out != "" {
		t.Errorf("a formatted file differs: %s", out)
	}
	run(2, "which is no file", "config", "fmt", "--config", configs.BuiltIn)

	write("t.yaml", "default: {rate: 5/s}\n", 0o600)
	run(0, "t.yaml: sealed\n", "config", "seal", "t.yaml")
	run(0, "t.yaml: has its last line\n", "config", "seal", "t.yaml")
	if found := read("t.yaml"); found != "default: {rate: 5/s}\n# end\n" {
		t.Errorf("sealed: %q", found)
	}
	run(2, "broken.yaml:3:1: found", "config", "seal", "broken.yaml")
	run(2, "found no such file", "config", "seal", "absent.yaml")

	var schema map[string]any
	if err := json.Unmarshal([]byte(run(0, "", "config", "schema", "limits")), &schema); err != nil || schema["title"] != "The limits file" {
		t.Errorf("found %v, %v", schema["title"], err)
	}
	run(2, `found no kind of file "limit" (did you mean "limits"?); expected one of callgate, tools,`, "config", "schema", "limit")

	var checked checkJSON
	if err := json.Unmarshal([]byte(run(0, "", "config", "check", "--format", "json", "--config", configs.BuiltIn)), &checked); err != nil || !checked.Valid || checked.Tools < 5 || checked.Faults == nil {
		t.Errorf("found %+v, %v", checked, err)
	}
	write("callgate.yaml", "output: {max_bytes: 7}\nlog: {request: 1}\n# end\n", 0o600)
	checked = checkJSON{}
	if err := json.Unmarshal([]byte(run(2, "", "config", "check", "callgate.yaml", "--format", "json")), &checked); err != nil || checked.Valid || len(checked.Faults) < 2 {
		t.Fatalf("found %+v, %v", checked, err)
	}
	if f := checked.Faults[0]; f.File != "callgate.yaml" || f.Line != 1 && f.Line != 2 || f.Found == "" || f.Expected == "" || f.Column == 0 {
		t.Errorf("found %+v", f)
	}
	for _, pointer := range []string{"", "/output/max_bytes", "/log/request"} { // "": no tool file is there
		if !slices.ContainsFunc(checked.Faults, func(f faultJSON) bool { return f.Pointer != nil && *f.Pointer == pointer }) {
			t.Errorf("found %+v; expected the pointer %q", checked.Faults, pointer)
		}
	}
	run(2, "expected text or json", "config", "check", "--format", "xml")
}
