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
