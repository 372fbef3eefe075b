package configs

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/configtest"
)

// TestPublicURL: it is a URL that paths can be put behind, and its absence is said where
// clients need it.
func TestPublicURL(t *testing.T) {
	const tokens = "auth: {mode: jwt, jwt: {issuer: \"https://id.example\", audience: b}}\n"
	for _, c := range []struct{ text, warning string }{
		{tokens, ""},
		{tokens + "server: {listen: \"0.0.0.0:8080\"}", "are not told where to get a token"},
		{tokens + "server: {listen: \"0.0.0.0:8080\", public_url: \"https://gateway.example/x\"}", ""},
		{tokens + "server: {public_url: \"http://gateway.example\"}", "without TLS"},
		{tokens + "server: {public_url: \"http://localhost:8080\"}", ""},
	} {
		got := ""
		for _, w := range loads(t, configtest.With(t, map[string]string{"callgate.yaml": c.text + "\n# end\n"})).Warnings {
			if strings.Contains(w.Message, "token") || strings.Contains(w.Message, "TLS") {
				got += w.Message
			}
		}
		if (c.warning == "") != (got == "") || !strings.Contains(got, c.warning) {
			t.Errorf("%s: warned %q, want %q", c.text, got, c.warning)
		}
	}
	for _, url := range []string{"", "gateway.example", "/x", "ftp://a", "https://u:p@a", "https://a/", "https://a?x=1", "https://a#x", `https://a/\"x`, "https://a/b c"} {
		_, err := Load(configtest.Write(t, t.TempDir(), configtest.With(t, map[string]string{"callgate.yaml": "server: {public_url: \"" + url + "\"}\n# end\n"})))
		if err == nil || !strings.Contains(err.Error(), "callgate.yaml:1:") {
			t.Errorf("%q: %v", url, err)
		}
	}
}
