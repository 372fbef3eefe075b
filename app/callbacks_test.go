package app

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
)

// TestCallbackKeys: the keys are made once, for their owner alone; those of before
// are used while the file cannot be read, and are read again when it can.
func TestCallbackKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "callback-keys")
	var log bytes.Buffer
	now := time.Now()
	b := &Callbacks{logger: slog.New(slog.NewTextHandler(&log, nil)), now: func() time.Time { return now }, ownFile: file}
	if b.verify("x") != "" || exists(file) {
		t.Error("a key was made for who asks with a token")
	}
	if _, err := b.address("call_1", now.Add(time.Hour)); err == nil {
		t.Error("there is an address where nothing listens")
	}
	b.listening("127.0.0.1:8080")
	token := func(when string) string {
		t.Helper()
		at, err := b.address("call_1", now.Add(time.Hour))
		rest, ok := strings.CutPrefix(at, "http://127.0.0.1:8080/v1/callbacks/")
		if err != nil || !ok || b.verify(rest) != "call_1" {
			t.Errorf("%s: %q, %v", when, at, err)
		}
		return rest
	}
	first := token("at first")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range []string{"", "hunter2\n", string(content[:len(content)/2])} {
		if err := os.WriteFile(file, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		now = now.Add(2 * KeysReadInterval)
		if token("while it cannot be read"); b.verify(first) != "call_1" {
			t.Error("what was signed before is not believed")
		}
	}
	if output := log.String(); strings.Contains(output, "hunter2") || strings.Count(output, "could not be read") > 3 {
		t.Errorf("the log: %s", output)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * KeysReadInterval)
	keys, _, err := RotateCallbackKeys(file, now, 0, 0)
	if err != nil || keys.Len() != 1 {
		t.Fatalf("%d keys, %v", keys.Len(), err)
	}
	now = now.Add(2 * KeysReadInterval)
	if token("with another key"); b.verify(first) != "" {
		t.Error("what was signed by a key that has gone is believed")
	}

	// A reload takes effect as a whole, or is refused.
	config := layout(t, map[string]string{
		"callgate.yaml":  "callbacks: {url: https://gateway.example/below, keys: \"file:keys\"}\n",
		"tools/one.yaml": "tools:\n  - {name: one, input_schema: {type: object}, run: {type: callback, url: \"http://127.0.0.1:9/\", tool: one}}\n",
	})
	c, err := configs.Load(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.follow(context.Background(), c, nil); err == nil {
		t.Error("keys that are not there are taken up")
	}
	token("after a reload that was refused")
	place := filepath.Join(filepath.Dir(config), "keys")
	if _, _, err := RotateCallbackKeys(place, now, 0, 0); err != nil {
		t.Fatal(err)
	}
	prepared, err := b.follow(context.Background(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	prepared.commit()
	at, err := b.address("call_2", now.Add(time.Hour))
	rest, ok := strings.CutPrefix(at, "https://gateway.example/below/v1/callbacks/")
	if err != nil || !ok || b.verify(rest) != "call_2" || b.verify(first) != "" {
		t.Errorf("%q, %v", at, err)
	}
}

// layout writes the files of a configuration, whose last line it adds, and returns the
// main one. It allows everything that the files do not forbid.
func layout(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{
		"policy.csv":      "p, Analyst, acme/alpha, *, , allow\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst]}}}}\n",
		"limits.yaml":     "{}\n",
	}
	maps.Copy(all, files)
	for name, text := range all {
		if name == "callgate.yaml" {
			text += "data_dir: " + filepath.Join(dir, "data") + "\n"
		}
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text+"# end\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "callgate.yaml")
}
