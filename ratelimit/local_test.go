package ratelimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/internal/limittest"
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
