package ratelimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/ratelimit"
)

// A clock that panics must not leave the limiter locked.
func TestAPanickingClockLocksNothing(t *testing.T) {
	broken := false
	l := ratelimit.NewLocal(func() time.Time {
		if broken {
			panic("clock")
		}
		return limittest.Epoch
	})
	limits := limittest.OnlyDefault(limittest.Budget("1/h", 1))
	broken = true
	func() {
		defer func() {
			if recover() == nil {
				t.Fatal("the fault was not injected")
			}
		}()
		_, _ = l.Take(context.Background(), limits, limittest.Alpha)
	}()
	broken = false
	limittest.Admitted(t, l, limits, limittest.Alpha)
}
