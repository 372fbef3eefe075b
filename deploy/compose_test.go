package deploy_test

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// compose is what these tests need of docker-compose.yml.
type compose struct {
	Services map[string]service
	Networks map[string]struct {
		Internal bool
		IPAM     struct {
			Config []struct{ Subnet string }
		}
	}
	Volumes map[string]any
}

type service struct {
	Image       string
	Build       struct{ Context, Target string }
	Command     []string
	Entrypoint  any
	Ports       []string
	Networks    []string
	Profiles    []string
	Environment map[string]string
	Volumes     []mount
	Healthcheck struct{ Test []string }
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	ReadOnly    bool                                  `yaml:"read_only"`
	CapDrop     []string                              `yaml:"cap_drop"`
	CapAdd      []string                              `yaml:"cap_add"`
	SecurityOpt []string                              `yaml:"security_opt"`
	Privileged  bool
	User        string
	NetworkMode string `yaml:"network_mode"`
	GracePeriod string `yaml:"stop_grace_period"`
}

type mount struct {
	Type, Source, Target string
	ReadOnly             bool `yaml:"read_only"`
}

func readCompose(t *testing.T) compose {
	t.Helper()
	c := readYAML[compose](t, "../docker-compose.yml")[0]
	for _, name := range []string{"gateway-a", "gateway-b", "sampletool", "samplemodel", "redis"} {
		if _, ok := c.Services[name]; !ok {
			t.Fatalf("docker-compose.yml has no service %s", name)
		}
	}
	return c
}

// stages are the stages of the Dockerfile, each with its own lines.
func stages(t *testing.T) map[string]string {
	t.Helper()
	from := regexp.MustCompile(`(?m)^FROM \S+ AS (\S+)$`)
	file := text(t, "../Dockerfile")
	found := map[string]string{}
	at := from.FindAllStringSubmatchIndex(file, -1)
	if len(at) != strings.Count(file, "\nFROM ") {
		t.Fatal("a stage of the Dockerfile has no name")
	}
	for i, m := range at {
		end := len(file)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		found[file[m[2]:m[3]]] = file[m[0]:end]
	}
	return found
}

// commands are the words that callgate --help lists.
func commands(t *testing.T) []string {
	t.Helper()
	o := callgate(t, "", "--help")
	_, list, _ := strings.Cut(o.stdout, "\nTo begin:\n")
	list, _, ok := strings.Cut(list, "\nFlags:\n")
	if !ok {
		t.Fatalf("callgate --help lists no commands: %s", o.stdout)
	}
	var terms []string
	for line := range strings.SplitSeq(list, "\n") {
		if strings.HasPrefix(line, "  ") { // others name a group
			terms = append(terms, strings.Fields(line)[0])
		}
	}
	return terms
}

// accepts checks that a program takes these arguments, without acting on them:
// its help is asked for behind them, and it refuses unknown words and flags first.
func accepts(t *testing.T, where string, args []string) {
	t.Helper()
	if len(args) == 0 || !slices.Contains(commands(t), args[0]) {
		t.Errorf("%s: %q does not begin with a command of callgate", where, args)
		return
	}
	if o := callgate(t, "", append(slices.Clone(args), "--help")...); o.code != 0 {
		t.Errorf("%s: callgate does not take %q: %s", where, args, o.stderr)
	}
}

func TestComposeCommands(t *testing.T) {
	targets := stages(t)
	for name, s := range readCompose(t).Services {
		if s.Build.Target == "" {
			continue
		}
		if _, ok := targets[s.Build.Target]; !ok {
			t.Errorf("%s is built from the stage %q, which the Dockerfile does not have", name, s.Build.Target)
		}
		if s.Entrypoint != nil {
			t.Errorf("%s has an entry point of its own; the image's is what is tested", name)
		}
		test := s.Healthcheck.Test
		if len(test) < 3 || test[0] != "CMD" || test[1] != "/"+s.Build.Target || test[2] != "healthcheck" {
			t.Errorf("%s: its health is checked by %q; want its own program, and no shell", name, test)
			continue
		}
		if s.Build.Target == "callgate" {
			accepts(t, name+", command", s.Command)
			accepts(t, name+", healthcheck", test[2:])
		}
	}
	for name, s := range readCompose(t).Services {
		var profiles []string
		if name == "prometheus" || name == "grafana" {
			profiles = []string{"monitoring"}
		}
		if !slices.Equal(s.Profiles, profiles) {
			t.Errorf("%s has the profiles %q, want %q", name, s.Profiles, profiles)
		}
		if tag := regexp.MustCompile(`^[a-z]+(/[a-z]+)?:v?[0-9]+\.[0-9]+`); s.Build.Target == "" && !tag.MatchString(s.Image) {
			t.Errorf("%s is the image %q, want one of a stated version", name, s.Image)
		}
	}
}

func TestDockerfileCommands(t *testing.T) {
	list := regexp.MustCompile(`"([^"]*)"`)
	all := stages(t)
	for _, name := range []string{"callgate", "sampletool", "samplemodel"} {
		stage := all[name]
		if !strings.Contains(stage, "\nENTRYPOINT [\"/"+name+"\"]\n") || !strings.Contains(stage, "COPY --from=build /out/"+name+" /"+name+"\n") {
			t.Errorf("the stage %s does not start the program that it copies:\n%s", name, stage)
		}
		if !strings.HasPrefix(stage, "FROM base ") || !strings.HasPrefix(all["base"], "FROM scratch ") || !strings.Contains(all["base"], "\nUSER 65532:65532\n") || strings.Contains(stage, "\nUSER ") {
			t.Errorf("the stage %s is not from scratch with the user 65532", name)
		}
	}
	for _, c := range regexp.MustCompile(`(?m)^(?:CMD|HEALTHCHECK .* CMD) (\[.*\])$`).FindAllStringSubmatch(all["callgate"], -1) {
		var terms []string
		for _, w := range list.FindAllStringSubmatch(c[1], -1) {
			terms = append(terms, w[1])
		}
		if terms[0] == "/callgate" {
			terms = terms[1:]
		}
		accepts(t, "Dockerfile", terms)
	}
}

func TestComposeIsConfined(t *testing.T) {
	for name, s := range readCompose(t).Services {
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) > 0 || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") || s.Privileged || s.NetworkMode != "" {
			t.Errorf("%s is not confined: %+v", name, s)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s publishes %s beyond loopback", name, p)
			}
		}
		if s.Build.Target == "" && (s.User == "" || strings.HasPrefix(s.User, "0") || strings.HasPrefix(s.User, "root")) {
			t.Errorf("%s runs as root", name)
		}
	}
}

func TestComposeMounts(t *testing.T) {
	c := readCompose(t)
	owner := map[string]string{}
	for name, s := range c.Services {
		for _, m := range s.Volumes {
			switch m.Type {
			case "bind":
				// A gateway notices an edit in a folder; what watches it is restarted.
				info, err := os.Stat(filepath.Join("..", m.Source))
				if err != nil || !info.IsDir() && len(s.Profiles) == 0 || !m.ReadOnly {
					t.Errorf("%s mounts %s, which is no folder here, or is not read-only: %v", name, m.Source, err)
				}
			case "volume":
				if _, ok := c.Volumes[m.Source]; !ok {
					t.Errorf("%s mounts the volume %s, which is not declared", name, m.Source)
				}
				if other, taken := owner[m.Source]; taken {
					t.Errorf("%s and %s share the volume %s", name, other, m.Source)
				}
				owner[m.Source] = name
			default:
				t.Errorf("%s has a mount of another type: %+v", name, m)
			}
		}
		for other, d := range s.DependsOn {
			if o, ok := c.Services[other]; !ok || len(o.Profiles) > 0 || d.Condition != "service_healthy" {
				t.Errorf("%s depends on %s, which does not start with it", name, other)
			}
		}
	}
	for volume := range c.Volumes {
		if owner[volume] == "" {
			t.Errorf("nothing mounts the volume %s", volume)
		}
	}
}

// TestComposeMonitoring: Prometheus scrapes the admin listener of every gateway by the key that
// deploy/principals writes, with the alerts; Grafana asks it and has the dashboard.
func TestComposeMonitoring(t *testing.T) {
	c := readCompose(t)
	// placed is the file of this repository that a service has at a path.
	placed := func(service, path string) string {
		for _, m := range c.Services[service].Volumes {
			if rest, ok := strings.CutPrefix(path, m.Target); ok && m.Type == "bind" {
				return filepath.Join("..", m.Source, filepath.FromSlash(rest))
			}
		}
		t.Errorf("%s has nothing at %s", service, path)
		return ""
	}
	_, port, err := net.SplitHostPort(readYAML[settings](t, "compose/callgate.yaml")[0].Server.AdminListen)
	if err != nil {
		t.Fatal(err)
	}
	read := readYAML[struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			Authorization struct {
				CredentialsFile string `yaml:"credentials_file"`
			}
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}](t, placed("prometheus", "/etc/prometheus/prometheus.yml"))[0]
	if len(read.RuleFiles) != 1 || placed("prometheus", read.RuleFiles[0]) != filepath.Join("..", "deploy", "monitoring", "alerts.yaml") {
		t.Errorf("rules %q", read.RuleFiles)
	}
	scrape := read.ScrapeConfigs[0]
	if got := scrape.StaticConfigs[0].Targets; !slices.Equal(got, []string{"gateway-a:" + port, "gateway-b:" + port}) {
		t.Errorf("scrapes %q, want both gateways at %s", got, port)
	}
	key := placed("prometheus", scrape.Authorization.CredentialsFile)
	if script := text(t, "principals"); !strings.Contains(script, "\noperator="+filepath.ToSlash(strings.TrimPrefix(key, "../"))+"\n") {
		t.Errorf("deploy/principals does not write %s", key)
	}
	if ignored := text(t, filepath.Join(filepath.Dir(key), ".gitignore")); !strings.Contains(ignored, "\n/"+filepath.Base(key)+"\n") {
		t.Errorf("%s, which is a key, can be committed", key)
	}
	source := readYAML[struct{ Datasources []struct{ URL string } }](t, placed("grafana", "/etc/grafana/provisioning/datasources/prometheus.yaml"))[0]
	if u, err := url.Parse(source.Datasources[0].URL); err != nil || c.Services[u.Hostname()].Image == "" || u.Hostname() != "prometheus" {
		t.Errorf("Grafana asks %q, which is no service: %v", source.Datasources[0].URL, err)
	}
	provider := readYAML[struct {
		Providers []struct{ Options struct{ Path string } }
	}](t, placed("grafana", "/etc/grafana/provisioning/dashboards/callgate.yaml"))[0]
	home := c.Services["grafana"].Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	if placed("grafana", home) != filepath.Join("..", "deploy", "monitoring", "dashboard.json") || !strings.HasPrefix(home, provider.Providers[0].Options.Path+"/") {
		t.Errorf("the dashboard is at %s, and looked for in %s", home, provider.Providers[0].Options.Path)
	}
}

// Mounts and variables of the gateways' containers fit the configuration that they read.
func TestComposeFitsItsConfiguration(t *testing.T) {
	c := readCompose(t)
	read := readYAML[settings](t, "compose/callgate.yaml")[0]
	_, port, err := net.SplitHostPort(read.Server.Listen)
	if err != nil {
		t.Fatal(err)
	}
	published := map[string]string{}
	for _, name := range []string{"gateway-a", "gateway-b"} {
		s := c.Services[name]
		at := slices.Index(s.Command, "--config")
		if at < 0 || at+1 == len(s.Command) {
			t.Fatalf("%s: the command %q names no configuration", name, s.Command)
		}
		config, data := false, false
		for _, m := range s.Volumes {
			config = config || m.Type == "bind" && filepath.Clean(m.Source) == "deploy/compose" && m.Target+"/callgate.yaml" == s.Command[at+1]
			data = data || m.Type == "volume" && m.Target == read.DataDir
		}
		if !config || !data {
			t.Errorf("%s: no mount of deploy/compose where %s is, or none at data_dir %s", name, s.Command[at+1], read.DataDir)
		}
		if len(s.Ports) != 1 || !strings.HasSuffix(s.Ports[0], ":"+port) {
			t.Errorf("%s publishes %q; the gateway listens on %s", name, s.Ports, port)
			continue
		}
		if other, taken := published[s.Ports[0]]; taken {
			t.Errorf("%s and %s publish the same port", name, other)
		}
		published[s.Ports[0]] = name
		if last := s.Healthcheck.Test[len(s.Healthcheck.Test)-1]; last != "127.0.0.1:"+port {
			t.Errorf("%s: the health check asks %s; the gateway listens on %s", name, last, port)
		}
		if s.GracePeriod != "40s" {
			t.Errorf("%s: a grace period of %s, want 40s: draining takes 30", name, s.GracePeriod)
		}
	}
	if !strings.Contains(text(t, "compose/.gitignore"), "\n/"+read.Principals+"\n") {
		t.Errorf("%s, which is generated, can be committed", read.Principals)
	}
}

// Every tool is a service of the compose file, on a network with the gateways
// that has no way out, and its addresses are that network's subnet.
func TestComposeTools(t *testing.T) {
	c := readCompose(t)
	files, err := filepath.Glob("compose/tools/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d files of tools: %v", len(files), err)
	}
	for _, file := range files {
		for _, tool := range readYAML[toolFile](t, file)[0].Tools {
			u, err := url.Parse(tool.Run.URL)
			if err != nil {
				t.Fatal(err)
			}
			s, ok := c.Services[u.Hostname()]
			if !ok || len(s.Networks) != 1 {
				t.Errorf("%s is at %s, which is no service on one network", tool.Name, u.Hostname())
				continue
			}
			network := c.Networks[s.Networks[0]]
			if !network.Internal || len(network.IPAM.Config) != 1 || !slices.Equal(tool.Run.Addresses, []string{network.IPAM.Config[0].Subnet}) {
				t.Errorf("%s may be at %v; the network %s is %+v", tool.Name, tool.Run.Addresses, s.Networks[0], network)
			}
			if !slices.Contains(s.Command, "0.0.0.0:"+u.Port()) {
				t.Errorf("%s is at port %s; its service is started by %q", tool.Name, u.Port(), s.Command)
			}
			for _, gateway := range []string{"gateway-a", "gateway-b"} {
				if !slices.Contains(c.Services[gateway].Networks, s.Networks[0]) {
					t.Errorf("%s does not reach %s", gateway, tool.Name)
				}
			}
		}
	}
}

// The model is a service of the compose file, on a network with the gateways.
func TestComposeUpstreams(t *testing.T) {
	c := readCompose(t)
	all := readYAML[struct {
		Upstreams []struct {
			BaseURL string `yaml:"base_url"`
		}
	}](t, "compose/upstreams.yaml")[0].Upstreams
	if len(all) == 0 {
		t.Fatal("there are no upstreams")
	}
	for _, upstream := range all {
		u, err := url.Parse(upstream.BaseURL)
		if err != nil {
			t.Fatal(err)
		}
		s, ok := c.Services[u.Hostname()]
		if !ok || len(s.Networks) != 1 || !slices.Contains(s.Command, "0.0.0.0:"+u.Port()) {
			t.Errorf("%s is no service on one network, or not at that port", u)
			continue
		}
		for _, gateway := range []string{"gateway-a", "gateway-b"} {
			if !slices.Contains(c.Services[gateway].Networks, s.Networks[0]) {
				t.Errorf("%s does not reach %s", gateway, u)
			}
		}
	}
}

// A key or a digest of one that reached an image or the repository would stay.
func TestNothingPrivateIsBuiltIn(t *testing.T) {
	ignored := strings.Split(text(t, "../.dockerignore"), "\n")
	for _, folder := range []string{"/deploy", "/.git", "/callgate-data"} {
		if !slices.Contains(ignored, folder) {
			t.Errorf("%s reaches the build", folder)
		}
	}
}
