package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/wrapper"
)

// hiddenText is what a server hides in the texts of its tools: a right-to-left
// override, a zero width space, and a tag character.
const hiddenText = "x \u202e\u200b\U000e0041"

// TestHiddenTextsOnEveryFace: what a tool's server hides in a text is shown written
// out, to the operator who accepts it and to models on every face that lists tools.
func TestHiddenTextsOnEveryFace(t *testing.T) {
	t.Parallel()
	requests := make(chan string, 8)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- string(body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"c","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(provider.Close)
	config, _, _ := toolsConfig(t, "hub hidden")
	models := fmt.Sprintf("upstreams:\n  - {name: native, base_url: %q, models: [native]}\n  - {name: text, base_url: %[1]q, models: [text], protocol: text}\n# end\n", provider.URL+"/v1")
	if err := os.WriteFile(filepath.Join(filepath.Dir(config), "upstreams.yaml"), []byte(models), 0o600); err != nil {
		t.Fatal(err)
	}
	main, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(strings.Replace(string(main), "servers:", "upstreams: upstreams.yaml\nservers:", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := command(t, nil, "servers", "accept", "hub", "--dry-run", "--config", config)
	if r, found := wrapper.Hidden(stdout + stderr); code != exitAccepted || found || !strings.Contains(stderr, "U+202E") || !strings.Contains(stdout, `\u202e`) {
		t.Errorf("%d, with %U: %s%s", code, r, stdout, stderr)
	}
	if _, stdout, _ = command(t, nil, "servers", "export", "hub", "--config", config); !strings.Contains(stdout, `\u202e`) {
		t.Errorf("exported %s", stdout)
	}
	if r, found := wrapper.Hidden(stdout); found {
		t.Errorf("the export holds %U", r)
	}
	g := serveGate(t, config)
	pidOf(t, g, "hub")
	chat := func(model string) string {
		body := `{"model":"` + model + `","messages":[{"role":"user","content":"hi"}]}`
		if r := g.ask(t, http.MethodPost, "/v1/chat/completions", body, "Content-Type", "application/json", "Callgate-Mode", "orchestrate"); r.status != http.StatusOK {
			t.Fatalf("%s: %d %s", model, r.status, r.body)
		}
		return <-requests
	}
	mcp := func(revision string, more ...string) string {
		params := "{}"
		if revision == "2026-07-28" {
			params = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`
		}
		headers := append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", revision}, more...)
		return g.ask(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":`+params+`}`, headers...).body
	}
	for face, list := range map[string]string{
		"native": g.ask(t, http.MethodGet, "/v1/tools", "").body,
		"oxp":    g.ask(t, http.MethodGet, "/tools", "").body,
		"mcp":    mcp("2025-11-25"), "mcp, 2026-07-28": mcp("2026-07-28", "Mcp-Method", "tools/list"),
		"chat": chat("native"), "chat, by text": chat("text"),
	} {
		var value any
		if err := json.Unmarshal([]byte(list), &value); err != nil {
			t.Errorf("%s: %v: %s", face, err, list)
			continue
		}
		visible := strings.Join(textsOf(value), "\n")
		if r, found := wrapper.Hidden(visible); found {
			t.Errorf("%s: a model reads %U in %s", face, r, list)
		}
		least := 2 // the description, and that of the parameter
		if face != "chat" && face != "chat, by text" && face != "native" {
			least = 3
		}
		if got := strings.Count(visible, `\u202e`); got < least {
			t.Errorf("%s: %d texts are shown; expected %d: %s", face, got, least, list)
		}
	}
}

// textsOf are the strings of a decoded value, names included.
func textsOf(value any) (all []string) {
	switch v := value.(type) {
	case string:
		all = append(all, v)
	case []any:
		for _, e := range v {
			all = append(all, textsOf(e)...)
		}
	case map[string]any:
		for name, e := range v {
			all = append(append(all, name), textsOf(e)...)
		}
	}
	return all
}
