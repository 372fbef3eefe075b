package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/identity"
)

// servePeople serves a gateway that asks: keys are those of its people, by their names.
func servePeople(t *testing.T) (g *gate, keys map[string]string) {
	t.Helper()
	config := askingConfig(t)
	dir, keys := filepath.Dir(config), map[string]string{}
	principals := "principals:\n"
	for name, may := range map[string]string{
		"app": "agents: [Analyst], workspace: acme, projects: [alpha], approves: [board]", // asks, and may not answer itself
		"ada": "approves: [board]", "eve": "approves: [refunds]", "op": "operator: true",
		"twin": "agents: [Analyst], workspace: acme, projects: [alpha], approves: [board]", // stands for the agent that asks
	} {
		key, sha := identity.NewAPIKey()
		keys[name] = key
		principals += "  - {name: " + name + ", key_sha256: " + sha + ", " + may + "}\n"
	}
	for name, data := range map[string]string{
		"principals.yaml": principals + "# end\n",
		"approvals.yaml":  "rules: {refunds: {}, board: {remember: {same: 2h}}}\n# end\n",
		"callgate.yaml": "server: {listen: \"127.0.0.1:0\", admin_listen: \"127.0.0.1:0\"}\nauth: {mode: keys}\nprincipals: principals.yaml\n" +
			"registry: {files: [tools.yaml]}\napprovals: approvals.yaml\nlimits: limits.yaml\n# end\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return serveGate(t, config), keys
}

// send asks a gateway, and returns the status and the body.
func (g *gate) send(t *testing.T, method, path, key, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+g.listen+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	response, err := g.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestApprovalsOfAGateway decides calls of a real gateway on the command line.
func TestApprovalsOfAGateway(t *testing.T) {
	g, keys := servePeople(t)
	approvals := func(who string, args ...string) (int, string, string) {
		t.Setenv("CALLGATE_KEY", keys[who])
		return command(t, nil, append(append([]string{"approvals"}, args...), "--url", "http://"+g.admin)...)
	}
	const call = `{"completion":"{\"tool\":{\"name\":\"time.now\",\"arguments\":{}}}","agent":"Analyst"}`
	status, body := g.send(t, http.MethodPost, "/v1/calls", keys["app"], call)
	var asked struct {
		CallID string `json:"call_id"`
		State  string
	}
	if err := json.Unmarshal([]byte(body), &asked); err != nil || status != http.StatusAccepted || asked.State != "approval" {
		t.Fatalf("%d %s", status, body)
	}
	_, shown, _ := approvals("ada", "show", asked.CallID, "--json")
	var detail struct {
		Digest  string
		MayVote bool `json:"may_vote"`
		State   string
	}
	if err := json.Unmarshal([]byte(shown), &detail); err != nil || !detail.MayVote || detail.State != "waiting" || len(detail.Digest) != 64 {
		t.Fatalf("ada is shown %s", shown)
	}
	other := strings.Repeat("ab", 32)
	for _, c := range []struct {
		who    string
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"ada", "list --waiting", exitAccepted, asked.CallID, ""},
		{"op", "list --rule board", exitAccepted, asked.CallID, ""},
		{"eve", "list", exitAccepted, "ID", ""},
		{"eve", "show ID", exitRefused, "", "not_found"},
		{"", "list", exitRefused, "", "unauthenticated"},
		{"app", "show ID", exitAccepted, "Nobody decides a call of their own", ""},
		{"app", "approve ID --digest DIGEST", exitRefused, "", "permission_denied"},
		{"twin", "approve ID --digest DIGEST", exitRefused, "", "permission_denied"},
		{"eve", "approve ID --digest DIGEST", exitRefused, "", "not_found"},
		{"op", "approve ID --digest DIGEST", exitRefused, "", "permission_denied"},
		{"ada", "approve ID --digest " + other, exitRefused, "", "approval_conflict"},
		{"ada", "approve ID --digest DIGEST --remember same=3h", exitRefused, "", "bad_request"},
		{"ada", "approve ID --digest DIGEST --remember tool=1h", exitRefused, "", "bad_request"},
		{"ada", "show ID", exitAccepted, "waiting", ""},
		{"ada", "approve ID --digest DIGEST", exitAccepted, "approved", ""},
		{"ada", "approve ID --digest DIGEST", exitAccepted, "approved", ""},
		{"ada", "revoke ID", exitRefused, "", "permission_denied"},
		{"op", "grants", exitAccepted, "ID", ""},
	} {
		args := strings.Fields(strings.NewReplacer("DIGEST", detail.Digest, "ID", asked.CallID).Replace(c.args))
		code, stdout, stderr := approvals(c.who, args...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: %s: exit code %d\n%s%s", c.who, c.args, code, stdout, stderr)
		}
	}
	if _, stdout, _ := approvals("eve", "list"); strings.Contains(stdout, asked.CallID) {
		t.Errorf("eve, who approves by another rule, is shown %s", stdout)
	}
	for name, want := range map[string]string{
		`callgate_approvals_total{code="requested",rule="board"}`: "1", `callgate_approvals_total{code="yes",rule="board"}`: "1",
		`callgate_approvals_total{code="no",rule="board"}`: "", `callgate_approval_seconds_count{rule="board"}`: "1",
	} {
		if got := g.metric(t, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if status, body := g.send(t, http.MethodPost, "/v1/calls/"+asked.CallID+"/resume", keys["app"], ""); status != http.StatusOK || !strings.Contains(body, `"tool_result"`) {
		t.Errorf("resumed: %d %s", status, body)
	}
	if code, _, stderr := approvals("ada", "deny", asked.CallID, "--reason", "late"); code != exitRefused || !strings.Contains(stderr, "approval_conflict") {
		t.Errorf("a no after it has run: exit code %d: %s", code, stderr)
	}
	if code, stdout, stderr := approvals("ada", "approve", asked.CallID, "--digest", detail.Digest); code != exitAccepted || !strings.Contains(stdout, "used") {
		t.Errorf("the same yes after it has run: exit code %d: %s%s", code, stdout, stderr)
	}

	// A no, with its reason, and what an operator revokes.
	status, body = g.send(t, http.MethodPost, "/v1/calls", keys["app"], call)
	if err := json.Unmarshal([]byte(body), &asked); err != nil || status != http.StatusAccepted {
		t.Fatalf("the second time: %d %s", status, body)
	}
	if code, stdout, stderr := approvals("ada", "deny", asked.CallID, "--reason", "not today"); code != exitAccepted || !strings.Contains(stdout, "denied") {
		t.Errorf("deny: exit code %d: %s%s", code, stdout, stderr)
	}
	if status, body := g.send(t, http.MethodPost, "/v1/calls", keys["app"], call); status != http.StatusForbidden || !strings.Contains(body, "approval_denied") || !strings.Contains(body, "not today") {
		t.Errorf("after a no: %d %s", status, body)
	}
	if code, _, stderr := approvals("op", "revoke", asked.CallID); code != exitRefused || !strings.Contains(stderr, "approval_conflict") {
		t.Errorf("revoked after a no: exit code %d: %s", code, stderr)
	}
}
