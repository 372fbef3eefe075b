package reload

import (
	"strings"
	"testing"
	"time"
)

// sharedMain is a main file whose limits are counted in Redis; ownMain is the same
// with limits of its own.
const (
	ownMain    = "principals: principals.yaml\nregistry: {files: [tools/*.yaml, tools/*.json]}\n# end\n"
	sharedMain = "redis: {url: \"env:REDIS_URL\"}\n" + ownMain
)

// TestReplicasOfARunningGateway: the key redis waits for a restart, so a gateway that
// counts in Redis still needs replicas when the file no longer has either.
func TestReplicasOfARunningGateway(t *testing.T) {
	slow(t, map[string]string{"callgate.yaml": sharedMain}, func(t *testing.T, h *servedFiles) {
		h.start()
		h.save("limits.yaml", "default: {rate: 1/s}\n# end\n")
		h.save("callgate.yaml", ownMain)
		time.Sleep(bound)
		h.expect("failed")
		if e := h.last(); !strings.Contains(e.Faults.Error(), "found no replicas") {
			t.Errorf("found %v", e.Faults)
		}
		if c := h.current.Load(); c.Redis == nil || c.Limits.Replicas != 2 {
			t.Errorf("found %d replicas on %+v; expected what was served before", c.Limits.Replicas, c.Redis)
		}
		h.save("limits.yaml", "replicas: 4\n# end\n")
		time.Sleep(bound)
		h.expect("failed reloaded recovered restart")
		if c := h.current.Load(); c.Redis == nil || c.Limits.Replicas != 4 {
			t.Errorf("found %d replicas on %+v; expected 4, on the Redis of the start", c.Limits.Replicas, c.Redis)
		}
	})
}
