package redislimit_test

import (
	"testing"

	"github.com/callgate/callgate/internal/redistest"
	"github.com/callgate/callgate/ratelimit/internal/limittest"
)

func TestRedis(t *testing.T) {
	backends := limittest.Backends{"redis": redisBackend}
	if redistest.Installed() {
		backends["cluster"] = clusterBackend
	}
	backends.Run(t)
}
