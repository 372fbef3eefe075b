package clients_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTokenDiscovery has the TypeScript SDK find out where it gets a token for a gateway.
func TestTokenDiscovery(t *testing.T) {
	if os.Getenv("CALLGATE_CLIENTS") == "" {
		t.Skip("skipped: make test-clients runs the real clients, which it fetches")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("servers")); err != nil {
		t.Fatal(err)
	}
	installed(t, dir)
	programs := t.TempDir()
	command(t, "../..", nil, "go", "build", "-o", programs, "./cmd/callgate")
	realServers(t, dir)
	// A key that signs nothing here.
	write(t, dir, "keys.json", `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","alg":"EdDSA","use":"sig","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`)
	write(t, dir, "callgate.yaml", "server: {listen: \"127.0.0.1:0\", admin_listen: \"127.0.0.1:0\"}\n"+
		"auth: {mode: jwt, jwt: {issuer: \"https://id.example/realm\", audience: callgate, jwks_file: keys.json}}\ndata_dir: data\n# end\n")
	url := begin(t, exec.Command(filepath.Join(programs, "callgate"), "serve", "--config", filepath.Join(dir, "callgate.yaml")), false, listening) + "/mcp"
	out := command(t, dir, os.Environ(), "node", filepath.Join(dir, "discovery.mjs"), url)
	type document struct {
		Resource string
		Servers  []string `json:"authorization_servers"`
	}
	var said struct {
		Status          int
		At              string
		Reported, Found document
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if said.Status != 401 || said.At != strings.TrimSuffix(url, "/mcp")+"/.well-known/oauth-protected-resource/mcp" {
		t.Errorf("%s", out)
	}
	for _, d := range []document{said.Reported, said.Found} {
		if d.Resource != url || len(d.Servers) != 1 || d.Servers[0] != "https://id.example/realm" {
			t.Errorf("%+v: %s", d, out)
		}
	}
}
