package leaks

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { Main(m) }

// TestFind finds what does not end, and not what was told to.
func TestFind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	end := make(chan struct{})
	go func() { <-end }()
	if find(0, before) == nil {
		t.Error("a goroutine that waits is not found")
	}
	close(end)
	None(t, before)
}
