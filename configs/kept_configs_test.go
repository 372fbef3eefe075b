package configs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A configuration is kept by its digest, and loads again as it was when its files are others.
func TestKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), `a[1]*?\b`) // which patterns read otherwise
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "testdata", "vectors", "config"))); err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(dir, "callgate.yaml")
	c, err := Load(main)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is there
		if err := c.Keep(); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(filepath.Join(c.DataDir, KeptDir))
	if err != nil || len(files) != 1 || files[0].Name() != c.Digest+".json" {
		t.Fatalf("found %v, %v; expected one file, named by the digest", files, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "policy.csv"), []byte("# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, digest := range []string{c.Digest, c.Digest[:12]} {
		again, err := LoadKept(c.DataDir, digest)
		if err != nil {
			t.Fatal(err)
		}
		if again.Digest != c.Digest || len(again.Policy.Rows()) != len(c.Policy.Rows()) || again.DataDir != c.DataDir || len(again.Tools.Entries()) != len(c.Tools.Entries()) {
			t.Errorf("found %v; expected %v", again, c)
		}
	}
}

func TestKeptRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "testdata", "vectors", "config"))); err != nil {
		t.Fatal(err)
	}
	c, err := Load(filepath.Join(dir, "callgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Keep(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(c.DataDir, KeptDir, c.Digest+".json")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKept(c.DataDir, strings.Repeat("0", 64)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("found %v; expected none of that digest", err)
	}
	for _, digest := range []string{"", "abc", "../../../../etc/passwd", "*", strings.ToUpper(c.Digest)} {
		if _, err := LoadKept(c.DataDir, digest); err == nil {
			t.Errorf("%q was taken for a digest", digest)
		}
	}
	for name, change := range map[string]string{
		"altered": strings.Replace(string(whole), "allow", "denyy", 1),
		"cut":     string(whole[:len(whole)/2]),
		"empty":   "",
		"no file": `{"digest":"` + c.Digest + `","main":"x","files":[]}`,
	} {
		if err := os.WriteFile(file, []byte(change), 0o600); err != nil {
			t.Fatal(err)
		}
		if loaded, err := LoadKept(c.DataDir, c.Digest); err == nil || loaded != nil {
			t.Errorf("%s: it was loaded", name)
		}
	}
	other := filepath.Join(c.DataDir, KeptDir, c.Digest[:12]+strings.Repeat("0", 52)+".json")
	if err := os.WriteFile(other, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKept(c.DataDir, c.Digest[:12]); err == nil || !strings.Contains(err.Error(), "2 configurations") {
		t.Errorf("found %v; expected that the digest is not enough", err)
	}
	if _, err := LoadKept(c.DataDir, filepath.Base(other)[:64]); err == nil || !strings.Contains(err.Error(), "altered") {
		t.Errorf("found %v; expected that the name is not its digest", err)
	}
}

func TestBuiltInIsNotKept(t *testing.T) {
	dir := t.TempDir()
	c, err := Default(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Keep(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("found %v", left)
	}
}
