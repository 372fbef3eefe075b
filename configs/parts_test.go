package configs

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/configtest"
)

// TestParts: a program that does not have a part refuses a configuration that asks for it, at the place.
func TestParts(t *testing.T) {
	const upstreams = "upstreams: upstreams.yaml\n" + ownMain
	const model = "upstreams:\n  - {name: p, base_url: \"https://p.example/v1\", models: [m]}\n  - {name: q, base_url: \"https://q.example/v1\", "
	for _, c := range []struct {
		name, main, upstreams string
		part                  Part
		want                  string // empty: it does not ask
	}{
		{"an upstream", upstreams, model + "models: [n],\n     speaks: [chat, responses]}\n", ResponsesFace, "upstreams.yaml:4:6: found responses; expected no responses"},
		{"a model", upstreams, model + "models: [{id: n, speaks: [responses]}]}\n", ResponsesFace, "upstreams.yaml:3:66: found responses"},
		{"limits on Redis", sharedMain, "", RedisLimiter, "callgate.yaml:1:1: found redis; expected no redis"},
		{"limits of its own", ownMain, "", RedisLimiter, ""},
		{"other protocols", upstreams, model + "models: [n], speaks: [chat, messages]}\n", ResponsesFace, ""},
	} {
		files := map[string]string{"callgate.yaml": c.main}
		if c.upstreams != "" {
			files["upstreams.yaml"] = c.upstreams + "# end\n"
		}
		loaded, err := Load(configtest.Write(t, t.TempDir(), configtest.With(t, files)))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if err := loaded.CheckParts(func(Part) bool { return true }); err != nil {
			t.Errorf("%s, with every part: found %v", c.name, err)
		}
		err = loaded.CheckParts(func(p Part) bool { return p != c.part })
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasSuffix(err.Error(), "built without "+string(c.part))) {
			t.Errorf("%s: found %v; expected %q", c.name, err, c.want)
		}
	}
}
