package deploy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/ports"
)

// TestComposeAsProcesses starts the commands of docker-compose.yml as processes,
// where no container engine is at hand: the addresses of containers become
// loopback ones, and both gateways read one folder, as they do there.
func TestComposeAsProcesses(t *testing.T) {
	c := readCompose(t)
	tool := sample(t, "sampletool")
	dir := copyTree(t, "compose")
	made := callgate(t, "", "keys", "new", "--name", "compose")
	terms := strings.Fields(made.stderr)
	if made.code != 0 || len(terms) == 0 {
		t.Fatalf("no key was made: %s", made.stderr)
	}
	key := terms[len(terms)-1]
	if err := os.WriteFile(filepath.Join(dir, "principals.yaml"), []byte("principals:\n"+made.stdout+"# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tools := filepath.Join(dir, "tools", "sample.yaml")
	changed := strings.NewReplacer("sampletool:9000", tool, "172.30.0.0/24", "127.0.0.1/32").Replace(text(t, tools))
	if err := os.WriteFile(tools, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	rewrite(t, filepath.Join(dir, "upstreams.yaml"), "samplemodel:9001", sample(t, "samplemodel"))
	base := text(t, filepath.Join(dir, "callgate.yaml"))
	redis := startRedis(t, c.Services["redis"].Command)
	if redis == "" {
		t.Log("left out: that the gateways share their limits, since redis-server is not installed, or the program has no limiter on it")
		base = strings.Replace(base, "redis:\n  url: \"env:REDIS_URL\"\n", "", 1)
	}
	t.Setenv("REDIS_URL", "redis://"+redis)
	// A limit that nothing else of this test spends.
	rewrite(t, filepath.Join(dir, "limits.yaml"), "burst: 5}}}", "burst: 5}, sample.time: {rate: 30/m, burst: 5}}}")

	addresses := map[string]string{}
	data := map[string]string{}
	gateways := map[string]*exec.Cmd{}
	for name, service := range c.Services {
		if service.Build.Target != "callgate" {
			continue
		}
		addresses[name], data[name] = ports.Hold(t), t.TempDir()
		main := filepath.Join(dir, name+".yaml")
		own := strings.NewReplacer("0.0.0.0:8080", addresses[name], "0.0.0.0:9090", ports.Hold(t), "/var/lib/callgate", data[name]).Replace(base)
		if err := os.WriteFile(main, []byte(own), 0o600); err != nil {
			t.Fatal(err)
		}
		args := slices.Clone(service.Command)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "/etc/callgate/callgate.yaml", main)
		}
		gateways[name] = start(t, args)
		// The health check that the service has, at this gateway's address.
		check := slices.Clone(service.Healthcheck.Test[2:])
		for i := range check {
			check[i] = strings.ReplaceAll(check[i], "127.0.0.1:8080", addresses[name])
		}
		within(t, time.Minute, name+" does not become healthy", func() bool { return callgate(t, "", check...).code == 0 })
	}
	if len(gateways) != 2 {
		t.Fatalf("%d gateways", len(gateways))
	}

	const search = `{"tool":{"name":"sample.search","arguments":{"query":"ferry"}}}`
	// On a busy machine Redis may count as away for a moment, and then a gateway has its
	// share alone, of buckets that begin empty: what is limited is sent again.
	for name, address := range addresses {
		within(t, time.Minute, name+": no call passes", func() bool {
			status := post(t, address, key, search)
			if status != http.StatusOK && status != http.StatusTooManyRequests {
				t.Errorf("%s: a call is %d", name, status)
			}
			return status != http.StatusTooManyRequests
		})
		for _, wrong := range []string{"", "cgk_wrong"} {
			if status := post(t, address, wrong, search); status != http.StatusUnauthorized {
				t.Errorf("%s: without the key a call is %d", name, status)
			}
		}
	}
	if hits := hitsOf(t, tool)["/search"]; hits != 2 {
		t.Errorf("the tool was called %d times, want 2", hits)
	}

	// The agent loop of deploy/README.md, with the key as that of the model.
	for name, address := range addresses {
		within(t, time.Minute, name+": no task passes", func() bool {
			answer := chat(t, address, key)
			limited := strings.Contains(answer, `"code":"rate_limited"`)
			if !limited && !strings.Contains(answer, "says: Switch on the lamp") {
				t.Errorf("%s: the model's task ended with %s", name, answer)
			}
			return !limited
		})
		if answer := chat(t, address, "cgk_wrong"); !strings.Contains(answer, `"code":"unauthenticated"`) {
			t.Errorf("%s: without the key, the model's task ended with %s", name, answer)
		}
	}
	if hits := hitsOf(t, tool); hits["/search"] < 4 || hits["/read"] < 2 {
		t.Errorf("the model's tasks called the tool %v times, want it searched and read once each at least", hits)
	}

	if redis != "" {
		sharesOneLimit(t, addresses, key)
	}

	// An edit of the folder reloads both.
	policy := filepath.Join(dir, "policy.csv")
	edited := strings.Replace(text(t, policy), "\n# end", "\np, Analyst, *, sample.search, , deny\n# end", 1)
	if err := os.WriteFile(policy+".new", []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(policy+".new", policy); err != nil {
		t.Fatal(err)
	}
	for name, address := range addresses {
		within(t, time.Minute, name+" does not take the edit up", func() bool { return post(t, address, key, search) == http.StatusForbidden })
	}

	for name, g := range gateways {
		if err := g.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := g.Wait(); err != nil {
			t.Errorf("%s ended with %v", name, err)
		}
		if o := callgate(t, "", "audit", "verify", filepath.Join(data[name], "audit.jsonl")); o.code != 0 {
			t.Errorf("%s: %s", name, o.stdout)
		}
	}
}

// start runs the gateway with the arguments of a service.
func start(t *testing.T, args []string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), filepath.Join(programs, "callgate"), args...)
	c.Dir = t.TempDir()
	var output bytes.Buffer
	c.Stderr = &output
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
		if t.Failed() {
			t.Log(output.String())
		}
	})
	return c
}

// within waits until something holds.
func within(t *testing.T, long time.Duration, otherwise string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(long); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(otherwise)
		}
	}
}

// post makes a call and returns its status.
func post(t *testing.T, address, key, completion string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("http://%s/v1/calls", address), strings.NewReader(completion))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "text/plain")
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

// chat gives the sample model its task, and returns the answer.
func chat(t *testing.T, address, key string) string {
	t.Helper()
	const task = `{"model":"sample","messages":[{"role":"user","content":"What is in the handbook?"}]}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("http://%s/v1/chat/completions", address), strings.NewReader(task))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
