package engine_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/engine/demo"
)

// contents are the files below a folder, by their paths from there.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestUnpack(t *testing.T) {
	want := contents(t, "demo/project")
	if len(want) < 3 {
		t.Fatalf("the bundled project holds %d files", len(want))
	}
	dir := filepath.Join(t.TempDir(), "projects", "alpha")
	var racing sync.WaitGroup
	for range 8 {
		racing.Go(func() {
			if err := demo.UnpackProject(dir); err != nil {
				t.Error(err)
			}
		})
	}
	racing.Wait()
	got := contents(t, dir)
	for name, content := range want {
		if got[name] != content {
			t.Errorf("%s: got %q", name, got[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d files, want %d: something was left behind", len(got), len(want))
	}
	e := newEngine(t, engine.Options{})
	if text, got, err := read(t, e, []string{dir}, "notes.md", "[1,1]"); got != "" || text != "# Notes\n" {
		t.Errorf("notes.md: %q %v", text, err)
	}
}

func TestUnpackKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "README.md")
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", filepath.Join(dir, "notes.md")); err != nil {
		t.Fatal(err)
	}
	if err := demo.UnpackProject(dir); err != nil {
		t.Fatal(err)
	}
	// The second time nothing is written, so that a folder may be read only.
	long := time.Unix(1_000_000, 0)
	if err := os.Chtimes(dir, long, long); err != nil {
		t.Fatal(err)
	}
	if err := demo.UnpackProject(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || !info.ModTime().Equal(long) {
		t.Errorf("the folder was written to again: %v", err)
	}
	if content, _ := os.ReadFile(mine); string(content) != "mine" {
		t.Errorf("the file was overwritten with %q", content)
	}
	if _, err := os.Stat(filepath.Join(dir, "elsewhere")); err == nil {
		t.Error("a symbolic link was written through")
	}
	if err := demo.UnpackProject(filepath.Join(mine, "below")); err == nil || !strings.Contains(err.Error(), "README.md") {
		t.Errorf("below a file: got %v", err)
	}
}
