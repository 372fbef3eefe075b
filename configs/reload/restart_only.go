package reload

import (
	"reflect"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/netx"
)

// keepRestartOnly gives the keys that do not reload, which have the tag restart, the values that they
// have in from, and returns the keys that it changed, as the file names them: they wait for a restart.
func keepRestartOnly(s *configs.Settings, from configs.Settings) []string {
	waiting := keepOld(nil, "", reflect.ValueOf(s).Elem(), reflect.ValueOf(from))
	// While the old listener stays in use, its allow_any_listener setting stays too.
	if was := from.Auth.AllowAnyListener; s.Auth.Mode == configs.AuthNone && !netx.IsLoopbackListener(s.Server.Listen) &&
		s.Auth.AllowAnyListener != was {
		s.Auth.AllowAnyListener, waiting = was, append(waiting, "auth.allow_any_listener")
	}
	return waiting
}

func keepOld(waiting []string, section string, now, was reflect.Value) []string {
	for i := range now.NumField() {
		tag := now.Type().Field(i).Tag
		key := section + tag.Get("key")
		switch _, restart := tag.Lookup("restart"); {
		case tag.Get("key") == "":
		case !restart && now.Field(i).Kind() == reflect.Struct:
			waiting = keepOld(waiting, key+".", now.Field(i), was.Field(i))
		case restart && !reflect.DeepEqual(now.Field(i).Interface(), was.Field(i).Interface()):
			now.Field(i).Set(was.Field(i))
			waiting = append(waiting, key)
		}
	}
	return waiting
}
