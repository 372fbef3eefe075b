package ratelimit_test

import (
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/ratelimit"
)

func TestLocal(t *testing.T) {
	limittest.Backends{
		"local": func(_ testing.TB, clock func() time.Time) ratelimit.Limiter { return ratelimit.NewLocal(clock) },
	}.Run(t)
}
