package reload

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/internal/testkit/configtest"
)

// TestRestartOnlyKeys changes every key that waits for a restart.
func TestRestartOnlyKeys(t *testing.T) {
	main := func(lines ...string) string {
		return "principals: principals.yaml\nregistry: {files: [tools/*.yaml, tools/*.json]}\n" + strings.Join(lines, "\n") + "\n# end\n"
	}
	slow(t, map[string]string{"callgate.yaml": main()}, func(t *testing.T, h *servedFiles) {
		first := h.current.Load()
		h.start()
		h.save("callgate.yaml", main("server: {listen: 127.0.0.1:1}", "data_dir: elsewhere", "audit: {record: completion}", "output: {max_depth: 9}"))
		time.Sleep(bound)
		h.expect("reloaded restart")
		keys := []string{"server", "data_dir", "audit"}
		if e := h.last(); !slices.Equal(e.Keys, keys) {
			t.Errorf("found the keys %v; expected %v", e.Keys, keys)
		}
		c := h.current.Load()
		if !reflect.DeepEqual(c.Server, first.Server) || c.DataDir != first.DataDir || c.Record != first.Record {
			t.Errorf("the settings %+v are served", c.Settings)
		}
		if c.Output.MaxDepth != 9 || c.Digest == first.Digest || h.State().Digest != c.Digest {
			t.Errorf("the rest is not served: %+v", c.Settings)
		}
		if s := h.State(); !slices.Equal(s.RestartKeys, keys) || s.Faults != nil {
			t.Errorf("found the state %+v", s)
		}

		h.save("limits.yaml", "replicas: 4\n# end\n")
		time.Sleep(bound)
		h.expect("reloaded restart reloaded") // they wait still, as was said
		h.save("callgate.yaml", main("server: {listen: 127.0.0.1:2}"))
		time.Sleep(bound)
		h.expect("reloaded restart reloaded reloaded restart")
		if e := h.last(); !slices.Equal(e.Keys, []string{"server"}) {
			t.Errorf("found the keys %v", e.Keys)
		}
		h.save("callgate.yaml", main())
		time.Sleep(bound)
		h.expect("reloaded restart reloaded reloaded restart reloaded")
		if s := h.State(); len(s.RestartKeys) > 0 {
			t.Errorf("found %v waiting after all keys are as they were", s.RestartKeys)
		}
	})
}

// TestKeep changes each key that keep knows.
func TestKeep(t *testing.T) {
	first := defaultSettings(t)
	for key, change := range map[string]func(*configs.Settings){
		"server":    func(s *configs.Settings) { s.Server.AdminListen = "127.0.0.1:1" },
		"auth.mode": func(s *configs.Settings) { s.Auth.Mode = "jwt" },
		"data_dir":  func(s *configs.Settings) { s.DataDir = "x" },
		"audit": func(s *configs.Settings) {
			s.Audit = configs.Audit{Record: "arguments", SignKey: secret.Parse("file:audit.key"), RotateBytes: 1 << 20, Preallocate: true}
		},
		"store":               func(s *configs.Settings) { s.Store.Replicas = 3 },
		"redis":               func(s *configs.Settings) { s.Redis = &configs.Redis{Prefix: "x:"} },
		"threads.idle":        func(s *configs.Settings) { s.Threads.Idle++ },
		"threads.keep_labels": func(s *configs.Settings) { s.Threads.KeepLabels++ },
	} {
		s := defaultSettings(t)
		change(&s)
		s.Auth.AllowAnyListener, s.PolicyFile = true, "other.csv"
		if waiting := keepRestartOnly(&s, first); !slices.Equal(waiting, []string{key}) {
			t.Errorf("found %v waiting; expected %s", waiting, key)
		}
		if !reflect.DeepEqual(s.Server, first.Server) || s.Auth.Mode != first.Auth.Mode || s.DataDir != first.DataDir || !reflect.DeepEqual(s.Audit, first.Audit) || s.Redis != first.Redis || s.Store != first.Store || !reflect.DeepEqual(s.Threads, first.Threads) {
			t.Errorf("%s: its new value is kept: %+v", key, s)
		}
		if !s.Auth.AllowAnyListener || s.PolicyFile != "other.csv" {
			t.Errorf("%s: what reloads was given its old value: %+v", key, s)
		}
	}
}

// TestKeepListener closes, in the file, a listener that is open to everybody
// until the restart: what is served must not claim that it may not be.
func TestKeepListener(t *testing.T) {
	const open = "server: {listen: 0.0.0.0:1}\nauth: {mode: none, allow_any_listener: true}"
	closed := configtest.Base(t)["callgate.yaml"].Data
	slow(t, map[string]string{"callgate.yaml": open + strings.TrimPrefix(closed, "server: {listen: 127.0.0.1:8080}")}, func(t *testing.T, h *servedFiles) {
		h.start()
		h.save("callgate.yaml", closed)
		time.Sleep(bound)
		h.expect("reloaded restart")
		if c := h.current.Load(); c.Server.Listen != "0.0.0.0:1" || !c.Auth.AllowAnyListener {
			t.Errorf("found the settings %+v", c.Settings)
		}
		if e := h.last(); !slices.Equal(e.Keys, []string{"server", "auth.allow_any_listener"}) {
			t.Errorf("found the keys %v", e.Keys)
		}
	})
}

// defaultSettings are those of the embedded default.
func defaultSettings(t *testing.T) configs.Settings {
	t.Helper()
	c, err := configs.Default("")
	if err != nil {
		t.Fatal(err)
	}
	return c.Settings
}
