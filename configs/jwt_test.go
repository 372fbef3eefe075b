package configs

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/configtest"
)

// tokensOf reads auth.jwt.
func tokensOf(t *testing.T, keys string) JWT {
	t.Helper()
	return loads(t, configtest.With(t, map[string]string{"callgate.yaml": "auth: {mode: jwt, jwt: {" + keys + "}}\n# end\n"})).Auth.JWT
}

// TestTokensReachTheirOptions holds that each key is read into its own option.
func TestTokensReachTheirOptions(t *testing.T) {
	const least = `issuer: "https://id.example", audience: callgate`
	base := identity.TokenOptions{Issuer: "https://id.example", Audience: "callgate", ClockSkew: identity.DefaultClockSkew}
	for more, change := range map[string]func(*identity.TokenOptions){
		"":                                    func(*identity.TokenOptions) {},
		`jwks_url: "http://127.0.0.1:9/keys"`: func(o *identity.TokenOptions) { o.JWKSURL = "http://127.0.0.1:9/keys" },
		"jwks_file: /keys.json":               func(o *identity.TokenOptions) { o.JWKSFile = "/keys.json" },
		"algorithms: [ES384, EdDSA]":          func(o *identity.TokenOptions) { o.Algorithms = []string{"ES384", "EdDSA"} },
		"clock_skew: 0s":                      func(o *identity.TokenOptions) { o.ClockSkew = 0 },
		"clock_skew: 2m":                      func(o *identity.TokenOptions) { o.ClockSkew = 2 * time.Minute },
		"claims: {name: email}":               func(o *identity.TokenOptions) { o.Claims.Name = "email" },
		"claims: {agents: a, workspace: b, projects: c}": func(o *identity.TokenOptions) {
			o.Claims = identity.ClaimNames{Agents: "a", Workspace: "b", Projects: "c"}
		},
		"refresh: 1m":              func(o *identity.TokenOptions) { o.Refresh = time.Minute },
		"stale_if_error: 1h":       func(o *identity.TokenOptions) { o.StaleIfError = time.Hour },
		"timeout: 1s":              func(o *identity.TokenOptions) { o.Timeout = time.Second },
		"startup_timeout: 2s":      func(o *identity.TokenOptions) { o.StartupTimeout = 2 * time.Second },
		"start_without_keys: true": func(o *identity.TokenOptions) { o.StartWithoutKeys = true },
	} {
		want := base
		change(&want)
		keys := least
		if more != "" {
			keys += ", " + more
		}
		if found := tokensOf(t, keys); !reflect.DeepEqual(found.TokenOptions, want) {
			t.Errorf("%s: found %+v; expected %+v", more, found.TokenOptions, want)
		}
	}
}

// TestKeyFileStartsAtItsFile: a relative path is one beside the configuration.
func TestKeyFileStartsAtItsFile(t *testing.T) {
	dir := t.TempDir()
	c, err := Load(configtest.Write(t, dir, configtest.With(t, map[string]string{
		"callgate.yaml": "auth: {mode: jwt, jwt: {issuer: acme, audience: callgate, jwks_file: keys/set.json}}\n# end\n",
	})))
	if err != nil {
		t.Fatal(err)
	}
	if found, want := c.Auth.JWT.JWKSFile, filepath.Join(dir, "keys", "set.json"); found != want {
		t.Errorf("found %s; expected %s", found, want)
	}
}

// TestTokenFaultsTogether reports every key that is wrong, each at its own place.
func TestTokenFaultsTogether(t *testing.T) {
	_, err := Load(configtest.Write(t, t.TempDir(), configtest.With(t, map[string]string{
		"callgate.yaml": "auth:\n  mode: jwt\n  jwt:\n    issuer: ftp://a\n    claims:\n      agents: aud\n    refresh: 1s\n# end\n",
	})))
	var faults document.Faults
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	var lines []int
	for _, f := range faults {
		lines = append(lines, f.Line)
	}
	// The audience is missing, which is a fault of the mapping: its first key.
	if want := []int{4, 4, 6, 7}; !reflect.DeepEqual(lines, want) {
		t.Errorf("found faults at the lines %v; expected %v\n%v", lines, want, err)
	}
}

// TestModesNeedTheirKeys: each mode says what it cannot be without.
func TestModesNeedTheirKeys(t *testing.T) {
	for text, fine := range map[string]bool{
		"auth: {mode: jwt}":  false,
		"auth: {mode: keys}": false,
		"auth: {mode: jwt, jwt: {issuer: \"https://a\", audience: b}}":                                 true,
		"auth: {mode: jwt, jwt: {issuer: \"https://a\", audience: b}}\nserver: {listen: 0.0.0.0:8080}": true,
		"auth: {jwt: {issuer: \"https://a\", audience: b}}\nserver: {listen: 0.0.0.0:8080}":            false,
	} {
		_, err := Load(configtest.Write(t, t.TempDir(), configtest.With(t, map[string]string{"callgate.yaml": text + "\n# end\n"})))
		if (err == nil) != fine {
			t.Errorf("%s: found %v", text, err)
		}
	}
}

func TestCertificatesOfTheIssuer(t *testing.T) {
	dir := t.TempDir()
	main := configtest.Write(t, dir, configtest.With(t, map[string]string{
		"callgate.yaml": "auth: {mode: jwt, jwt: {issuer: \"https://a\", audience: b, ca_file: ca.pem}}\n# end\n", "ca.pem": certificate(t),
	}))
	c, err := Load(main)
	if err != nil {
		t.Fatal(err)
	}
	if c.Auth.JWT.CA != certificate(t) {
		t.Errorf("found %q", c.Auth.JWT.CA)
	}
	if err := os.Remove(filepath.Join(dir, "ca.pem")); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(main); err == nil {
		t.Error("without its certificates it loads")
	}
}
