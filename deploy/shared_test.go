package deploy_test

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/ports"
)

// addition is what deploy/shared.yaml adds to a service.
type addition struct {
	Command     []string
	Networks    []string
	Environment map[string]string
}

func readShared(t *testing.T) map[string]addition {
	t.Helper()
	all := readYAML[struct{ Services map[string]addition }](t, "shared.yaml")[0].Services
	if len(all) != 2 {
		t.Fatalf("deploy/shared.yaml has %d services, want the two gateways", len(all))
	}
	return all
}

// What deploy/shared.yaml adds fits docker-compose.yml: the gateways keep what they
// had, and reach the Redis that they are told of.
func TestSharedFitsCompose(t *testing.T) {
	c := readCompose(t)
	for name, more := range readShared(t) {
		s, ok := c.Services[name]
		if !ok || s.Build.Target != "callgate" {
			t.Errorf("%s is no gateway of docker-compose.yml", name)
			continue
		}
		accepts(t, name+", command", more.Command)
		if want := strings.Replace(strings.Join(s.Command, " "), "/callgate.yaml", "/shared.yaml", 1); strings.Join(more.Command, " ") != want {
			t.Errorf("%s is started by %q, want %q", name, more.Command, want)
		}
		for _, network := range s.Networks {
			if !slices.Contains(more.Networks, network) {
				t.Errorf("%s is not on the network %s any more", name, network)
			}
		}
		u, err := url.Parse(more.Environment["REDIS_URL"])
		if err != nil || len(more.Environment) != 1 {
			t.Fatalf("%s has the environment %v: %v", name, more.Environment, err)
		}
		redis := c.Services[u.Hostname()]
		if len(redis.Networks) != 1 || !slices.Contains(more.Networks, redis.Networks[0]) || !c.Networks[redis.Networks[0]].Internal || u.Port() != "6379" {
			t.Errorf("%s does not reach %s, or not alone", name, u)
		}
		if !strings.Contains(strings.Join(redis.Command, " "), "--maxmemory-policy noeviction") {
			t.Errorf("%s forgets budgets to make room: %q", u.Hostname(), redis.Command)
		}
	}
}

// The main file of shared limits is the other one, and the key redis.
func TestSharedConfiguration(t *testing.T) {
	dir := composeConfig(t)
	loads(t, filepath.Join(dir, "shared.yaml"))
	keys := func(path string) string {
		body := text(t, path)
		return body[strings.Index(body, "server:"):]
	}
	with := strings.Replace(keys("compose/callgate.yaml"), "\n# end", "\n\nredis:\n  url: \"env:REDIS_URL\"\n# end", 1)
	if keys("compose/shared.yaml") != with {
		t.Error("compose/shared.yaml differs from compose/callgate.yaml by more than the key redis")
	}
}

// TestSharedAsProcesses starts the commands of deploy/shared.yaml as processes:
// one limit holds through both gateways.
func TestSharedAsProcesses(t *testing.T) {
	server, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("skipped: redis-server is not installed")
	}
	redis := ports.Hold(t)
	_, port, err := net.SplitHostPort(redis)
	if err != nil {
		t.Fatal(err)
	}
	r := exec.CommandContext(t.Context(), server, "--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", "", "--maxmemory-policy", "noeviction")
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
	dir := composeConfig(t)
	tool := sample(t, "sampletool")
	rewrite(t, filepath.Join(dir, "tools", "sample.yaml"), "sampletool:9000", tool, "172.30.0.0/24", "127.0.0.1/32")
	made := callgate(t, "", "keys", "new", "--name", "compose")
	words := strings.Fields(made.stderr)
	if made.code != 0 || len(words) == 0 {
		t.Fatalf("no key was made: %s", made.stderr)
	}
	key := words[len(words)-1]
	if err := os.WriteFile(filepath.Join(dir, "principals.yaml"), []byte("principals:\n"+made.stdout+"# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REDIS_URL", "redis://"+redis)
	var addresses []string
	for name, more := range readShared(t) {
		address := ports.Hold(t)
		main := filepath.Join(dir, name+".yaml")
		own := strings.NewReplacer("0.0.0.0:8080", address, "127.0.0.1:9090", ports.Hold(t), "/var/lib/callgate", t.TempDir()).Replace(text(t, filepath.Join(dir, "shared.yaml")))
		if err := os.WriteFile(main, []byte(own), 0o600); err != nil {
			t.Fatal(err)
		}
		args := slices.Clone(more.Command)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "/etc/callgate/shared.yaml", main)
		}
		start(t, args)
		within(t, time.Minute, name+" does not become healthy", func() bool {
			return callgate(t, "", "healthcheck", "--address", address).code == 0
		})
		addresses = append(addresses, address)
	}
	// sample.search: 30/m with a burst of 5, so a sixth may pass after two seconds.
	passed := 0
	began := time.Now()
	for i := range 12 {
		switch status := post(t, addresses[i%2], key, `{"tool":{"name":"sample.search","arguments":{"query":"ferry"}}}`); status {
		case http.StatusOK:
			passed++
		case http.StatusTooManyRequests:
		default:
			t.Errorf("a call is %d", status)
		}
	}
	if most := 5 + int(time.Since(began)/(2*time.Second)) + 1; passed < 5 || passed > most {
		t.Errorf("%d calls passed through both, want 5 to %d", passed, most)
	}
}
