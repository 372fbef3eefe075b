package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/audit/checkpoint"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/identity"
)

// nobodyListens is an address where Redis is not.
const nobodyListens = "127.0.0.1:1"

// signingSecrets never leave the gateway: they sign.
var signingSecrets = []string{"sign-key", "callback-keys", "notify-key", "notify-previous", "hook-key"}

// echoingPeer is every peer of a gateway: it notes what it gets, and answers with that, as a failure.
type echoingPeer struct {
	mu             sync.Mutex
	heads, bodies  strings.Builder
	tokens, models int
}

func (p *echoingPeer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p.mu.Lock()
	user, password, _ := r.BasicAuth()
	head := fmt.Sprintln(r.URL, r.Header, user, password)
	p.heads.WriteString(head)
	p.bodies.Write(body)
	p.tokens++
	number := p.tokens
	p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	echo, err := json.Marshal(map[string]any{"error": map[string]string{"message": head, "type": head, "code": "x"}, "echo": head})
	if err != nil {
		return
	}
	switch kind := strings.Trim(r.URL.Path, "/"); {
	case strings.HasPrefix(kind, "token"):
		if !strings.Contains(kind, "bad") {
			fmt.Fprintf(w, `{"access_token":"canary-token-%d-%s","token_type":"bearer","expires_in":3600}`, number, strings.ReplaceAll(kind, "/", "-"))
			return
		}
		w.WriteHeader(http.StatusBadRequest)
	case strings.HasPrefix(kind, "ok"):
		io.WriteString(w, `{"ok":true}`)
		return
	case strings.HasPrefix(kind, "redirect"):
		w.Header().Set("Location", "/elsewhere?"+user+password)
		w.WriteHeader(http.StatusTemporaryRedirect)
	case strings.HasPrefix(kind, "up/"):
		p.mu.Lock()
		p.models++
		status := []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusInternalServerError, http.StatusOK}[p.models%4]
		p.mu.Unlock()
		w.WriteHeader(status)
	case strings.HasPrefix(kind, "hook"):
	default:
		w.WriteHeader(http.StatusInternalServerError)
	}
	w.Write(echo)
}

// seen is what the peer got: heads with credentials, and bodies.
func (p *echoingPeer) seen() (heads, bodies string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heads.String(), p.bodies.String()
}

// plantedSecrets writes the secrets of all places into files, and returns their texts by their names.
func plantedSecrets(t *testing.T, folder string) map[string]string {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	planted := map[string]string{}
	for _, names := range secretPlaces {
		for _, name := range names {
			planted[name] = "canary-" + name
		}
	}
	for _, name := range []string{"notify-key", "notify-previous", "hook-key"} {
		planted[name] = "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(name, 2)+strings.Repeat("k", 10)))
	}
	private, _, err := checkpoint.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	planted["sign-key"] = string(private)
	planted["callback-keys"] = string((*identity.CallbackKeys)(nil).Rotate(time.Now(), 0).Encode())
	planted["redis-url"] = "redis://someone:canary-redis-url@" + nobodyListens
	for name, text := range planted {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return planted
}

// needles are the texts by which a secret is found, wherever it went.
func needles(name, text string) []string {
	switch name {
	case "sign-key", "callback-keys":
		var long []string
		for _, word := range strings.Fields(text) {
			if len(word) > 30 {
				long = append(long, word)
			}
		}
		return long
	case "redis-url":
		return []string{"canary-redis-url"}
	}
	return []string{strings.TrimPrefix(text, "whsec_")}
}

// TestSecretsStaySecret plants a secret wherever a configuration can have one, has every peer fail with
// what it was sent, and looks for the secrets in everything that the gateway says and writes.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	places := secretsOfSchemas(t)
	for _, place := range places {
		if secretPlaces[place] == nil {
			t.Errorf("%s can have a secret, and no canary is planted there", place)
		}
	}
	for place := range secretPlaces {
		if !slices.Contains(places, place) {
			t.Errorf("%s has a canary, and no schema has a secret there", place)
		}
	}
	peer := &echoingPeer{}
	server := httptest.NewServer(peer)
	defer server.Close()
	at := func(path string) string { return fmt.Sprintf("%q", server.URL+path) }
	const loopback = "addresses: [127.0.0.1/32]"
	oauth := func(kind, token string) string {
		return fmt.Sprintf("{in: oauth2, token_url: %s, client_id: me, client_secret: \"file:secrets/%s-client\", %s}", at(token), kind, loopback)
	}
	forms := func(kind string) map[string]string {
		file := func(name string) string { return fmt.Sprintf("\"file:secrets/%s-%s\"", kind, name) }
		return map[string]string{
			"bearer": file("bearer"),
			"header": "{in: header, name: X-Api-Key, prefix: \"Key \", value: " + file("header") + "}",
			"basic":  "{in: basic, user: " + file("user") + ", password: " + file("password") + "}",
			"oauth":  oauth(kind, "/token/"+kind),
			"broken": oauth(kind, "/token/bad/"+kind),
		}
	}
	var tools, servers, upstreams strings.Builder
	var names, modelNames []string
	tools.WriteString("tools:\n")
	oneTool := func(name, path, credential string) {
		fmt.Fprintf(&tools, "  - {name: %s, effect: once, input_schema: {type: object, properties: {n: {type: integer}}}, run: {type: http, url: %s, timeout: 20s, %s, credential: %s}}\n", name, at(path), loopback, credential)
		names = append(names, name)
	}
	fromCommand := "{in: header, name: X-Api-Key, value: {command: [cat, secrets/tool-command], timeout: 30s}}"
	for form, credential := range forms("tool") {
		for _, path := range []string{"ok", "fail", "redirect"} {
			oneTool(form+"_"+path, "/"+path+"/"+form, credential)
		}
	}
	oneTool("command_fail", "/fail", fromCommand)
	oneTool("hooked", "/ok", "\"file:secrets/tool-bearer\"")
	oneTool("asked", "/ok", "\"file:secrets/tool-bearer\"")
	fmt.Fprintf(&tools, "  - {name: later, effect: once, input_schema: {type: object}, run: {type: callback, tool: later, url: %s, timeout: 20s, %s}}\n", at("/callback"), loopback)
	names = append(names, "later")
	servers.WriteString("servers:\n")
	for form, credential := range forms("server") {
		fmt.Fprintf(&servers, "  - {name: s_%s, type: mcp, url: %s, timeout: 20s, %s, credential: %s}\n", form, at("/mcp/"+form), loopback, credential)
	}
	upstreams.WriteString("upstreams:\n")
	upstreamForms := forms("upstream")
	upstreamForms["key"] = ""
	for form, credential := range upstreamForms {
		line := "credential: " + credential
		if form == "key" {
			line = "key: \"file:secrets/upstream-key\""
		}
		fmt.Fprintf(&upstreams, "  - {name: u_%s, base_url: %s, retries: 0, models: [m_%s], %s}\n", form, at("/up/"+form), form, line)
		modelNames = append(modelNames, "m_"+form)
	}
	main := func(redis string) string {
		return "server: {" + anyPort + "}\nregistry: {files: [tools/*.yaml]}\nservers: servers.yaml\nupstreams: upstreams.yaml\nhooks: hooks.yaml\napprovals: approvals.yaml\nlimits: limits.yaml\n" +
			"audit: {sign_key: \"file:secrets/sign-key\", otlp: {endpoint: " + at("/otlp/audit") + ", headers: {X-Audit: \"file:secrets/audit-header\"}}}\n" +
			"callbacks: {keys: \"file:secrets/callback-keys\"}\n" +
			"telemetry: {traces: {endpoint: " + at("/otlp/traces") + ", content: true, headers: {X-Trace: \"file:secrets/trace-header\"}}}\n" + redis
	}
	hooks := "hooks: [{name: guard, at: [call, result], tools: [hooked], url: " + at("/hook") + ", " + loopback + ", timeout: 20s, key: \"file:secrets/hook-key\", headers: {X-Hook: \"file:secrets/hook-header\"}}]\n"
	files := func(redis string) map[string]string {
		return map[string]string{
			"callgate.yaml":  main(redis),
			"limits.yaml":    "replicas: 1\n",
			"policy.csv":     "p, Analyst, *, *, , allow\np, Analyst, *, asked, , ask:people\n",
			"tools/all.yaml": tools.String(), "servers.yaml": servers.String(), "upstreams.yaml": upstreams.String(), "hooks.yaml": hooks,
			"approvals.yaml": "rules: {people: {}}\nnotify: {url: " + at("/notify") + ", key: \"file:secrets/notify-key\", previous_key: \"file:secrets/notify-previous\", addresses: [127.0.0.1]}\n",
		}
	}
	for run, redis := range map[string]string{
		"without Redis": "",
		"url":           "redis: {url: \"file:secrets/redis-url\"}\n",
		"sentinel":      "redis: {sentinel: {master: m, addresses: [\"" + nobodyListens + "\"], username: one, password: \"file:secrets/sentinel-password\"}, username: two, password: \"file:secrets/redis-password\"}\n",
	} {
		if redis != "" && !app.Has(configs.RedisLimiter) {
			continue
		}
		config, data := layout(t, files(redis))
		dir := filepath.Dir(config)
		planted, said := plantedSecrets(t, filepath.Join(dir, "secrets")), map[string]string{}
		// Places start at the file that names them.
		if err := os.Symlink("../secrets", filepath.Join(dir, "tools", "secrets")); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"config", "check", config}, {"config", "check", "--format", "json", config}} {
			_, stdout, stderr := command(t, nil, args...)
			said[run+strings.Join(args, " ")] = stdout + stderr
		}
		g := serveGate(t, config)
		var answers strings.Builder
		note := func(r reply) { fmt.Fprintln(&answers, r.status, r.header, r.body) }
		call := func(name string) {
			body := `{"tool":{"name":"` + name + `","arguments":{}}}`
			note(g.ask(t, http.MethodPost, "/v1/calls", body, "Content-Type", "text/plain"))
		}
		rounds := 1
		if redis == "" {
			rounds = 2
			for _, name := range names {
				call(name)
			}
			for range 4 { // each status of the peer
				for _, model := range modelNames {
					note(g.ask(t, http.MethodPost, "/v1/chat/completions", `{"model":"`+model+`","messages":[{"role":"user","content":"hi"}]}`, "Content-Type", "application/json"))
				}
			}
			eventually(t, "each peer is asked", func() bool {
				heads, _ := peer.seen()
				for _, path := range []string{"/otlp/audit", "/otlp/traces", "/notify", "/hook", "/callback", "/mcp/bearer", "/mcp/header", "/mcp/basic", "/mcp/oauth", "/token/bad/server"} {
					if !strings.Contains(heads, path) {
						return false
					}
				}
				return true
			})
		}
		for round := range rounds {
			paths := []string{"/metrics", "/readyz", "/v1/config", "/v1/status", "/v1/tools", "/v1/policy", "/v1/decisions", "/v1/limits", "/v1/approvals"}
			for _, path := range append(paths, g.consolePages(t)...) {
				note(g.askAdmin(t, path))
			}
			if round > 0 || redis != "" {
				break
			}
			// A secret stands where its place belongs, and then the files are emptied.
			literal := strings.Replace(hooks, "file:secrets/hook-key", planted["hook-key"], 1) + "# end\n"
			if err := os.WriteFile(filepath.Join(dir, "hooks.yaml"), []byte(literal), 0o600); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the bad file is reported", func() bool { return strings.Contains(g.askAdmin(t, "/readyz").body, "hooks.yaml") })
			for name := range planted {
				if err := os.Truncate(filepath.Join(dir, "secrets", name), 0); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range names {
				call(name)
			}
		}
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", g.cmd.Process.Pid)); err == nil {
			said[run+" command line"] = string(line)
		}
		if code := g.stop(t); code != exitAccepted {
			t.Errorf("%s: exit code %d", run, code)
		}
		said[run+" standard output"], said[run+" log"], said[run+" answers"] = g.stdout.String(), g.stderr.String(), answers.String()
		err := filepath.WalkDir(data, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			said[run+" "+filepath.Base(path)] = string(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		checkSilence(t, planted, said)
		if redis == "" {
			checkUse(t, planted, peer)
		}
	}
}

// checkSilence looks for the secrets, and for tokens, in what was said.
func checkSilence(t *testing.T, planted, said map[string]string) {
	t.Helper()
	for where, text := range said {
		for _, name := range slices.Sorted(maps.Keys(planted)) {
			for _, needle := range append(needles(name, planted[name]), base64.StdEncoding.EncodeToString([]byte(planted[name]))) {
				if i := strings.Index(text, needle); i >= 0 {
					t.Errorf("%s is in the %s: …%q…", name, where, text[max(0, i-200):min(len(text), i+60)])
				}
			}
		}
		if i := strings.Index(text, "canary-token-"); i >= 0 {
			t.Errorf("a token is in the %s: …%q…", where, text[max(0, i-200):min(len(text), i+60)])
		}
	}
}

// checkUse checks that the secrets were used, and none was sent but as a credential.
func checkUse(t *testing.T, planted map[string]string, peer *echoingPeer) {
	t.Helper()
	heads, bodies := peer.seen()
	checkSilence(t, planted, map[string]string{"bodies of requests": bodies})
	for name, text := range planted {
		signs := slices.Contains(signingSecrets, name)
		for _, needle := range needles(name, text) {
			if sent := strings.Contains(heads, needle); sent == signs && !strings.HasPrefix(name, "redis-") && name != "sentinel-password" {
				t.Errorf("%s was sent: %v", name, sent)
			}
		}
	}
	if strings.Contains(heads, "/elsewhere") {
		t.Error("a redirect was followed")
	}
	if strings.Count(heads, "Webhook-Signature") < 2 || !strings.Contains(bodies, "/v1/callbacks/") {
		t.Error("nothing was signed")
	}
}
