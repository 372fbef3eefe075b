package configs

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

// TestSN64ReplicasAreStated: where limits are counted in Redis and each gateway goes
// on alone without it, the limits file says how many gateways there are. A default of
// one would let every gateway grant the whole limit.
func TestSN64ReplicasAreStated(t *testing.T) {
	const fault = "found no replicas"
	for _, c := range []struct {
		name, main, limits, want string
	}{
		{"neither key", sharedMain, "default: {rate: 5/s}\n", "limits.yaml:1:1: " + fault},
		{"an empty file", sharedMain, "{}\n", "limits.yaml:1:1: " + fault},
		{"local alone", sharedMain, "default: {rate: 5/s}\non_store_loss: local\n", "limits.yaml:2:1: " + fault},
		{"with the store", strings.Replace(sharedMain, "# end", "store: {kind: redis, replicas: 2}\n# end", 1), "{}\n", "limits.yaml:1:1: " + fault},
		{"one, as stated", sharedMain, "replicas: 1\n", ""},
		{"several", sharedMain, "on_store_loss: local\nreplicas: 3\n", ""},
		{"refuse", sharedMain, "on_store_loss: refuse\n", ""},
		{"no redis", ownMain, "default: {rate: 5/s}\n", ""},
	} {
		_, err := Load(write(t, t.TempDir(), with(t, map[string]string{"callgate.yaml": c.main, "limits.yaml": c.limits + "# end\n"})))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: found %v; expected %q", c.name, err, c.want)
		}
	}
}

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
