package configs

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/configtest"
)

// sharedMain is a main file whose limits are counted in Redis; ownMain is the same
// with limits of its own.
const (
	ownMain    = "principals: principals.yaml\nregistry: {files: [tools/*.yaml, tools/*.json]}\n# end\n"
	sharedMain = "redis: {url: \"env:REDIS_URL\"}\n" + ownMain
)

// TestSN64ReplicasAreStated: where limits are counted in Redis and each gateway counts
// alone without it, the limits file says how many gateways there are. A default of
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
		_, err := Load(configtest.Write(t, t.TempDir(), configtest.With(t, map[string]string{"callgate.yaml": c.main, "limits.yaml": c.limits + "# end\n"})))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: found %v; expected %q", c.name, err, c.want)
		}
	}
}
