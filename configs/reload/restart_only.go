package reload

import (
	"reflect"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/netx"
)

// keepRestartOnly gives the keys that do not reload the values that they have in from, and
// returns the keys that it changed, as the file names them: they wait for a restart.
func keepRestartOnly(s *configs.Settings, from configs.Settings) []string {
	var waiting []string
	keepOld(&waiting, "server", &s.Server, from.Server)
	keepOld(&waiting, "auth.mode", &s.Auth.Mode, from.Auth.Mode)
	keepOld(&waiting, "data_dir", &s.DataDir, from.DataDir)
	keepOld(&waiting, "audit", &s.Audit, from.Audit)
	keepOld(&waiting, "telemetry.metrics", &s.CallLabels, from.CallLabels)
	keepOld(&waiting, "store", &s.Store, from.Store)
	keepOld(&waiting, "redis", &s.Redis, from.Redis)
	// While the old listener stays in use, its allow_any_listener setting stays too.
	if s.Auth.Mode == "none" && !netx.IsLoopbackListener(s.Server.Listen) {
		keepOld(&waiting, "auth.allow_any_listener", &s.Auth.AllowAnyListener, from.Auth.AllowAnyListener)
	}
	return waiting
}

func keepOld[T any](waiting *[]string, key string, now *T, was T) {
	if !reflect.DeepEqual(*now, was) {
		*now, *waiting = was, append(*waiting, key)
	}
}
