package redisconn_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func opened(t *testing.T, o redisconn.Options, s redisconn.Settings) *redisconn.Conn {
	t.Helper()
	c, err := o.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// No client repeats a command or follows a redirection by itself, and every wait
// is bounded.
func TestClientSettings(t *testing.T) {
	s := redisconn.Settings{Timeout: time.Second, ReadTimeout: 2 * time.Second, PoolSize: 3}
	pool := x509.NewCertPool()
	secure := &tls.Config{RootCAs: pool}
	single := func(o redisconn.Options) *redis.Options { return opened(t, o, s).Client().Options() }
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
	o := opened(t, redisconn.Options{Cluster: []string{"127.0.0.1:1"}, TLS: secure}, s).Cluster().Options()
	if o.MaxRedirects > 0 || o.MaxRetries > 0 || o.PoolSize != 3 || o.TLSConfig != secure || o.ReadTimeout != 2*time.Second {
		t.Errorf("cluster: redirects %d, retries %d, pool %d", o.MaxRedirects, o.MaxRetries, o.PoolSize)
	}
}

// A connection to an instance that was not found before is refused.
func TestInstances(t *testing.T) {
	options := redisconn.Options{URL: func() string { return "redis://" + redistest.Shared(t) }}
	wait := 10 * time.Second
	settings := redisconn.Settings{Timeout: wait, ReadTimeout: wait, PoolSize: 1}
	plain, err := opened(t, options, settings).Node(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	found, err := redisconn.Inspect(t.Context(), plain, "")
	if err != nil || found.Run == "" || !found.Master {
		t.Fatal(found, err)
	}
	run := found.Run
	for name, c := range map[string]struct {
		known map[string]bool
		want  error
	}{
		"none is known":     {nil, nil},
		"this one is known": {map[string]bool{"other": true, run: true}, nil},
		"another is known":  {map[string]bool{"other": true}, redisconn.ErrOtherInstance},
		"one without an id": {map[string]bool{"": true}, redisconn.ErrOtherInstance},
	} {
		conn := opened(t, options, settings)
		conn.Expect(c.known)
		if err := conn.Client().Ping(t.Context()).Err(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, expected %v", name, err, c.want)
		}
	}
	if err := redisconn.Do(t.Context(), plain, "no-such-command").Err; !redisconn.IsReply(err, "ERR") || redisconn.IsReply(err, "OOM") || redisconn.IsReply(redisconn.ErrOtherInstance, "") {
		t.Errorf("a reply is not told from other errors: %v", err)
	}
}

// replyError is an error reply of Redis.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

// TestDescribe: an operator reads the code and the cure, and nothing that a command carried.
func TestDescribe(t *testing.T) {
	for reply, want := range map[string]string{
		"WRONGPASS invalid username-password pair":                           "Redis answered WRONGPASS: the user name or the password is wrong",
		"NOPERM User secret has no permissions to run the 'evalsha' command": "Redis answered NOPERM: its ACL does not let this user",
		"READONLY You can't write against a read only replica.":              "Redis answered READONLY: it is a replica",
		"CLUSTERDOWN Hash slot not served":                                   "Redis answered CLUSTERDOWN: it is a node of a cluster",
		"MOVED 3999 127.0.0.1:6381":                                          "Redis answered MOVED: it is a node of a cluster",
		"OOM command not allowed when used memory > 'maxmemory'.":            "Redis answered OOM: its memory is full",
		"ERR This instance has cluster support disabled":                     "Redis answered ERR: it is no node of a cluster",
		"ERR unknown command 'evalsha', with args beginning with: 'secret'":  "Redis answered ERR: it does not have a command",
		"ERR Error running script (call to f_secret): secret":                "Redis answered ERR Error running script",
		"ERR user_script:1: secret":                                          "Redis answered ERR user",
		"ERR 'secret'":                                                       "Redis answered ERR",
		"ERR":                                                                "Redis answered ERR",
		"BADBUCKET: secret":                                                  "Redis answered BADBUCKET",
	} {
		if got := redisconn.Describe(replyError(reply)).Error(); !strings.HasPrefix(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%q is described as %q, want %q…", reply, got, want)
		}
	}
}

// TestIsOverload: an error reply that says nothing of what Redis holds is told from the others.
func TestIsOverload(t *testing.T) {
	for reply, want := range map[string]bool{
		"OOM command not allowed when used memory > 'maxmemory'.": true,
		"NOREPLICAS Not enough good replicas to write.":           true,
		"MISCONF Redis is configured to save RDB snapshots, but":  true,
		"BUSY Redis is busy running a script.":                    true,
		"READONLY You can't write against a read only replica.":   false,
		"NOSCRIPT No matching script. Please use EVAL.":           false,
		"ERR OOM": false,
	} {
		if got := redisconn.IsOverload(replyError(reply)); got != want {
			t.Errorf("%q: %v, want %v", reply, got, want)
		}
	}
	if redisconn.IsOverload(errors.New("OOM")) {
		t.Error("an error that is no reply is taken for one")
	}
}
