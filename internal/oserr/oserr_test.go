package oserr

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReason(t *testing.T) {
	_, err := os.Open(filepath.Join(t.TempDir(), "absent"))
	if got := Reason(fmt.Errorf("the keys: %w", err)); !errors.Is(got, os.ErrNotExist) || strings.Contains(got.Error(), "absent") {
		t.Errorf("got %v", got)
	}
	if other := errors.New("other"); Reason(other) != other {
		t.Error("another error is changed")
	}
}

func TestFileKind(t *testing.T) {
	for mode, want := range map[os.FileMode]string{
		os.ModeDir: "a directory", os.ModeSymlink: "a symbolic link", os.ModeNamedPipe: "a named pipe", os.ModeSocket: "a socket",
		os.ModeDevice | os.ModeCharDevice: "a device", os.ModeIrregular: "a file of another kind",
	} {
		if got := FileKind(mode | 0o600); got != want {
			t.Errorf("%v: %s", mode, got)
		}
	}
}
