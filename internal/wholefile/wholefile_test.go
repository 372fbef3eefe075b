package wholefile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	for _, content := range []string{"one", "two", ""} {
		if err := Replace(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != content {
			t.Errorf("found %q, %v; expected %q", got, err, content)
		}
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("found %v, %v; expected a file of the owner", info.Mode(), err)
	}
}

func TestReplaceFails(t *testing.T) {
	dir := t.TempDir()
	if err := Replace(filepath.Join(dir, "absent", "a"), nil); err == nil {
		t.Error("a file was written in a folder that does not exist")
	}
	// A folder stands where the file should: nothing else is left behind.
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(filepath.Join(dir, "a"), []byte("x")); err == nil {
		t.Error("a folder was replaced")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("found %v, %v; expected the folder alone", left, err)
	}
}
