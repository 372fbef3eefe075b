package store_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/callgate/callgate/internal/testkit/leaks"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store/boltstore"
)

// A store that is closed leaves nothing running.
func TestNothingIsLeftRunning(t *testing.T) {
	s := redistest.Start(t)
	before := goleak.IgnoreCurrent()
	for range 3 {
		f, err := boltstore.Open(t.TempDir(), boltstore.Options{Wait: patient})
		must(t, err)
		ended(t, f, newCall("1", "k"))
		must(t, f.Close())
		g := join(t, at(s.Address()), testHooks{})
		ended(t, g, newCall("1", "k"))
		w, err := g.Watch("1")
		must(t, err)
		must(t, g.Close())
		w.Stop()
	}
	leaks.None(t, before)
}
