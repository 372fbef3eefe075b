package configs

import "reflect"

// keep gives the keys that do not reload the values that they have in from, and
// names, in the words of the file, those that it changed: they wait for a
// restart.
func (s *Settings) keep(from Settings) (waiting []string) {
	hold(&waiting, "server", &s.Server, from.Server)
	hold(&waiting, "auth.mode", &s.Auth.Mode, from.Auth.Mode)
	hold(&waiting, "data_dir", &s.DataDir, from.DataDir)
	hold(&waiting, "audit", &s.Audit, from.Audit)
	hold(&waiting, "store", &s.Store, from.Store)
	hold(&waiting, "redis", &s.Redis, from.Redis)
	// The new file allows the listener that it names. Where it is the old one
	// that goes on listening, the leave for that one goes on with it.
	if s.Auth.Mode == "none" && !loopback(s.Server.Listen) {
		hold(&waiting, "auth.allow_any_listener", &s.Auth.AllowAnyListener, from.Auth.AllowAnyListener)
	}
	return waiting
}

func hold[T any](waiting *[]string, key string, now *T, was T) {
	if !reflect.DeepEqual(*now, was) {
		*now, *waiting = was, append(*waiting, key)
	}
}
