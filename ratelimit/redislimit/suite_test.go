package redislimit_test

import (
	"testing"

	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/internal/testkit/redistest"
)

func TestRedis(t *testing.T) {
	redistest.Require(t)
	limittest.Backends{"redis": redisBackend, "cluster": clusterBackend}.Run(t)
}
