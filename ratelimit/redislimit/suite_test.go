package redislimit_test

import (
	"testing"

	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/internal/testkit/redistest"
)

func TestRedis(t *testing.T) {
	backends := limittest.Backends{"redis": redisBackend}
	if redistest.Installed() {
		backends["cluster"] = clusterBackend
	}
	backends.Run(t)
}
