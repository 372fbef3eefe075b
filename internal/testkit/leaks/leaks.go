// Package leaks fails tests that leave goroutines behind. It waits as long as a machine
// under load needs to end a goroutine that was stopped; a goroutine that remains was never
// stopped.
package leaks

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is far longer than a goroutine takes to end.
const patience = 30 * time.Second

// Main runs the tests of a package, and fails it where goroutines are left. It is for
// TestMain, and does not return.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := find(patience); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// None fails a test where goroutines are left but those that the options leave out.
func None(t testing.TB, options ...goleak.Option) {
	t.Helper()
	if err := find(patience, options...); err != nil {
		t.Error(err)
	}
}

func find(within time.Duration, options ...goleak.Option) error {
	for end := time.Now().Add(within); ; {
		err := goleak.Find(options...)
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
