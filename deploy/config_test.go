package deploy_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
)

// settings is what these tests need of a main configuration file.
type settings struct {
	Server struct {
		Listen          string
		AdminListen     string `yaml:"admin_listen"`
		ShutdownTimeout string `yaml:"shutdown_timeout"`
	}
	Principals string
	DataDir    string `yaml:"data_dir"`
	Redis      struct{ URL string }
}

// toolFile is what these tests need of a file of tools.
type toolFile struct {
	Tools []struct {
		Name string
		Run  struct {
			URL       string
			Addresses []string
		}
	}
}

// copyTree copies a folder of plain files.
func copyTree(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func rewrite(t *testing.T, path string, pairs ...string) {
	t.Helper()
	before := text(t, path)
	after := strings.NewReplacer(pairs...).Replace(before)
	if after == before {
		t.Fatalf("%s has nothing of %q", path, pairs)
	}
	if err := os.WriteFile(path, []byte(after), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestQuickstartLoads(t *testing.T) {
	loads(t, absolute(t, "quickstart/callgate.yaml"))
	loads(t, absolute(t, "agent/callgate.yaml"))
}

// composeConfig is deploy/compose with a file of principals.
func composeConfig(t *testing.T) string {
	t.Helper()
	dir := copyTree(t, "compose")
	made := callgate(t, "", "keys", "new", "--name", "compose")
	if made.code != 0 {
		t.Fatalf("no key was made: %s", made.stderr)
	}
	operator := "  - {name: prometheus, operator: true, key_sha256: " + strings.Repeat("ab", 32) + "}\n"
	entry := "principals:\n" + made.stdout + operator + "# end\n"
	if err := os.WriteFile(filepath.Join(dir, "principals.yaml"), []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// needsRedisLimiter skips a test of gateways that share their limits.
func needsRedisLimiter(t *testing.T) {
	t.Helper()
	if !app.Has(configs.RedisLimiter) {
		t.Skipf("skipped: this program was built without %s", configs.RedisLimiter)
	}
}

func TestComposeConfigurationLoads(t *testing.T) {
	needsRedisLimiter(t)
	dir := composeConfig(t)
	loads(t, filepath.Join(dir, "callgate.yaml"))
	// Without the generated file it must not: nobody would be asked for a key.
	if err := os.Remove(filepath.Join(dir, "principals.yaml")); err != nil {
		t.Fatal(err)
	}
	if o := callgate(t, "", "config", "check", "--config", filepath.Join(dir, "callgate.yaml")); o.code != 2 || !strings.Contains(o.stderr, "principals.yaml") {
		t.Errorf("without principals: exit code %d, %q; want 2 and the file's name", o.code, o.stderr)
	}
}

// The script makes what the configuration needs, once.
func TestPrincipalsScript(t *testing.T) {
	needsRedisLimiter(t)
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skipf("skipped: deploy/principals is not run: %v", err)
	}
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "deploy", "compose"), os.DirFS("compose")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "deploy", "compose", "principals.yaml")
	if err := os.RemoveAll(file); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(root, "deploy", "principals")
	if err := os.WriteFile(script, []byte(text(t, "principals")), 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(program string) (string, error) {
		c := exec.CommandContext(t.Context(), "sh", script)
		c.Env = append(os.Environ(), "CALLGATE="+program)
		output, err := c.CombinedOutput()
		return string(output), err
	}
	if said, err := run("false"); err == nil {
		t.Errorf("it did not fail where no key could be made: %s", said)
	}
	if left, err := filepath.Glob(file + "*"); err != nil || len(left) > 0 {
		t.Errorf("a run that failed left %v", left)
	}
	said, err := run(filepath.Join(programs, "callgate"))
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	loads(t, filepath.Join(root, "deploy", "compose", "callgate.yaml"))
	first := text(t, file)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v; want 0644: the gateways run as another user", info.Mode(), err)
	}
	if key := said[strings.Index(said, "cgk_"):]; strings.Contains(first, strings.Fields(key)[0]) {
		t.Error("the file holds the key itself")
	}
	operator := strings.TrimSuffix(text(t, filepath.Join(root, "deploy", "monitoring", "prometheus", "operator.key")), "\n")
	digest := sha256.Sum256([]byte(operator))
	if !strings.HasPrefix(operator, "cgk_") || strings.Contains(said, operator) || !strings.Contains(first, "key_sha256: "+hex.EncodeToString(digest[:])+"\n    operator: true\n") {
		t.Errorf("the operator's key %q is printed, or is not the one of the file:\n%s", operator, first)
	}
	if said, err := run(filepath.Join(programs, "callgate")); err != nil || text(t, file) != first {
		t.Errorf("a second run changed the file: %v, %s", err, said)
	}
	if left, err := filepath.Glob(file + "?*"); err != nil || len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

// The three files of the sample tools are one, but for where the tool is.
func TestSampleToolsAreTheSame(t *testing.T) {
	body := func(path string, places ...string) string {
		s := text(t, path)
		at := strings.Index(s, "tools:\n")
		if at < 0 {
			t.Fatalf("%s has no tools", path)
		}
		return strings.NewReplacer(places...).Replace(s[at:])
	}
	want := body("sampletool.yaml")
	if body("quickstart/tools/sample.yaml") != want {
		t.Error("quickstart/tools/sample.yaml differs from sampletool.yaml")
	}
	if body("compose/tools/sample.yaml", "//sampletool:9000", "//127.0.0.1:9000", "172.30.0.0/24", "127.0.0.1/32") != want {
		t.Error("compose/tools/sample.yaml differs from sampletool.yaml by more than URL and addresses")
	}
	if text(t, "compose/policy.csv") != text(t, "quickstart/policy.csv") {
		t.Error("compose/policy.csv differs from quickstart/policy.csv")
	}
}

// sample starts one of the sample programs on a free port, and returns its address.
func sample(t *testing.T, program string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), filepath.Join(programs, program), "--listen", "127.0.0.1:0")
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), program+" listening on ")
	if err != nil || !ok {
		t.Fatalf("it said %q: %v", line, err)
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		t.Fatal(err)
	}
	return address
}

// hitsOf are how often each path of the sample tool was requested.
func hitsOf(t *testing.T, address string) map[string]int {
	t.Helper()
	response, err := http.Get("http://" + address + "/hits")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Paths map[string]int }
	if err := json.Unmarshal(data, &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Paths
}

// The promises of the quick start, with the tool on another port: each tool's schema,
// policy and limits fit what the sample tool takes and answers.
func TestQuickstartCalls(t *testing.T) {
	address := sample(t, "sampletool")
	// The paths of sample.read start at a folder of the checkout.
	dir := copyTree(t, "quickstart")
	rewrite(t, filepath.Join(dir, "workspaces.yaml"), "../../tools/sampletool/texts", absolute(t, "../tools/sampletool/texts"))
	rewrite(t, filepath.Join(dir, "tools", "sample.yaml"), "127.0.0.1:9000", address)
	for _, c := range []struct {
		agent, tool, arguments string
		code                   int
		message                string
		path                   string
		hits                   int
	}{
		{"Analyst", "sample.search", `{"query":"hinge","limit":1}`, 0, `"path":"handbook/opening.txt"`, "/search", 1},
		{"Analyst", "sample.search", `{"query":"ferry","limit":2.0}`, 0, `"results":[{`, "/search", 2},
		{"Analyst", "sample.search", `{"query":"ferry","extra":1}`, 1, `"unexpected_argument"`, "/search", 2},
		{"Intern", "sample.search", `{"query":"zebra"}`, 0, `"results":[]`, "/search", 3},
		{"Analyst", "sample.read", `{"path":"letters/supplier.txt"}`, 0, `{\"tool\":{\"name\":\"payments.refund\"`, "/read", 1},
		{"Analyst", "sample.read", `{"path":"stock.txt","lines":[1,1]}`, 0, `"first":1,"last":1,"of":7`, "/read", 2},
		{"Analyst", "sample.read", `{"path":"../main.go"}`, 1, `"boundary_violation"`, "/read", 2},
		{"Intern", "sample.read", `{"path":"stock.txt"}`, 1, `"permission_denied"`, "/read", 2},
		{"Analyst", "sample.time", `{}`, 0, `"unix":`, "/time", 1},
		{"Analyst", "sample.slow", `{"seconds":0.01}`, 0, `"waited":0.01`, "/slow", 1},
		{"Analyst", "sample.slow", `{"seconds":31}`, 1, `"permission_denied"`, "/slow", 1},
		{"Analyst", "sample.fail", `{}`, 1, `"tool_failed"`, "/fail", 1},
		{"Analyst", "sample.fail", `{"status":503}`, 1, `"outcome_unknown"`, "/fail", 2},
		{"Analyst", "sample.fail", `{"status":200}`, 1, `"invalid_value"`, "/fail", 2},
	} {
		completion := `{"tool":{"name":"` + c.tool + `","arguments":` + c.arguments + `}}`
		o := callgate(t, completion, "call", "--config", filepath.Join(dir, "callgate.yaml"), "--agent", c.agent)
		if o.code != c.code || !strings.Contains(o.stdout, c.message) {
			t.Errorf("%s %s: exit code %d\n%s%swant %d, and %s", c.agent, completion, o.code, o.stdout, o.stderr, c.code, c.message)
		}
		if got := hitsOf(t, address)[c.path]; got != c.hits {
			t.Errorf("%s %s: %s was requested %d times, want %d", c.agent, completion, c.path, got, c.hits)
		}
	}
}
