package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
)

// signing writes a configuration that has its log in dir, and its key in place.
func signing(t *testing.T, dir, place string) string {
	t.Helper()
	example, err := filepath.Abs("../../configs")
	if err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(t.TempDir(), "callgate.yaml")
	text := fmt.Sprintf("data_dir: %q\naudit: {sign_key: %q, rotate_bytes: 1048576}\nregistry: {files: [%q]}\npolicy: %q\nworkspaces: %q\nlimits: %q\n# end\n", dir, place,
		example+"/tools/*.yaml", example+"/policy.csv", example+"/workspaces.yaml", example+"/limits.yaml")
	if err := os.WriteFile(main, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return main
}

// signedLog writes n records as a gateway does whose configuration names a key,
// and returns the log's file.
func signedLog(t *testing.T, dir, key string, n int) string {
	t.Helper()
	c, err := configs.Load(signing(t, dir, "file:"+key))
	if err != nil {
		t.Fatal(err)
	}
	log, err := app.OpenAuditLog(c, nil, inTests)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		r := audit.Record{Time: time.Now(), Event: audit.Decision, Mode: audit.Call, CallID: fmt.Sprint(dir, i), Verdict: audit.Text}
		if err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "audit.jsonl")
}

// newKey makes a key with the command, and returns both files.
func newKey(t *testing.T) (private, public string) {
	t.Helper()
	dir := t.TempDir()
	private, public = filepath.Join(dir, "audit.key"), filepath.Join(dir, "audit.pub")
	code, stdout, stderr := command(t, nil, "audit", "key", private)
	if code != exitAccepted || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if info, err := os.Stat(private); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode: %v, %v", info, err)
	}
	if err := os.WriteFile(public, []byte(stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	return private, public
}

func TestVerifyReplicasBySignedHeads(t *testing.T) {
	private, public := newKey(t)
	root := t.TempDir()
	first := signedLog(t, filepath.Join(root, "gate-0"), private, 3)
	second := signedLog(t, filepath.Join(root, "gate-1"), private, 2)
	code, stdout, _ := command(t, nil, "audit", "verify", "--public-key", public, first, second)
	if code != exitAccepted || strings.Count(stdout, ": the chain holds: ") != 2 || !strings.Contains(stdout, "up to seq 3; no head covers the 0 records behind it") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	whole, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	if err := os.WriteFile(first, []byte(strings.Join(lines[:2], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, _ := command(t, nil, "audit", "verify", first); code != exitAccepted || !strings.HasPrefix(stdout, "the chain holds: 2 records") {
		t.Errorf("without the key, exit code %d: %s", code, stdout)
	}
	code, stdout, _ = command(t, nil, "audit", "verify", "--public-key", public, first, second)
	want := fmt.Sprintf("gate-0: broken: %s:3: seq 3: the line is missing: heads.jsonl:2 signs seq 3\n", first)
	if code != exitRefused || !strings.Contains(stdout, want) || strings.Count(stdout, ": the chain holds: ") != 1 {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

func TestVerifyWithTheWrongKeys(t *testing.T) {
	private, public := newKey(t)
	other, otherPublic := newKey(t)
	log := signedLog(t, filepath.Join(t.TempDir(), "gate"), private, 1)
	for name, c := range map[string]struct {
		args []string
		code int
	}{
		"the key":                     {[]string{"--public-key", public}, exitAccepted},
		"a copy of heads":             {[]string{"--public-key", public, "--heads", filepath.Join(filepath.Dir(log), "heads.jsonl")}, exitAccepted},
		"another's key":               {[]string{"--public-key", otherPublic}, exitRefused},
		"the private key":             {[]string{"--public-key", other}, exitUsage},
		"no file":                     {[]string{"--public-key", public + "x"}, exitUsage},
		"a device":                    {[]string{"--public-key", "/dev/zero"}, exitUsage},
		"heads without a key":         {[]string{"--heads", public}, exitUsage},
		"partial without a key":       {[]string{"--partial"}, exitUsage},
		"an empty name":               {[]string{"--heads", ""}, exitUsage},
		"heads that are another file": {[]string{"--public-key", public, "--heads", public}, exitRefused},
	} {
		if code, stdout, stderr := command(t, nil, append(append([]string{"audit", "verify"}, c.args...), log)...); code != c.code {
			t.Errorf("%s: exit code %d, want %d: %s%s", name, code, c.code, stdout, stderr)
		}
	}
}

func TestAKeyIsNeverWrittenOver(t *testing.T) {
	private, _ := newKey(t)
	before, err := os.ReadFile(private)
	if err != nil {
		t.Fatal(err)
	}
	if code, stdout, _ := command(t, nil, "audit", "key", private); code != exitUsage || stdout != "" {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	if after, err := os.ReadFile(private); err != nil || string(after) != string(before) {
		t.Errorf("the key was changed (%v)", err)
	}
}

func TestALogIsNotOpenedWithoutItsKey(t *testing.T) {
	dir := t.TempDir()
	wrong := filepath.Join(dir, "wrong.key")
	if err := os.WriteFile(wrong, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CALLGATE_TEST_KEY", "hunter2")
	for _, place := range []string{"file:" + wrong, "file:" + wrong + "x", "env:CALLGATE_TEST_KEY", "env:CALLGATE_TEST_NO_KEY"} {
		c, err := configs.Load(signing(t, filepath.Join(dir, "data"), place))
		if err != nil {
			t.Fatal(err)
		}
		log, err := app.OpenAuditLog(c, nil, inTests)
		if err == nil {
			log.Close()
			t.Fatalf("%s: it opened", place)
		}
		if !strings.Contains(err.Error(), "audit.sign_key: ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", place, err)
		}
	}
}
