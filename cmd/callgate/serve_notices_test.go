package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
)

// hook is an endpoint of notices. It verifies every message.
type hook struct {
	t       *testing.T
	key     string
	wh      *standardwebhooks.Webhook
	url     string
	release chan struct{} // ends the requests that hang

	mu     sync.Mutex
	answer int            // 0: it never answers
	begun  map[string]int // how many requests there were, by the id of the notice
	had    map[string]int // how many of them were acknowledged
	bodies string
}

func newHook(t *testing.T) *hook {
	h := &hook{t: t, release: make(chan struct{}), begun: map[string]int{}, had: map[string]int{}, answer: http.StatusOK}
	h.key = "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	var err error
	if h.wh, err = standardwebhooks.NewWebhook(h.key); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(h.release) })
	h.url = server.URL + "/hook-canary"
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway was killed
	}
	if err := h.wh.VerifyIgnoringTimestamp(body, r.Header); err != nil {
		h.t.Errorf("a message that does not verify: %v", err)
	}
	id := r.Header.Get("webhook-id")
	h.mu.Lock()
	h.begun[id]++
	h.bodies += string(body) + "\n"
	answer := h.answer
	if answer == http.StatusOK {
		h.had[id]++
	}
	h.mu.Unlock()
	if answer == 0 {
		select {
		case <-h.release:
		case <-r.Context().Done():
		}
		return
	}
	w.WriteHeader(answer)
}

func (h *hook) answers(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = status
}

// counts returns how many requests a notice had, and how many were acknowledged.
func (h *hook) counts(id string) (begun, had int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.begun[id], h.had[id]
}

// configured has a configuration send its notices to the hook.
func (h *hook) configured(config string) {
	h.t.Helper()
	rules := fmt.Sprintf("rules: {refunds: {within: 2h}, board: {within: 2h}}\nurl: https://ops.example\nnotify: {url: %q, key: \"env:HOOK_KEY\", addresses: [127.0.0.1]}\n# end\n", h.url)
	if err := os.WriteFile(filepath.Join(filepath.Dir(config), "approvals.yaml"), []byte(rules), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hook) environment() string { return "HOOK_KEY=" + h.key }

// askFor makes a call that asks people, and returns its id.
func askFor(t *testing.T, g *gate, amount int) string {
	t.Helper()
	call := fmt.Sprintf(`{"completion":"{\"tool\":{\"name\":\"payments.refund\",\"arguments\":{\"payment_id\":\"pay_canary1\",\"amount\":%d,\"currency\":\"EUR\"}}}","agent":"Analyst"}`, amount)
	r := g.ask(t, http.MethodPost, "/v1/calls", call, "Content-Type", "application/json")
	var asked struct {
		CallID string `json:"call_id"`
	}
	if err := json.Unmarshal([]byte(r.body), &asked); err != nil || r.status != http.StatusAccepted || asked.CallID == "" {
		t.Fatalf("asked: %d %s", r.status, r.body)
	}
	return asked.CallID
}

// approve approves a call on the command line, and returns what show prints of it before.
func approve(t *testing.T, g *gate, id string) string {
	t.Helper()
	_, shown, _ := command(t, nil, "approvals", "show", id, "--json", "--url", "http://"+g.admin)
	var detail struct{ Digest string }
	if err := json.Unmarshal([]byte(shown), &detail); err != nil {
		t.Fatal(err, shown)
	}
	if code, stdout, stderr := command(t, nil, "approvals", "approve", id, "--digest", detail.Digest, "--url", "http://"+g.admin); code != exitAccepted {
		t.Fatalf("approve: exit code %d: %s%s", code, stdout, stderr)
	}
	return shown
}

// TestNoticesAcrossAKill kills a gateway whose notices nobody has acknowledged: the next process
// sends them, with the same ids, and what was acknowledged not again.
func TestNoticesAcrossAKill(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	config := askingConfig(t)
	main := "server: {" + anyPort + "}\nregistry: {files: [tools.yaml]}\napprovals: approvals.yaml\nlimits: limits.yaml\n# end\n"
	if err := os.WriteFile(config, []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	h.configured(config)
	g := serveGate(t, config, h.environment())
	reported := askFor(t, g, 101)
	eventually(t, "the first is acknowledged", func() bool { _, had := h.counts(reported + "_requested"); return had == 1 })
	eventually(t, "it is settled", func() bool { return g.metric(t, `callgate_notices_total{result="sent"}`) == "1" })
	h.answers(http.StatusServiceUnavailable)
	refused := askFor(t, g, 102)
	eventually(t, "the second is refused", func() bool { begun, _ := h.counts(refused + "_requested"); return begun > 0 })
	h.answers(0)
	hung := askFor(t, g, 103)
	eventually(t, "the third hangs", func() bool { begun, _ := h.counts(hung + "_requested"); return begun > 0 })
	if err := g.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	g.code(t)
	h.answers(http.StatusOK)
	back := serveGate(t, config, h.environment())
	for _, id := range []string{refused, hung} {
		eventually(t, "they are sent by the next process", func() bool { _, had := h.counts(id + "_requested"); return had == 1 })
	}
	shown := approve(t, back, hung)
	pages := "https://ops.example/console/approvals/"
	if !app.Has(configs.Console) {
		pages = "https://ops.example/v1/approvals/"
	}
	if !strings.Contains(shown, `"url":"`+pages+hung+`"`) {
		t.Errorf("show prints no link: %s", shown)
	}
	eventually(t, "the decision is told of", func() bool { _, had := h.counts(hung + "_approved"); return had == 1 })
	if r := back.ask(t, http.MethodPost, "/v1/calls/"+hung+"/resume", ""); r.status != http.StatusOK {
		t.Errorf("resumed: %d %s", r.status, r.body)
	}
	eventually(t, "the end is told of", func() bool { _, had := h.counts(hung + "_used"); return had == 1 })
	if code := back.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, n := range h.had {
		if n != 1 {
			t.Errorf("%s was acknowledged %d times", id, n)
		}
	}
	if h.begun[reported+"_requested"] != 1 || len(h.had) != 5 {
		t.Errorf("requests %v, acknowledged %v", h.begun, h.had)
	}
	logs := g.stderr.String() + back.stderr.String()
	for _, secret := range []string{"canary", h.key, strings.TrimPrefix(h.key, "whsec_")} {
		if strings.Contains(h.bodies, secret) || strings.Contains(logs, secret) {
			t.Errorf("%s is in a notice or in the log: %s%s", secret, h.bodies, logs)
		}
	}
}

// TestNotifyReloads: a gateway that serves takes an endpoint, and tells it of what waits; one whose
// key cannot be read does not load, and the one before stays.
func TestNotifyReloads(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	config := askingConfig(t)
	rules := filepath.Join(filepath.Dir(config), "approvals.yaml")
	main := "server: {" + anyPort + "}\nregistry: {files: [tools.yaml]}\napprovals: approvals.yaml\nlimits: limits.yaml\n# end\n"
	if err := os.WriteFile(config, []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	g := serveGate(t, config, h.environment())
	first := askFor(t, g, 101)
	h.configured(config)
	eventually(t, "the new endpoint is told of what waits", func() bool { _, had := h.counts(first + "_requested"); return had == 1 })

	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	unreadable := strings.Replace(string(text), "env:HOOK_KEY", "env:NO_SUCH_HOOK_KEY", 1)
	if err := os.WriteFile(rules, []byte(unreadable), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a key that is not there is a fault", func() bool {
		faults := strings.Join(g.operators(t).Faults, " ")
		return strings.Contains(faults, "approvals.yaml: notify:") && strings.Contains(faults, "NO_SUCH_HOOK_KEY")
	})
	second := askFor(t, g, 102)
	eventually(t, "the endpoint before is told still", func() bool { _, had := h.counts(second + "_requested"); return had == 1 })
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	// Nor does it start so.
	if code, _, stderr := command(t, nil, "serve", "--config", config); code != exitUsage || !strings.Contains(stderr, "NO_SUCH_HOOK_KEY") {
		t.Errorf("it starts without its key: exit code %d: %s", code, stderr)
	}
}
