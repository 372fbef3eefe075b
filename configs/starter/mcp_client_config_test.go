package starter

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/secret"
)

const clientFile = `{"mcpServers": {
  "my files": {"command": "npx", "args": ["-y", "server", "/home/me"], "env": {"TOKEN": "s3cret-1", "EMPTY": "", "FROM": "${OTHER}", "CODE": "${env:THIRD}"}, "autoApprove": ["s3cret-2"]},
  "web": {"type": "http", "url": "https://api.example.com/mcp", "headers": {"authorization": "Bearer s3cret-3"}},
  "here": {"url": "http://localhost:9000/mcp", "headers": {"Authorization": "Bearer ${input:key}"}},
  "sse": {"type": "sse", "url": "https://api.example.com/sse"},
  "header": {"url": "https://api.example.com/mcp", "headers": {"X-Key": "s3cret-4"}},
  "basic": {"url": "https://me:s3cret-5@api.example.com/mcp"},
  "part": {"command": "npx", "env": {"KEY": "Bearer ${KEY} s3cret-6"}},
  "folder": {"command": "npx", "args": ["${workspaceFolder}", "s3cret-7"]},
  "number": {"command": "npx", "env": {"KEY": 7}},
  "both": {"command": "npx", "url": "https://api.example.com/mcp"},
  "neither": {},
  "no object": "s3cret-8",
  "my-files": {"command": "npx"},
  "fragment": {"url": "https://api.example.com/mcp#s3cret-10"},
  "keyed": {"url": "https://api.example.com/mcp?apiKey=s3cret-11"},
  "unnamed": {"url": "https://api.example.com/mcp?s3cret-11-and-some-more-of-it"},
  "opaque": {"url": "https://api.example.com/mcp?u=s3cret-11-and-some-more-of-it"},
  "plain": {"url": "https://api.example.com/mcp?readonly=true&tools=a,b"},
  "empty": {"command": "npx", "args": [""]},
  "odd": {"command": "npx", "args": ["🏴\udb40\udc67\udb40\udc62", "\uffff", "\u2028"], "env": {"LINE": "s3cret-9\r\n"}},
  "off": {"command": "npx", "disabled": true},
  "cwd": {"command": "npx", "cwd": "/"},
  "gate": {"command": "/opt/callgate", "args": ["mcp"]}
}}`

// TestFromClientFile: servers are taken over with their secrets in files of their own; what cannot
// be is said; and no message has a value.
func TestFromClientFile(t *testing.T) {
	found, err := FromClientFile("client.json", []byte(clientFile))
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(found.Notes, "\n")
	for _, says := range []string{
		`changed: client.json:2:`, `"autoApprove" has no meaning here`, `here the variable HERE_TOKEN of the environment has it`,
		`"sse": the transport sse is not supported`, `"header": it is asked with the header X-Key`, `"basic": its url has a password`,
		`"part": the value of KEY has ${…} beside other text`, `"folder": its command has ${…}`, `"number": env/KEY is no string`,
		`"both": expected either`, `"neither": expected either`, `"no object": expected an object`, `"my-files": its name here, my-files, is that of another`,
		`"off": it is disabled`, `"empty": args/0 is empty`, `"fragment": its url has a fragment`, `"keyed": its url has a member behind ?`, `"unnamed": its url has a member behind ?`, `"opaque": its url has a member behind ?`, `"odd": the value of LINE ends with an end of line`, `"cwd": it has cwd`, `"gate": it is Callgate itself`,
	} {
		if !strings.Contains(notes, says) {
			t.Errorf("no note says %q", says)
		}
	}
	if strings.Contains(notes, "s3cret") {
		t.Errorf("the notes show a value: %s", notes)
	}
	if found.LeftOut != 18 {
		t.Errorf("%d are left out", found.LeftOut)
	}

	folder := t.TempDir()
	p, err := New(folder, Options{Agent: "me", Tools: found})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Write(false); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(folder, "servers.yaml"))
	if err != nil || strings.Contains(string(written), "s3cret") {
		t.Errorf("servers.yaml (%v): %s", err, written)
	}
	if p.Secrets() != 3 {
		t.Errorf("%d secrets", p.Secrets())
	}
	loaded, err := configs.Load(filepath.Join(folder, MainFile))
	if err != nil {
		t.Fatal(err)
	}
	files, web, here := loaded.Servers[0], loaded.Servers[1], loaded.Servers[2]
	if odd := loaded.Servers[4]; !slices.Equal(odd.Command, []string{"npx", "🏴\U000e0067\U000e0062", "\uffff", "\u2028"}) {
		t.Errorf("the command is %q", odd.Command)
	}
	if strings.Join(files.Command, " ") != "npx -y server /home/me" || files.Env["EMPTY"] != "" || files.Env["FROM"] != "env:OTHER" || files.Env["CODE"] != "env:THIRD" {
		t.Errorf("the server is %v", files)
	}
	for place, value := range map[string]string{files.Env["TOKEN"]: "s3cret-1", web.Credential.Secret: "s3cret-3"} {
		if got, err := secret.Parse(place).Read(); err != nil || got != value {
			t.Errorf("%s: %v", place, err)
		}
	}
	if here.Credential.Secret != "env:HERE_TOKEN" || len(here.Addresses) != 2 || len(web.Addresses) != 0 {
		t.Errorf("the server is %v", here)
	}
}

func TestNoClientFile(t *testing.T) {
	for text, says := range map[string]string{
		`{`:                                      "client.json:1:",
		`{"a":1}`:                                "found no servers",
		`{"model":"m","messages":[],"tools":[]}`: "found a request to a model; expected an object with the member mcpServers or servers: --from request client.json reads it",
		`{"tools":[{"name":"a","inputSchema":{}}]}`: "callgate tools import mcp client.json reads it",
		`{"mcpServers":[]}`:                         "found no servers",
		`{"servers":{}}`:                            "no server that can be taken over",
		`{"mcpServers":{},"mcpServers":1}`:          "client.json:1:",
	} {
		if _, err := FromClientFile("client.json", []byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzFromClientFile: whatever a client's file says, it is refused, or what is made of it loads.
func FuzzFromClientFile(f *testing.F) {
	f.Add([]byte(clientFile))
	f.Add([]byte(`{"servers":{"a":{"command":"b\u0000\ud83d\ude00","env":{"A":"\u202e"}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := FromClientFile("client.json", data)
		if err != nil {
			return
		}
		p, err := New(t.TempDir(), Options{Agent: "me", Tools: found})
		if err != nil {
			t.Fatalf("read from %q, it is not planned: %v", data, err)
		}
		if err := p.Write(false); err != nil {
			t.Fatal(err)
		}
		if _, err := configs.Load(p.Paths()[0]); err != nil {
			t.Fatalf("planned from %q, it does not load: %v", data, err)
		}
	})
}

// TestKeysInQueries: a member of a query that may be a key, or that readers take differently, leaves its server out.
func TestKeysInQueries(t *testing.T) {
	for query, kept := range map[string]bool{
		"a=b;key=x": false, "a=%zz": false, "k=sk-x": false, "t=ghp_x": false, "x=tvly-x": false, "pat=x": false, "pw=x": false,
		"profile=work": true, "path=/docs": true, "sketch=1": true, "v=2025-06-18": true,
	} {
		found, err := FromClientFile("client.json", []byte(`{"mcpServers":{"x":{"url":"https://example.com/mcp?`+query+`"},"y":{"url":"https://example.com/mcp"}}}`))
		if err != nil || len(found.Servers) != map[bool]int{true: 2, false: 1}[kept] {
			t.Errorf("%s: found %+v, %v", query, found.Servers, err)
		}
	}
}

// TestKeysInArguments: arguments that may hold a key leave their server out, and are named without their value.
func TestKeysInArguments(t *testing.T) {
	for args, named := range map[string]string{
		`"--key","s3cret"`: "--key", `"-y","p","--api-key=s3cret"`: "--api-key", `"--API_TOKEN","s3cret"`: "--API_TOKEN", `"-token=s3cret"`: "-token",
		`"--password","s3cret"`: "--password", `"run","-e","GITHUB_TOKEN=s3cret","image"`: "GITHUB_TOKEN", `"--header","Authorization: Bearer s3cret"`: "Authorization",
		`"mcp-remote","https://example.com/mcp?key=s3cret"`: "an address", `"postgresql://me:s3cret@localhost/db"`: "an address",
		`"run","-e","GITHUB_TOKEN","image"`: "", `"--key-file","/a"`: "", `"--token"`: "", `"--show-keys","-v"`: "", `"monkey","a"`: "", `"/home/me/tokens"`: "", `"https://example.com/mcp"`: "",
	} {
		found, err := FromClientFile("client.json", []byte(`{"mcpServers":{"x":{"command":"p","args":[`+args+`]},"y":{"command":"p"}}}`))
		notes := strings.Join(found.Notes, "\n")
		if err != nil || len(found.Servers) != map[bool]int{true: 2, false: 1}[named == ""] || !strings.Contains(notes, named) || strings.Contains(notes, "s3cret") {
			t.Errorf("%s: found %+v, %q, %v", args, found.Servers, notes, err)
		}
	}
	_, err := FromServer(Server{Name: "x", Command: []string{"p", "--api-key=s3cret"}})
	if err == nil || !strings.Contains(err.Error(), "--api-key may hold a key") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("found %v", err)
	}
}
