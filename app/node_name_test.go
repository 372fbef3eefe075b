package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNodeName(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, nodeFile)
	name, err := nodeName(dir)
	if err != nil || name == "" || strings.Contains(name, "/") {
		t.Fatalf("%q, %v", name, err)
	}
	if again, err := nodeName(dir); err != nil || again != name {
		t.Errorf("at the second start %q, %v; want %q", again, err, name)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if other, err := nodeName(t.TempDir()); err != nil || other == name {
		t.Errorf("of another folder %q, %v", other, err)
	}
	for content, fits := range map[string]bool{name: true, name + "\r\n": true, "": false, "\n": false, name[1:]: false, name + name: false, "a/b": false, strings.ToLower(name): false} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		switch got, err := nodeName(dir); {
		case fits && (err != nil || got != name):
			t.Errorf("of %q: %q, %v", content, got, err)
		case !fits && (err == nil || !strings.Contains(err.Error(), file+": found no name of a gateway")):
			t.Errorf("of %q: %q, %v", content, got, err)
		}
		if kept, err := os.ReadFile(file); err != nil || string(kept) != content {
			t.Errorf("%q was replaced by %q, %v", content, kept, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := nodeName(dir); err == nil || !strings.Contains(err.Error(), "expected a regular file") {
		t.Errorf("of a folder: %v", err)
	}
	if _, err := nodeName(filepath.Join(dir, "absent")); err == nil {
		t.Error("a name was kept in a folder that does not exist")
	}
}
