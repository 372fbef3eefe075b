package configs

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/internal/testkit/configtest"
)

// certificate is one in PEM, of the cases.
func certificate(t *testing.T) string {
	t.Helper()
	for _, f := range configtest.Archive(t, "faulty", "redis-url-ca-without-tls.txtar").Files {
		if f.Name == "ca.pem" {
			return string(f.Data)
		}
	}
	t.Fatal("the case has no certificate")
	return ""
}

// TestRedisForms reads every way to say where Redis is.
func TestRedisForms(t *testing.T) {
	pem := certificate(t)
	for text, want := range map[string]Redis{
		`redis: {url: "redis://127.0.0.1:6379"}`:            {URL: RedisURL{Plain: "redis://127.0.0.1:6379"}},
		`redis: {url: "redis://[::1]:6379/3"}`:              {URL: RedisURL{Plain: "redis://[::1]:6379/3"}},
		`redis: {url: "rediss://redis", prefix: "team-a:"}`: {URL: RedisURL{Plain: "rediss://redis"}, Prefix: "team-a:"},
		`redis: {url: "env:REDIS_URL"}`:                     {URL: RedisURL{Secret: secret.Parse("env:REDIS_URL")}},
		`redis: {url: "file:/run/secrets/url"}`:             {URL: RedisURL{Secret: secret.Parse("file:/run/secrets/url")}},
		`redis: {url: "env:REDIS_URL", ca_file: ca.pem}`:    {URL: RedisURL{Secret: secret.Parse("env:REDIS_URL")}, CAFile: "ca.pem", CA: pem},
		`redis: {cluster: {addresses: ["a:1", "b:2"]}, tls: true, ca_file: ca.pem}`: {
			Cluster: Cluster{Addresses: []string{"a:1", "b:2"}}, TLS: true, CAFile: "ca.pem", CA: pem,
		},
		`redis: {sentinel: {master: main, addresses: ["a:1"], password: "env:S"}, username: gate, password: "env:P"}`: {
			Sentinel: Sentinel{Master: "main", Addresses: []string{"a:1"}, Password: secret.Parse("env:S")},
			Username: "gate", Password: secret.Parse("env:P"),
		},
	} {
		if want.Prefix == "" {
			want.Prefix = "callgate:"
		}
		c := loads(t, configtest.With(t, map[string]string{"callgate.yaml": text + "\n# end\n", "ca.pem": pem}))
		if !reflect.DeepEqual(c.Redis, &want) {
			t.Errorf("%s: found %+v; expected %+v", text, c.Redis, want)
		}
	}
	if c := loads(t, configtest.Base(t)); c.Redis != nil {
		t.Errorf("nothing says so, and found %+v", c.Redis)
	}
}

func TestRedisURL(t *testing.T) {
	if found, err := (RedisURL{Plain: "redis://a"}).Read(); found != "redis://a" || err != nil {
		t.Errorf("found %q, %v", found, err)
	}
	t.Setenv("CALLGATE_TEST_URL", "redis://:hunter2@a")
	u := RedisURL{Secret: secret.Parse("env:CALLGATE_TEST_URL")}
	if found, err := u.Read(); found != "redis://:hunter2@a" || err != nil || !u.IsSet() {
		t.Errorf("found %q, %v", found, err)
	}
	if (RedisURL{}).IsSet() {
		t.Error("none is one")
	}
}

// TestRedisPrefixes holds what keys may begin with.
func TestRedisPrefixes(t *testing.T) {
	for prefix, fine := range map[string]bool{
		"a": true, "callgate:": true, strings.Repeat("x", 64): true, strings.Repeat("x", 65): false,
		"a b": false, "a\\tb": false, "ä": false, "{a}": false, "a}": false, "": false,
	} {
		_, err := Load(configtest.Write(t, t.TempDir(), configtest.With(t, map[string]string{
			"callgate.yaml": "redis: {url: \"env:U\", prefix: \"" + prefix + "\"}\n# end\n",
		})))
		if (err == nil) != fine {
			t.Errorf("%q: found %v", prefix, err)
		}
	}
}

// TestCertificatesAreOfTheConfiguration: what is in a file of certificates counts
// for the digest, and the file is watched.
func TestCertificatesAreOfTheConfiguration(t *testing.T) {
	files := configtest.With(t, map[string]string{"callgate.yaml": "redis: {url: \"rediss://a\", ca_file: certs/ca.pem}\n# end\n", "certs/ca.pem": certificate(t)})
	dir := t.TempDir()
	main := configtest.Write(t, dir, files)
	first, err := Load(main)
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(dir, "certs", "ca.pem")
	if err := os.WriteFile(ca, []byte(first.Redis.CA+first.Redis.CA), 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := Load(main)
	if err != nil {
		t.Fatal(err)
	}
	if first.Digest == second.Digest {
		t.Error("other certificates have the same digest")
	}
	if found := strings.Join(second.Files, " "); !strings.Contains(found, ca) {
		t.Errorf("found the files %s; expected %s among them", found, ca)
	}
}

// TestRedisFaultsShowNoSecret: whatever form a URL has, and wherever it stands, it
// is not repeated.
func TestRedisFaultsShowNoSecret(t *testing.T) {
	for _, url := range []string{
		"redis://:hunter2@a", "redis://hunter2@a:1", "hunter2", "redis://a:1/hunter2", "redis://a?password=hunter2", "redis://a#hunter2", "http://a/hunter2", "unix:///hunter2", "environment:hunter2", "redis:/hunter2",
	} {
		_, err := Load(configtest.Write(t, t.TempDir(), configtest.With(t, map[string]string{"callgate.yaml": "redis: {url: \"" + url + "\"}\n# end\n"})))
		if err == nil || configtest.Secrets.MatchString(err.Error()) {
			t.Errorf("%s: found %v; expected a fault that does not repeat it", url, err)
		}
	}
	for _, redis := range []string{
		"redis: redis://:hunter2@a:1", `redis: {cluster: {addresses: ["redis://:hunter2@a:1"]}}`, `redis: {cluster: {addresses: ["hunter2@a:1"]}}`,
		`redis: {sentinel: {master: m, addresses: ["me:hunter2@a:1"]}}`, `redis: {sentinel: "redis://:hunter2@a:1"}`, `redis: {cluster: {addresses: "redis://:hunter2@a:1"}}`,
	} {
		_, err := Load(configtest.Write(t, t.TempDir(), configtest.With(t, map[string]string{"callgate.yaml": redis + "\n# end\n"})))
		if err == nil || configtest.Secrets.MatchString(err.Error()) {
			t.Errorf("%s: found %v; expected a fault that does not repeat it", redis, err)
		}
	}
}
