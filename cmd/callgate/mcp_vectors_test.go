package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/registry"
)

// takenApart are completions that are a call but for what its arguments are.
var takenApart = regexp.MustCompile(strings.ReplaceAll(`(?s)^_\{"tool":_\{"name":_"([^"\\]*)",_"arguments":_(.*?)_\}_\}_$`, "_", `[ \t\r\n]*`))

// ofArguments are the codes of faults that the bytes of arguments can have, wherever
// they stand.
var ofArguments = []string{"duplicate_key", "invalid_number", "too_deep", "malformed_json", "invalid_utf8", "wrong_type"}

// bytesCalled is called, and knows too the calls whose arguments are at fault.
func bytesCalled(t testing.TB, v corpora.Vector) (name string, arguments []byte, ok bool) {
	if name, arguments, ok := called(t, v); ok {
		return name, arguments, true
	}
	m := takenApart.FindSubmatch(v.Bytes(t))
	// Where the brackets do not match, the fault is not that of the arguments alone.
	if m == nil || bytes.Count(m[2], []byte("{")) != bytes.Count(m[2], []byte("}")) || bytes.Contains(m[2], []byte(`"tool"`)) ||
		v.FinishReason != "" || v.Expect.Stage != "parse" || !slices.Contains(ofArguments, v.Expect.Code) {
		return "", nil, false
	}
	return string(m[1]), m[2], true
}

// byMCP brings calls to the face for clients of the Model Context Protocol, in one of
// its revisions, by the names that server.mcp_names says.
func byMCP(t *testing.T, of vectors, revision, names string) carry {
	config, data := unlimited(t, of.config)
	main, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	main = bytes.Replace(main, []byte("server: {"), []byte("server: {mcp_names: "+names+", "), 1)
	if err := os.WriteFile(config, main, 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := configs.Load(config)
	if err != nil || loaded.Server.MCPNames != names {
		t.Fatal(loaded, err)
	}
	wire := wireNames(t, loaded, registry.OpenAI())
	g := serveGate(t, config)
	sent := 0
	t.Cleanup(func() {
		if decisions, _ := g.countRecords(t, data); decisions != sent {
			t.Errorf("%d decisions in the log, want %d", decisions, sent)
		}
	})
	return func(t *testing.T, v corpora.Vector) (vectorVerdict, bool) {
		name, arguments, ok := bytesCalled(t, v)
		if !ok {
			return vectorVerdict{}, false
		}
		if names == configs.NamesWire {
			if _, stands := wire.Name(name); stands && !registered(loaded, name) {
				return vectorVerdict{}, false // it is not a tool's name elsewhere, and is one here
			}
			if listed, known := wire.Wire(name); known {
				name = listed
			}
		}
		sent++
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		headers := []string{"Content-Type", "application/json", "Callgate-Agent", v.Agent, "Callgate-Workspace", v.Workspace, "Callgate-Project", v.Project}
		params := fmt.Sprintf(`"name":%s,"arguments":%s`, quoted, arguments)
		headers = append(headers, "Mcp-Protocol-Version", revision)
		if revision == "2026-07-28" {
			params += `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
			sealed := "=?base64?" + base64.StdEncoding.EncodeToString([]byte(name)) + "?="
			headers = append(headers, "Mcp-Method", "tools/call", "Mcp-Name", sealed)
		}
		r := g.ask(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+params+`}}`, headers...)
		return fromMCP(t, v, r), true
	}
}

// wireNames maps the names of the tools of a configuration to an alphabet.
func wireNames(t *testing.T, c *configs.Config, of registry.Alphabet) *registry.NameMap {
	t.Helper()
	var names []string
	for _, e := range c.Tools.Entries() {
		names = append(names, e.Name())
	}
	m, err := registry.NewNameMap(names, of)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func registered(c *configs.Config, name string) bool {
	_, known := c.Tools.Lookup(name)
	return known
}

// fromMCP is what an answer says: of a call in its result, and of what refuses the
// request in its error.
func fromMCP(t *testing.T, v corpora.Vector, r reply) vectorVerdict {
	t.Helper()
	type refused struct {
		Code, Stage string
		Violations  []struct{ Path string }
	}
	var message struct {
		Result *struct {
			IsError bool
			Content []struct{ Text string }
		}
		Error *struct{ Data refused }
	}
	if err := json.Unmarshal([]byte(r.body), &message); err != nil || (message.Result == nil) == (message.Error == nil) {
		t.Fatalf("%s: %d %s", v.ID, r.status, r.body)
	}
	var of refused
	switch {
	case message.Error != nil:
		of = message.Error.Data
	case message.Result.IsError:
		var output struct{ Error refused }
		if len(message.Result.Content) != 1 || json.Unmarshal([]byte(message.Result.Content[0].Text), &output) != nil {
			t.Fatalf("%s: no text of a refusal: %s", v.ID, r.body)
		}
		of = output.Error
	default:
		return vectorVerdict{Verdict: "tool_call"}
	}
	if of.Stage == "execute" { // it was judged, and its tool could not be run here
		return vectorVerdict{Verdict: "tool_call"}
	}
	h := vectorVerdict{Verdict: "refused", Code: of.Code, Stage: of.Stage}
	if len(of.Violations) > 0 {
		h.Path = of.Violations[0].Path
	}
	return h
}
