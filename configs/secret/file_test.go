//go:build unix

package secret

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// touchedFile is a file that others write while it is read.
type touchedFile struct {
	*os.File
	t      *testing.T
	change func()
	read   int
}

// Read gives the first bytes of the file, and has it written before the others.
func (f *touchedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p[:min(len(p), 4)])
	if f.read += n; f.change != nil && f.read == n {
		f.change()
	}
	return n, err
}

// TestFileIsWrittenWhileItIsRead: no secret is made of one half of the old content and one half of
// the new. A file that is replaced by another is read to its end.
func TestFileIsWrittenWhileItIsRead(t *testing.T) {
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change func(path string)
		want   string
	}{
		"unchanged": {func(string) {}, "SECRET-OLD"},
		"written":   {func(path string) { write(path, "secret-new-and-longer") }, ""},
		"cut":       {func(path string) { write(path, "") }, ""},
		"replaced": {func(path string) {
			write(path+".new", "secret-new")
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}, "SECRET-OLD"},
	} {
		path := filepath.Join(t.TempDir(), "key")
		write(path, "SECRET-OLD")
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := readOpen(&touchedFile{File: f, t: t, change: func() { c.change(path) }})
		if got != c.want || (err == nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), "being written") {
			t.Errorf("%s: found %q, %v; expected %q", name, got, err, c.want)
		}
		f.Close()
	}
}

// TestFilesThatAreNoSecrets: none is waited for, none is read beyond the length of a secret, and no
// error shows any of it.
func TestFilesThatAreNoSecrets(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(at("folder"), 0o700))
	must(syscall.Mkfifo(at("pipe"), 0o600))
	must(os.Symlink("loop", at("loop")))
	must(os.WriteFile(at("empty"), []byte("\r\n\n"), 0o600))
	must(os.WriteFile(at("huge"), []byte("SECRET"), 0o600))
	must(os.Truncate(at("huge"), 1<<30))
	for name, want := range map[string]string{
		"folder": "found a directory", "pipe": "found a named pipe", "loop": "cannot be read", "empty": "found nothing",
		"huge": "found more than 65536 bytes", "absent": "found no such file",
	} {
		value, info, err := readSecretFile(at(name))
		if err == nil || value != "" || info != nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: found %q, %v; expected %q", name, value, err, want)
		}
	}
	f, err := os.Open(at("huge"))
	must(err)
	defer f.Close()
	counted := &touchedFile{File: f, t: t}
	if _, _, err := readOpen(counted); err == nil || counted.read > maxSecretBytes+1 {
		t.Errorf("%d bytes were read, %v", counted.read, err)
	}
	// It has become a pipe after it was looked at.
	pipe, err := os.OpenFile(at("pipe"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	must(err)
	defer pipe.Close()
	if _, _, err := readOpen(pipe); err == nil || !strings.Contains(err.Error(), "found a named pipe") {
		t.Errorf("a pipe was read: %v", err)
	}
}
