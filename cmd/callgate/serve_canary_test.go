package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// canary is a secret that is planted: its text, and where it may be seen.
type canary struct {
	text string
	may  []string
}

// TestCanaries plants secrets wherever a gateway meets one, provokes errors with
// them, and looks for them in everything that it writes.
func TestCanaries(t *testing.T) {
	t.Parallel()
	one, _, spy := threeCallers()
	near := one.key[:len(one.key)-2] + "zz"
	planted := map[string]canary{
		"key":             {text: one.key},
		"near miss":       {text: near},
		"header":          {text: "canary-header-1"},
		"secret argument": {text: "canary-argument-2", may: []string{"own answers"}},
		"completion":      {text: "canary-completion-3", may: []string{"own answers"}},
		"name of a tool":  {text: "canary-name-14", may: []string{"own answers", "audit log"}},
		"tool url":        {text: "canary-url-4"},
		"environment":     {text: "canary-environment-5"},
		"policy":          {text: "canary-policy-6"},
		"root":            {text: "canary-root-7"},
		"idempotency key": {text: "canary-idempotency-8"},
		"id":              {text: "canary-id-9", may: []string{"own answers", "audit log"}},
		"thread":          {text: "canary-thread-10", may: []string{"audit log"}},
		"tool error":      {text: "canary-tool-11"},
		"path":            {text: "canary-path-12"},
		"user":            {text: "canary-user-13"},
	}
	text := func(name string) string { return planted[name].text }
	tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // else nobody notices that the gateway has left
		switch r.URL.Path {
		case "/fail":
			http.Error(w, text("tool error"), http.StatusInternalServerError)
		case "/garbage":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"a":"`+text("tool error")+`",}`)
		case "/redirect":
			http.Redirect(w, r, "http://127.0.0.1:1/"+text("tool error"), http.StatusTemporaryRedirect)
		case "/hang":
			<-r.Context().Done()
		default:
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"ok":true}`)
		}
	}))
	defer tool.Close()
	defer tool.CloseClientConnections()
	var tools strings.Builder
	tools.WriteString("tools:\n")
	urls := map[string]string{"hit": tool.URL + "/hit", "fail": tool.URL + "/fail", "garbage": tool.URL + "/garbage", "redirect": tool.URL + "/redirect", "hang": tool.URL + "/hang", "gone": "http://127.0.0.1:1/", "blocked": "http://127.0.0.2:1/"}
	for name, url := range urls {
		fmt.Fprintf(&tools, "  - {name: %s, effect: once, input_schema: {type: object, properties: {n: {type: integer}, file: {type: string, x-boundary: path}, secret: {type: string, maxLength: 30, x-secret: true}}}, run: {type: http, url: %q, timeout: 300ms, addresses: [127.0.0.1/32]}}\n", name, url+"?token="+text("tool url"))
	}
	policy := "p, Spy, *, *, , allow\np, Analyst, *, *, , allow\np, Analyst, *, *, \"has(args.secret) && args.secret == '" + text("policy") + "'\", deny\n"
	config, data := layout(t, map[string]string{
		"callgate.yaml":   "server: {" + anyPort + "}\nauth: {mode: keys}\nprincipals: principals.yaml\n",
		"principals.yaml": principalsFile(one, spy),
		"policy.csv":      policy,
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [/srv/" + text("root") + "]}}}, globex: {projects: {gamma: {agents: [Spy]}}}}\n",
		"tools/all.yaml":  tools.String(),
	})
	g := serveGate(t, config, "CANARY="+text("environment"))

	var own, others strings.Builder
	seen := map[string]bool{}
	note := func(into *strings.Builder, r reply) {
		seen[r.code()] = true
		fmt.Fprintln(into, r.status, r.header, r.body)
	}
	headers := func(more ...string) []string {
		return append([]string{"Authorization", "Bearer " + one.key, "X-Canary", text("header"), "User-Agent", text("header"), "Cookie", text("header")}, more...)
	}
	calls := []string{
		text("completion"), `{"tool":{"name":"` + text("name of a tool") + `","arguments":{}}}`, `{"` + text("completion") + `":1}`,
		`{"tool":{"name":"hit","arguments":{"` + text("completion") + `":1}}}`, `{"tool":{"name":"hit","arguments":{"n":"` + text("completion") + `"}}}`,
		`{"tool":{"name":"hit","arguments":{"n":1,"n":"` + text("completion") + `"}}}`, `{"tool":{"name":"hit","arguments":{}},"agent":"` + text("completion") + `"}`,
		`{"tool":{"name":"hit","arguments":{"secret":"` + text("secret argument") + strings.Repeat("x", 30) + `"}}}`, `{"tool":{"name":"hit","arguments":{"secret":"` + text("policy") + `"}}}`,
		`{"tool":{"name":"hit","arguments":{"file":"/etc/passwd"}}}`, "\xff" + text("completion"),
	}
	for name := range urls {
		calls = append(calls, `{"tool":{"name":"`+name+`","arguments":{"secret":"`+text("secret argument")+`"}}}`)
	}
	for i, c := range calls {
		more := headers("Content-Type", "text/plain", "Callgate-Id", text("id"), "Callgate-Thread", text("thread"), "Callgate-User", text("user"), "Idempotency-Key", fmt.Sprint(text("idempotency key"), i))
		note(&own, g.ask(t, http.MethodPost, "/v1/check", c, more...))
		first := g.ask(t, http.MethodPost, "/v1/calls", c, more...)
		note(&own, first)
		note(&own, g.ask(t, http.MethodPost, "/v1/calls", c, more...)) // a repeat
		note(&own, g.ask(t, http.MethodPost, "/v1/calls", `{"tool":{"name":"hit","arguments":{}}}`, more...))
		note(&others, g.ask(t, http.MethodGet, "/v1/calls/"+first.header.Get("Callgate-Call-Id"), "", "Authorization", "Bearer "+spy.key))
		if params, isCall := strings.CutPrefix(strings.TrimSuffix(c, "}"), `{"tool":`); isCall {
			note(&own, g.ask(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":"`+text("id")+`","method":"tools/call","params":`+params+`}`, headers("Content-Type", "application/json")...))
		}
	}
	note(&own, g.ask(t, http.MethodPost, "/v1/calls", `{"`+text("completion")+`":1}`, headers("Content-Type", "application/json")...))
	note(&own, g.ask(t, http.MethodPost, "/v1/calls", "x", headers("Content-Type", "text/"+text("header"))...))
	note(&own, g.ask(t, http.MethodPost, "/v1/calls", "x", headers("Content-Type", "text/plain", "Callgate-"+text("header"), "x")...))
	note(&own, g.ask(t, http.MethodGet, "/"+text("path")+"?k="+one.key, "", headers()...))
	note(&own, g.ask(t, http.MethodGet, "/v1/tools?k="+one.key, "", headers()...))
	note(&own, g.ask(t, http.MethodGet, "/v1/calls/"+text("path"), "", headers()...))
	note(&own, g.ask(t, strings.ToUpper(strings.ReplaceAll(text("path"), "-", "")), "/v1/calls", "", headers()...))
	note(&own, g.ask(t, http.MethodGet, "/v1/tools", "", headers()...))
	note(&own, g.ask(t, http.MethodPost, "/v1/check", "x", "Content-Type", "text/plain", "Authorization", "Bearer "+near))
	note(&own, g.ask(t, http.MethodPost, "/v1/check", "x", "Content-Type", "text/plain", "Authorization", "Basic "+one.key))
	note(&others, g.ask(t, http.MethodGet, "/v1/tools", "", "Authorization", "Bearer "+spy.key))
	for _, raw := range []string{"GET / HTTP/1.1\r\nX: " + text("header") + "\x00\r\n\r\n", "\x16\x03" + text("header") + "\r\n\r\n", "GET /" + text("path") + " HTTP/9\r\n\r\n"} {
		fmt.Fprintln(&own, answers(t, g, []byte(raw)))
	}
	// A key where its digest belongs does not load, and is not shown.
	principals := filepath.Join(filepath.Dir(config), "principals.yaml")
	if err := os.WriteFile(principals, []byte(strings.Replace(principalsFile(one, spy), one.sha, one.key, 1)+"# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var ready, metrics reply
	eventually(t, "the bad file is reported", func() bool {
		ready, metrics = g.askAdmin(t, "/readyz"), g.askAdmin(t, "/metrics")
		return strings.Contains(ready.body, "principals.yaml")
	})
	note(&others, g.ask(t, http.MethodGet, "/readyz", ""))
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	verified(t, data)
	log, err := os.ReadFile(filepath.Join(data, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{"unknown_tool", "not_a_tool_call", "duplicate_key", "agent_mismatch", "invalid_utf8", "unexpected_argument", "permission_denied", "boundary_violation", "tool_failed", "outcome_unknown", "invalid_result", "tool_unavailable", "address_blocked", "idempotency_conflict", "unauthenticated", "bad_request", "not_found", "unsupported_media_type", "method_not_allowed"} {
		if !seen[code] {
			t.Errorf("%s was not provoked", code)
		}
	}
	for where, what := range map[string]string{
		"standard output": g.stdout.String(), "log": g.stderr.String(), "audit log": string(log), "metrics": metrics.body, "readyz": ready.body,
		"own answers": own.String(), "answers to others": others.String(),
	} {
		if what == "" && where != "standard output" {
			t.Errorf("there is no %s", where)
		}
		for name, c := range planted {
			allowed := false
			for _, place := range c.may {
				allowed = allowed || place == where
			}
			if at := strings.Index(strings.ToLower(what), strings.ToLower(c.text)); at >= 0 && !allowed {
				t.Errorf("the %s is in the %s: …%q…", name, where, what[max(0, at-200):min(len(what), at+60)])
			}
		}
	}
	for _, c := range []string{text("id"), text("thread")} {
		if !strings.Contains(string(log), c) {
			t.Errorf("%s, which the audit log should hold, is not there", c)
		}
	}
}

// TestSeriesAreBounded: what callers make up adds no series to the metrics.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	one, _, _ := threeCallers()
	config, _ := keyedConfig(t, one)
	g := serveGate(t, config)
	series := func() int { return strings.Count(g.askAdmin(t, "/metrics").body, "\n") }
	round := func(i int) {
		key := []string{"Authorization", "Bearer " + one.key, "Content-Type", "text/plain"}
		name := fmt.Sprintf("made-up-%d", i)
		g.ask(t, http.MethodPost, "/v1/calls", "hi", append(key, "Callgate-Agent", name)...)
		g.ask(t, http.MethodPost, "/v1/check", `{"tool":{"name":"`+name+`","arguments":{}}}`, key...)
		g.ask(t, http.MethodPost, "/v1/check", `{"tool":{"name":"echo","arguments":{}}}`, append(key, "Callgate-Workspace", name)...)
		g.ask(t, http.MethodGet, "/"+name, "", key...)
		g.ask(t, http.MethodGet, "/v1/calls/"+name, "", key...)
		g.ask(t, strings.ToUpper(name), "/v1/tools", "", key...)
		g.ask(t, http.MethodGet, "/v1/tools", "", "Authorization", "Bearer "+name)
	}
	// The first two rounds bring the series of what is asked here, and those of
	// the runtime's own.
	round(0)
	series()
	round(1)
	before := series()
	rounds := 1000
	if testing.Short() {
		rounds = 50
	}
	for i := range rounds {
		round(i + 2)
	}
	if after := series(); after != before {
		t.Errorf("%d lines of metrics became %d", before, after)
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
}
