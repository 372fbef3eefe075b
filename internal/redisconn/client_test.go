package redisconn_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func newClient(t *testing.T, o redisconn.Options, s redisconn.Settings) redis.UniversalClient {
	t.Helper()
	c, err := o.NewClient(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// No client repeats a command or follows a redirection by itself, and every wait
// is bounded.
func TestClientSettings(t *testing.T) {
	s := redisconn.Settings{Timeout: time.Second, ReadTimeout: 2 * time.Second, PoolSize: 3, ClusterPoolSize: 5}
	pool := x509.NewCertPool()
	secure := &tls.Config{RootCAs: pool}
	single := func(o redisconn.Options) *redis.Options { return newClient(t, o, s).(*redis.Client).Options() }
	for name, o := range map[string]*redis.Options{
		"url":      single(redisconn.Options{URL: func() string { return "rediss://127.0.0.1:1" }, TLS: secure}),
		"sentinel": single(redisconn.Options{Sentinel: redisconn.Sentinel{Master: "m", Addresses: []string{"127.0.0.1:1"}}, TLS: secure}),
	} {
		if o.MaxRetries > 0 || o.DialerRetries != 1 || o.PoolSize != 3 || !o.ContextTimeoutEnabled || o.Protocol != 2 {
			t.Errorf("%s: retries %d and %d, pool %d, protocol %d", name, o.MaxRetries, o.DialerRetries, o.PoolSize, o.Protocol)
		}
		if o.DialTimeout != time.Second || o.WriteTimeout != time.Second || o.PoolTimeout != time.Second || o.ReadTimeout != 2*time.Second {
			t.Errorf("%s: waits %v, %v, %v and %v", name, o.DialTimeout, o.WriteTimeout, o.PoolTimeout, o.ReadTimeout)
		}
		if o.TLSConfig == nil || o.TLSConfig.RootCAs != pool || o.TLSConfig.InsecureSkipVerify {
			t.Errorf("%s: TLS with %+v", name, o.TLSConfig)
		}
	}
	if o := single(redisconn.Options{URL: func() string { return "redis://127.0.0.1:1" }, TLS: secure}); o.TLSConfig != nil {
		t.Error("a url without TLS got TLS")
	}
	o := newClient(t, redisconn.Options{Cluster: []string{"127.0.0.1:1"}, TLS: secure}, s).(*redis.ClusterClient).Options()
	if o.MaxRedirects > 0 || o.MaxRetries > 0 || o.PoolSize != 5 || o.TLSConfig != secure || o.ReadTimeout != 2*time.Second {
		t.Errorf("cluster: redirects %d, retries %d, pool %d", o.MaxRedirects, o.MaxRetries, o.PoolSize)
	}
}

// A connection to an instance that was not found before is refused.
func TestInstances(t *testing.T) {
	options := redisconn.Options{URL: func() string { return "redis://" + redistest.Shared(t) }}
	wait := 10 * time.Second
	plain := newClient(t, options, redisconn.Settings{Timeout: wait, ReadTimeout: wait, PoolSize: 1})
	info, err := plain.Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	run := redisconn.ParseInfo(info)["run_id"]
	for name, c := range map[string]struct {
		known map[string]bool
		want  error
	}{
		"none is known":     {nil, nil},
		"this one is known": {map[string]bool{"other": true, run: true}, nil},
		"another is known":  {map[string]bool{"other": true}, redisconn.ErrOtherInstance},
		"one without an id": {map[string]bool{"": true}, redisconn.ErrOtherInstance},
	} {
		var instances redisconn.Instances
		instances.Set(c.known)
		client := newClient(t, options, redisconn.Settings{Timeout: wait, ReadTimeout: wait, PoolSize: 1, OnConnect: instances.Verify})
		if err := client.Ping(t.Context()).Err(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, expected %v", name, err, c.want)
		}
	}
	if err := plain.Do(t.Context(), "no-such-command").Err(); !redisconn.IsReply(err, "ERR") || redisconn.IsReply(err, "OOM") || redisconn.IsReply(redisconn.ErrOtherInstance, "") {
		t.Errorf("a reply is not told from other errors: %v", err)
	}
}

func TestSupportedVersion(t *testing.T) {
	for version, want := range map[string]bool{"6.0.0": true, "7.2.4": true, "10.0": true, "5.0.14": false, "": false, "x.1": false} {
		if got := redisconn.SupportedVersion(version); got != want {
			t.Errorf("%q: %v, expected %v", version, got, want)
		}
	}
}
