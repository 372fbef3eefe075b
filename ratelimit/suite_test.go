package ratelimit_test

import (
	"testing"
	"time"

	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/internal/limittest"
)

func TestLocal(t *testing.T) {
	limittest.Backends{
		"local": func(_ testing.TB, clock func() time.Time) ratelimit.Limiter { return ratelimit.NewLocal(clock) },
	}.Run(t)
}
