package deploy_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const chart = "helm/callgate"

// chartValues are those of the chart as anything that JSON could hold.
func chartValues(t *testing.T) map[string]any {
	t.Helper()
	data, err := json.Marshal(readYAML[map[string]any](t, chart+"/values.yaml")[0])
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := json.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// TestChartValues: the values fit their schema, which knows each of them and no other, and the
// templates use each of them.
func TestChartValues(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(absolute(t, chart+"/values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	values := chartValues(t)
	if err := schema.Validate(values); err != nil {
		t.Error(err)
	}
	values["replicas"] = 3
	if schema.Validate(values) == nil {
		t.Error("the schema takes an unknown value")
	}
	delete(values, "replicas")
	var stated struct{ Properties map[string]any }
	if err := json.Unmarshal([]byte(text(t, chart+"/values.schema.json")), &stated); err != nil {
		t.Fatal(err)
	}
	delete(stated.Properties, "global") // helm's own
	known := slices.Sorted(maps.Keys(stated.Properties))
	if have := slices.Sorted(maps.Keys(values)); !slices.Equal(have, known) {
		t.Errorf("values.yaml has %q, its schema %q", have, known)
	}
	used := map[string]bool{}
	if err := filepath.WalkDir(chart+"/templates", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, m := range regexp.MustCompile(`\.Values\.([A-Za-z]+)`).FindAllStringSubmatch(text(t, file), -1) {
			used[m[1]] = true
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(used)); !slices.Equal(got, known) {
		t.Errorf("the templates use %q of %q", got, known)
	}
}

// TestChartConfigurationLoads: the files of values.yaml are a configuration that loads, and the
// version is that of the newest release.
func TestChartConfigurationLoads(t *testing.T) {
	values := readYAML[struct {
		Config     map[string]string
		Principals struct{ File string }
	}](t, chart+"/values.yaml")[0]
	dir := t.TempDir()
	values.Config["principals.yaml"] = values.Principals.File
	for name, body := range values.Config {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loads(t, filepath.Join(dir, "callgate.yaml"))
	released := regexp.MustCompile(`(?m)^## \[([0-9.]+)\]`).FindStringSubmatch(text(t, "../CHANGELOG.md"))
	if got := readYAML[struct{ Version, AppVersion string }](t, chart+"/Chart.yaml")[0]; released == nil || got.Version != released[1] {
		t.Errorf("the chart has the version %q, the newest release %q", got.Version, released)
	}
}

// helm runs it; the test is skipped where it is not installed. `make release-tools` builds it.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program, err := exec.LookPath("helm")
	if err != nil {
		program = absolute(t, "../.tools/helm")
		if _, err := os.Stat(program); err != nil {
			t.Skip("needs helm")
		}
	}
	c := exec.CommandContext(t.Context(), program, args...)
	home := t.TempDir()
	c.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := c.CombinedOutput()
	return string(out), err
}

// rendered are the objects of the chart with these values.
func rendered(t *testing.T, release, values string) map[string]manifest {
	t.Helper()
	dir := t.TempDir()
	given := filepath.Join(dir, "values.yaml")
	if err := os.WriteFile(given, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := helm(t, "template", release, absolute(t, chart), "--kube-version", "1.31.0", "--values", given)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file := filepath.Join(dir, "all.yaml")
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	return manifests(t, []string{file})
}

// TestChart renders the chart and holds it to the rules of docs/kubernetes.
func TestChart(t *testing.T) {
	if out, err := helm(t, "lint", "--strict", absolute(t, chart)); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	all := rendered(t, "gate", "")
	set := object(t, all, "StatefulSet/gate-callgate")
	checkWorkload(t, set)
	if n := checkConfined(t, all); n != 1 {
		t.Errorf("%d workloads, want 1", n)
	}
	if n := checkSelectors(t, all, "StatefulSet/"); n != 5 {
		t.Errorf("%d objects select pods, want 5 (StatefulSet, two Services, NetworkPolicy, PodDisruptionBudget) of %v", n, slices.Sorted(maps.Keys(all)))
	}
	if _, ok := all["Service/"+set.Spec.ServiceName]; !ok {
		t.Errorf("the StatefulSet names the Service %s, which is not there", set.Spec.ServiceName)
	}
	if len(set.Spec.Claims) != 1 || set.Spec.Claims[0].Metadata.Name != "data" {
		t.Errorf("the data is on no volume that outlives a pod: %+v", set.Spec.Claims)
	}
	if ports := set.Spec.Template.Spec.Containers[0].Ports; len(ports) != 1 || ports[0].ContainerPort != 8080 {
		t.Errorf("ports %v, want that of server.listen", ports)
	}
	loads(t, podConfiguration(t, all, set))
}

// configured is the configuration of values.yaml with one part of its main file changed.
func configured(t *testing.T, old, replacement string) string {
	t.Helper()
	main := readYAML[struct{ Config map[string]string }](t, chart+"/values.yaml")[0].Config["callgate.yaml"]
	if !strings.Contains(main, old) {
		t.Fatalf("callgate.yaml of values.yaml has no %q", old)
	}
	quoted, err := json.Marshal(strings.Replace(main, old, replacement, 1))
	if err != nil {
		t.Fatal(err)
	}
	return "config: {callgate.yaml: " + string(quoted) + "}\n"
}

// TestChartOptions: what is off by default.
func TestChartOptions(t *testing.T) {
	open := configured(t, "admin_listen: 127.0.0.1:9090", "admin_listen: 0.0.0.0:9090")
	all := rendered(t, "callgate", open+`
serviceMonitor: {enabled: true, credentials: {name: scraper, key: token}}
networkPolicy: {metricsFrom: [{namespaceSelector: {matchLabels: {a: b}}}]}
secrets: {existingSecret: mine}
principals: {existingSecret: known}
persistence: {enabled: false}
env: [{name: REDIS_URL, value: "redis://redis:6379"}]
image: {digest: "sha256:`+strings.Repeat("a", 64)+`"}
`)
	set := object(t, all, "StatefulSet/callgate")
	checkWorkload(t, set)
	object(t, all, "ServiceMonitor/callgate")
	c := set.Spec.Template.Spec.Containers[0]
	if len(c.Ports) != 2 || c.Ports[1].ContainerPort != 9090 || !strings.Contains(c.Image, "@sha256:a") || len(c.VolumeMounts) != 3 || len(set.Spec.Claims) != 0 {
		t.Errorf("%+v\nclaims %+v", c, set.Spec.Claims)
	}
	for key := range all {
		if strings.HasPrefix(key, "Secret/") {
			t.Errorf("%s is made beside the Secret that is named", key)
		}
	}
	if _, there := rendered(t, "gate", "replicaCount: 1\n")["PodDisruptionBudget/gate-callgate"]; there {
		t.Error("a budget for one replica, which keeps its node from being emptied")
	}
}

// TestChartRefuses: values that would make a gateway that cannot work are refused with a reason.
func TestChartRefuses(t *testing.T) {
	for values, reason := range map[string]string{
		configured(t, "listen: 0.0.0.0:8080", "listen: 127.0.0.1:8080"):                                        "server.listen is",
		configured(t, "data_dir: /var/lib/callgate", "data_dir: data"):                                         "data_dir must be",
		configured(t, "shutdown_timeout: 30s", "shutdown_timeout: 41s"):                                        "must be 5 s longer",
		configured(t, "shutdown_timeout: 30s", "shutdown_timeout: 1m"):                                         "expected seconds",
		"serviceMonitor: {enabled: true, credentials: {name: a, key: b}}":                                      "needs server.admin_listen",
		"podDisruptionBudget: {minAvailable: 2}":                                                               "must be below replicaCount",
		"replicas: 3":                                                                                          "replicas",
		"config: {tools/../x.yaml: a}":                                                                         "tools/../x.yaml",
		"config: {principals.yaml: a}":                                                                         "belongs to principals",
		configured(t, "admin_listen: 127", "admin_listen: 0.0.0.0:9090 #") + "serviceMonitor: {enabled: true}": "must name a Secret",
	} {
		given := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(given, []byte(values), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := helm(t, "template", "gate", absolute(t, chart), "--kube-version", "1.31.0", "--values", given); err == nil || !strings.Contains(out, reason) {
			t.Errorf("%s\n%v: got %s, want it refused with %q", values, err, out, reason)
		}
	}
}
