package deploy_test

import (
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/ports"
)

// The gateways of docker compose share their limits: every gateway reaches the one Redis
// that it is told of, on a network without a way out, and the limits are of them all.
func TestComposeSharesLimits(t *testing.T) {
	c := readCompose(t)
	read := readYAML[settings](t, "compose/callgate.yaml")[0]
	variable, ok := strings.CutPrefix(read.Redis.URL, "env:")
	if !ok {
		t.Fatalf("compose/callgate.yaml counts its limits at %q, want a place in the environment", read.Redis.URL)
	}
	gateways, servers := 0, map[string]bool{}
	for name, s := range c.Services {
		if s.Build.Target != "callgate" {
			continue
		}
		gateways++
		u, err := url.Parse(s.Environment[variable])
		if err != nil || len(s.Environment) != 1 {
			t.Fatalf("%s has the environment %v: %v", name, s.Environment, err)
		}
		servers[u.Host] = true
		redis := c.Services[u.Hostname()]
		if len(redis.Networks) != 1 || !c.Networks[redis.Networks[0]].Internal || u.Port() != "6379" || u.Scheme != "redis" || len(redis.Ports) > 0 {
			t.Errorf("%s is told of %s, which is no service behind one network without a way out", name, u)
			continue
		}
		for other, o := range c.Services {
			reaches := strings.Contains(" "+strings.Join(o.Networks, " ")+" ", " "+redis.Networks[0]+" ")
			if want := other == u.Hostname() || o.Build.Target == "callgate"; reaches != want {
				t.Errorf("%s reaches %s: %t, want %t", other, u.Hostname(), reaches, want)
			}
		}
		if s.DependsOn[u.Hostname()].Condition != "service_healthy" {
			t.Errorf("%s does not wait for %s", name, u.Hostname())
		}
		if command := strings.Join(redis.Command, " "); !strings.Contains(command, "--maxmemory-policy noeviction") || !strings.Contains(command, "--appendonly no") {
			t.Errorf("%s forgets budgets to make room, or waits for a disk: %q", u.Hostname(), redis.Command)
		}
	}
	limits := readYAML[struct {
		OnStoreLoss string `yaml:"on_store_loss"`
		Replicas    int
	}](t, "compose/limits.yaml")[0]
	if gateways != 2 || len(servers) != 1 || limits.Replicas != gateways || limits.OnStoreLoss != "local" {
		t.Errorf("%d gateways count on %v, and the limits are %+v", gateways, servers, limits)
	}
}

// startRedis starts the Redis of docker-compose.yml by its command there, on loopback,
// and returns its address; it is empty where that program is not installed.
func startRedis(t *testing.T, command []string) string {
	t.Helper()
	server, err := exec.LookPath(command[0])
	if err != nil || !app.Has(configs.RedisLimiter) {
		return ""
	}
	redis := ports.Hold(t)
	_, port, err := net.SplitHostPort(redis)
	if err != nil {
		t.Fatal(err)
	}
	r := exec.CommandContext(t.Context(), server, append(command[1:len(command):len(command)], "--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir())...)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Process.Kill(); r.Wait() })
	within(t, time.Minute, "Redis does not come up", func() bool {
		c, err := net.Dial("tcp", redis)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return redis
}

// sharesOneLimit holds that one limit holds through all gateways: sample.time may be
// called five times, and once more every two seconds.
func sharesOneLimit(t *testing.T, addresses map[string]string, key string) {
	t.Helper()
	began, passed := time.Now(), 0
	for range 10 {
		for _, address := range addresses {
			switch status := post(t, address, key, `{"tool":{"name":"sample.time","arguments":{}}}`); status {
			case http.StatusOK:
				passed++
			case http.StatusTooManyRequests:
			default:
				t.Errorf("a call is %d", status)
			}
		}
	}
	if most := 5 + int(time.Since(began)/(2*time.Second)) + 1; passed > most {
		t.Errorf("%d calls passed through all gateways, want at most %d", passed, most)
	}
}
