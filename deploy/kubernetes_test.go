package deploy_test

import (
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// manifest is what these tests need of any object of Kubernetes.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Data       map[string]string
	StringData map[string]string `yaml:"stringData"`
	Spec       struct {
		Replicas     int
		Selector     selector
		PodSelector  selector `yaml:"podSelector"`
		MinAvailable int      `yaml:"minAvailable"`
		ServiceName  string   `yaml:"serviceName"`
		Claims       []volume `yaml:"volumeClaimTemplates"`
		Ports        []struct {
			Port       int
			TargetPort string `yaml:"targetPort"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     pod
		}
	}
}

// selector is one of labels, or, in a Service, the labels themselves.
type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
	Labels      map[string]string `yaml:",inline"`
}

func (s selector) labels() map[string]string {
	if s.MatchLabels != nil {
		return s.MatchLabels
	}
	return s.Labels
}

type pod struct {
	Grace           int `yaml:"terminationGracePeriodSeconds"`
	Token           any `yaml:"automountServiceAccountToken"`
	SecurityContext struct {
		RunAsNonRoot bool `yaml:"runAsNonRoot"`
		RunAsUser    int  `yaml:"runAsUser"`
	} `yaml:"securityContext"`
	Containers []container
	Volumes    []volume
}

// volume is one of a pod, or what a StatefulSet claims for each pod.
type volume struct {
	Name      string
	Metadata  struct{ Name string }
	Projected struct {
		Sources []struct {
			ConfigMap source `yaml:"configMap"`
			Secret    source
		}
	}
}

type source struct {
	Name  string
	Items []struct{ Key, Path string }
}

type container struct {
	Name, Image string
	Args        []string
	Lifecycle   any
	Ports       []struct {
		ContainerPort int `yaml:"containerPort"`
	}
	ReadinessProbe  probe `yaml:"readinessProbe"`
	LivenessProbe   probe `yaml:"livenessProbe"`
	SecurityContext struct {
		ReadOnly     bool `yaml:"readOnlyRootFilesystem"`
		Escalation   any  `yaml:"allowPrivilegeEscalation"`
		Capabilities struct{ Drop []string }
	} `yaml:"securityContext"`
	Resources struct {
		Requests, Limits map[string]string
	}
	VolumeMounts []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
		SubPath   string `yaml:"subPath"`
	} `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

// cluster is every object of docs/kubernetes, by kind and name.
func cluster(t *testing.T) map[string]manifest {
	t.Helper()
	files, err := filepath.Glob("../docs/kubernetes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d manifests: %v", len(files), err)
	}
	return manifests(t, files)
}

// manifests are the objects of files, by kind and name.
func manifests(t *testing.T, files []string) map[string]manifest {
	t.Helper()
	all := map[string]manifest{}
	for _, file := range files {
		for _, m := range readYAML[manifest](t, file) {
			key := m.Kind + "/" + m.Metadata.Name
			if _, twice := all[key]; twice || m.APIVersion == "" {
				t.Errorf("%s: %s stands twice, or has no apiVersion", file, key)
			}
			all[key] = m
		}
	}
	return all
}

func object(t *testing.T, all map[string]manifest, key string) manifest {
	t.Helper()
	m, ok := all[key]
	if !ok {
		t.Fatalf("there is no %s", key)
	}
	return m
}

// TestKubernetesConfigurationLoads: the files as a pod gets them are a configuration that loads.
func TestKubernetesConfigurationLoads(t *testing.T) {
	all := cluster(t)
	loads(t, podConfiguration(t, all, object(t, all, "Deployment/callgate")))
}

// podConfiguration writes the files as a pod gets them; everything that their sources hold must be
// among them. It returns the main file.
func podConfiguration(t *testing.T, all map[string]manifest, workload manifest) string {
	t.Helper()
	files, held := map[string]string{}, 0
	for _, v := range workload.Spec.Template.Spec.Volumes {
		for _, s := range v.Projected.Sources {
			from := s.ConfigMap
			data := all["ConfigMap/"+from.Name].Data
			if from.Name == "" {
				from = s.Secret
				data = all["Secret/"+from.Name].StringData
			}
			held += len(data)
			for _, i := range from.Items {
				body, ok := data[i.Key]
				if !ok {
					t.Errorf("no source holds %s", i.Key)
				}
				files[i.Path] = body
			}
		}
	}
	if held == 0 || len(files) != held {
		t.Errorf("%d files are mounted, and %d are held", len(files), held)
	}
	dir := t.TempDir()
	for name, body := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "callgate.yaml")
}

func TestKubernetesDeployment(t *testing.T) {
	checkWorkload(t, object(t, cluster(t), "Deployment/callgate"))
}

// checkWorkload: two gateways with the mounts, probes and time that the program needs.
func checkWorkload(t *testing.T, d manifest) {
	t.Helper()
	read := readYAML[settings](t, "compose/callgate.yaml")[0]
	if d.Spec.Replicas != 2 || len(d.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("%d replicas of %d containers, want 2 of 1", d.Spec.Replicas, len(d.Spec.Template.Spec.Containers))
	}
	spec := d.Spec.Template.Spec
	c := spec.Containers[0]
	accepts(t, "args of the container", c.Args)
	if c.Lifecycle != nil {
		t.Error("the container has a hook; its image has no program for one")
	}
	mounted := map[string]string{}
	for _, m := range c.VolumeMounts {
		mounted[m.MountPath] = m.Name
		if m.SubPath != "" {
			t.Errorf("%s is mounted by subPath, and so never reloaded", m.MountPath)
		}
	}
	if mounted["/etc/callgate"] == "" || !slices.Contains(c.Args, "/etc/callgate/callgate.yaml") || mounted[read.DataDir] == "" {
		t.Errorf("configuration or data are not mounted where they are looked for: %v, %q", mounted, c.Args)
	}
	for name, m := range mounted {
		if !slices.ContainsFunc(append(spec.Volumes, d.Spec.Claims...), func(v volume) bool { return v.Name == m || v.Metadata.Name == m }) {
			t.Errorf("%s mounts %s, which is no volume", name, m)
		}
	}
	if c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Path != "/healthz" {
		t.Errorf("probes of %s and %s", c.ReadinessProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path)
	}
	if spec.Grace < 35 {
		t.Errorf("a grace period of %d s; draining takes 30", spec.Grace)
	}
}

func TestKubernetesIsConfined(t *testing.T) {
	if n := checkConfined(t, cluster(t)); n != 2 {
		t.Errorf("%d workloads, want 2", n)
	}
}

// checkConfined: no workload may run as root, write to its root, or take what it can. It returns
// how many there are.
func checkConfined(t *testing.T, all map[string]manifest) int {
	t.Helper()
	n := 0
	for key, m := range all {
		if m.Kind != "Deployment" && m.Kind != "StatefulSet" {
			continue
		}
		n++
		spec := m.Spec.Template.Spec
		if s := spec.SecurityContext; !s.RunAsNonRoot || s.RunAsUser != 65532 || spec.Token != false {
			t.Errorf("%s may run as root, or has a token of the cluster: %+v", key, s)
		}
		for _, c := range spec.Containers {
			s := c.SecurityContext
			if !s.ReadOnly || s.Escalation != false || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
				t.Errorf("%s is not confined: %+v", key, s)
			}
			if c.Resources.Limits["memory"] == "" || c.Resources.Requests["cpu"] == "" {
				t.Errorf("%s takes what it can: %+v", key, c.Resources)
			}
		}
	}
	return n
}

// Selectors match these pods, and ports are those on which the program listens.
func TestKubernetesSelectors(t *testing.T) {
	all := cluster(t)
	if selects := checkSelectors(t, all, "Deployment/"); selects != 7 {
		t.Errorf("%d objects select pods, want 7 (two Deployments, two Services, two NetworkPolicies, one PodDisruptionBudget) of %v", selects, slices.Sorted(maps.Keys(all)))
	}
	budget := object(t, all, "PodDisruptionBudget/callgate").Spec.MinAvailable
	if replicas := object(t, all, "Deployment/callgate").Spec.Replicas; budget < 1 || budget >= replicas {
		t.Errorf("%d of %d replicas must be available", budget, replicas)
	}
	for name, port := range map[string]string{
		"callgate":   portOf(t, object(t, all, "ConfigMap/callgate").Data["callgate.yaml"], "listen: "),
		"sampletool": portOf(t, strings.Join(object(t, all, "Deployment/sampletool").Spec.Template.Spec.Containers[0].Args, " ")+"\n", "--listen "),
	} {
		ports := object(t, all, "Deployment/"+name).Spec.Template.Spec.Containers[0].Ports
		if len(ports) != 1 || port != strconv.Itoa(ports[0].ContainerPort) {
			t.Errorf("%s listens on %s; its container says %v", name, port, ports)
		}
	}
}

// checkSelectors: what selects pods matches those of the workload of its own name. It returns how
// many objects select pods.
func checkSelectors(t *testing.T, all map[string]manifest, kind string) int {
	t.Helper()
	selects := 0
	for key, m := range all {
		wants := m.Spec.Selector.labels()
		if m.Kind == "NetworkPolicy" {
			wants = m.Spec.PodSelector.labels()
		}
		if len(wants) == 0 || m.Kind == "ServiceMonitor" {
			continue
		}
		selects++
		pods := object(t, all, kind+strings.TrimSuffix(m.Metadata.Name, "-pods")).Spec.Template
		for name, value := range wants {
			if pods.Metadata.Labels[name] != value {
				t.Errorf("%s selects %s=%s; the pods have %v", key, name, value, pods.Metadata.Labels)
			}
		}
	}
	return selects
}

// portOf is the port of the address that follows a word.
func portOf(t *testing.T, body, term string) string {
	t.Helper()
	_, after, _ := strings.Cut(body, term)
	address, _, _ := strings.Cut(after, "\n")
	_, port, err := net.SplitHostPort(strings.TrimSpace(address))
	if err != nil {
		t.Fatal(err)
	}
	return port
}
