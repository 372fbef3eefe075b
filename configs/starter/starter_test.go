package starter

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/policy"
)

const (
	pets = `openapi: 3.0.3
info: {title: Pets, version: 1.0.0}
servers: [{url: "URL"}]
paths:
  /pets:
    get: {operationId: getPets, responses: {"200": {description: Pets.}}}
    delete: {operationId: deletePets, responses: {"200": {description: None.}}}
`
	chat      = `{"tools":[{"type":"function","function":{"name":"act","parameters":{"type":"object","properties":{}}}}]}`
	messages  = `{"tools":[{"name":"act","input_schema":{"type":"object","properties":{}}}]}`
	dated     = `[{"type":"bash_20250124","name":"bash"}]`
	responses = `{"tools":[{"type":"function","name":"act","parameters":{"type":"object","properties":{}}}]}`
)

func tools(t *testing.T, read func() (Tools, error)) Tools {
	t.Helper()
	found, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestWritten: what is planned loads once it is written, each file is small, for its owner alone,
// and only what was named is permitted.
func TestWritten(t *testing.T) {
	request := func(text string) Tools {
		return tools(t, func() (Tools, error) { return FromRequest("request.json", []byte(text)) })
	}
	for name, c := range map[string]struct {
		options   Options
		permitted string // the tools, in order
		upstream  string // what the upstreams file has
	}{
		"example":        {Options{Tools: Example()}, "notes.add", ""},
		"example, other": {Options{Tools: Example(), Allow: []string{"notes.clear"}}, "notes.clear", ""},
		"nothing":        {Options{Tools: request(chat)}, "", ""},
		"chat":           {Options{Tools: request(chat), Allow: []string{"act"}, Upstream: "http://127.0.0.1:1/v1"}, "act", "speaks: [chat]\n    models: [\"*\"]\n    modes: [enforce]"},
		"messages":       {Options{Tools: request(messages), Upstream: "https://api.example.com/v1", UpstreamKey: "env:KEY"}, "", "credential: {in: header, name: X-Api-Key, value: \"env:KEY\"}\n    speaks: [messages]"},
		"dated":          {Options{Tools: request(dated), Allow: []string{"*"}, Upstream: "https://api.example.com/v1"}, "bash", "speaks: [messages]"},
		"responses":      {Options{Tools: request(responses), Upstream: "https://api.example.com/v1", UpstreamKey: "env:KEY"}, "", "key: \"env:KEY\"\n    speaks: [responses]"},
		"openapi": {Options{Allow: []string{"pets.*"}, Upstream: "http://127.0.0.1:1/v1", Tools: tools(t, func() (Tools, error) {
			return FromOpenAPI("pets.yaml", []byte(strings.Replace(pets, "URL", "https://pets.example.com", 1)), toolimport.OpenAPIOptions{Prefix: "pets."})
		})}, "pets.deletePets pets.getPets", "modes: [orchestrate, enforce]"},
		"server": {Options{Tools: tools(t, func() (Tools, error) {
			return FromServer(Server{Name: "files", Command: []string{"run it", "true", "-y", "1.0", "a: b", "#", "\u00e9"}})
		})}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "new")
			c.options.Agent = "true" // is quoted
			p, err := New(folder, c.options)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Write(false); err != nil {
				t.Fatal(err)
			}
			for _, file := range p.Paths() {
				info, err := os.Stat(file)
				if err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%s: %v, %v", file, info.Mode(), err)
				}
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if lines := bytes.Count(data, []byte("\n")); lines > 15 && (filepath.Base(file) != "tools.yaml" || name == "example") {
					t.Errorf("%s has %d lines", file, lines)
				}
			}
			loaded, err := configs.Load(filepath.Join(folder, MainFile))
			if err != nil {
				t.Fatal(err)
			}
			var permitted []string
			for _, tool := range loaded.Tools.Entries() {
				reach, err := loaded.Policy.Reach("true", Workspace, Project, tool.Name())
				if err != nil {
					t.Fatal(err)
				}
				if reach != policy.Never {
					permitted = append(permitted, tool.Name())
				}
			}
			if got := strings.Join(permitted, " "); got != c.permitted {
				t.Errorf("permitted are %q; expected %q", got, c.permitted)
			}
			upstreams, err := os.ReadFile(filepath.Join(folder, "upstreams.yaml"))
			if !strings.Contains(string(upstreams), c.upstream) || (err == nil) != (c.upstream != "") {
				t.Errorf("upstreams.yaml: %s %v", upstreams, err)
			}
			if name == "server" {
				if got := loaded.Servers[0].Command; strings.Join(got, "|") != "run it|true|-y|1.0|a: b|#|\u00e9" {
					t.Errorf("the command is %q", got)
				}
			}
		})
	}
}

// TestOwnMachine: a server of this machine may be connected to, no other private one.
func TestOwnMachine(t *testing.T) {
	for server, own := range map[string]bool{"http://localhost:9000": true, "http://127.0.0.1:1/v1": true, "https://10.0.0.1": false, "https://pets.example.com": false} {
		found := tools(t, func() (Tools, error) {
			return FromOpenAPI("pets.yaml", []byte(strings.Replace(pets, "URL", server, 1)), toolimport.OpenAPIOptions{})
		})
		if got := bytes.Contains(found.File, []byte("addresses: [127.0.0.0/8, '::1/128']")); got != own {
			t.Errorf("%s: %s", server, found.File)
		}
	}
}

// TestNothingIsOverwritten: where one file is there, none is written.
func TestNothingIsOverwritten(t *testing.T) {
	folder := t.TempDir()
	p, err := New(folder, Options{Agent: "me", Tools: Example()})
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(folder, "limits.yaml")
	if err := os.WriteFile(own, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Write(false); err == nil || !strings.Contains(err.Error(), own) {
		t.Errorf("the error is %v", err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v (%v)", entries, err)
	}
	if data, err := os.ReadFile(own); err != nil || string(data) != "mine" {
		t.Errorf("the file has %q (%v)", data, err)
	}
	if err := p.Write(true); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(own); err != nil || string(data) != limits {
		t.Errorf("the file has %q (%v)", data, err)
	}
}

// TestWrongOptions: a value that a file would show, and another would be meant by, is refused.
func TestWrongOptions(t *testing.T) {
	for says, o := range map[string]Options{
		"--agent":                    {Agent: "a, *"},
		"--allow":                    {Agent: "a", Allow: []string{"x\np, a, *, *, , allow"}},
		"a beginning":                {Agent: "a", Allow: []string{"fi*"}},
		"no place of a key":          {Agent: "a", Upstream: "https://api.example.com/v1", UpstreamKey: "sk-12345"},
		"absolute http or https URL": {Agent: "a", Upstream: "ftp://example.com"},
		"found the scheme \"\"; ":    {Agent: "a", Tools: Tools{Servers: []Server{{Name: "s", URL: "nowhere"}}}},
	} {
		if o.Tools.Servers == nil {
			o.Tools = Example()
		}
		_, err := New(t.TempDir(), o)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: the error is %v", says, err)
		} else if strings.Contains(err.Error(), "sk-12345") {
			t.Errorf("the error shows the key: %v", err)
		}
	}
}

// TestWrittenIsFormatted: "callgate config fmt" finds nothing to do in what is planned.
func TestWrittenIsFormatted(t *testing.T) {
	request := `{"tools":[{"type":"function","function":{"name":"act","description":"` + strings.Repeat("A long word, and #1 more. ", 9) + `","parameters":{"type":"object","properties":{}}}}]}`
	for name, found := range map[string]Tools{
		"example": Example(),
		"request": tools(t, func() (Tools, error) { return FromRequest("request.json", []byte(request)) }),
		"client":  tools(t, func() (Tools, error) { return FromClientFile("client.json", []byte(clientFile)) }),
	} {
		p, err := New(t.TempDir(), Options{Agent: "assistant", Allow: []string{"act"}, Upstream: "http://127.0.0.1:1/v1", Tools: found})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range p.files {
			if strings.HasPrefix(f.name, secretsFolder) {
				continue
			}
			if out, err := configs.Format(f.name, f.data); err != nil || !bytes.Equal(out, f.data) {
				t.Errorf("%s: %s is not formatted: %v\n%s", name, f.name, err, f.data)
			}
		}
	}
}
