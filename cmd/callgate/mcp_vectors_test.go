package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/corpora"
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
// its revisions.
func byMCP(t *testing.T, of vectors, revision string) carry {
	config, data := unlimited(t, of.config)
	g := serveGate(t, config)
	asked := 0
	t.Cleanup(func() {
		if decisions, _ := g.tally(t, data); decisions != asked {
			t.Errorf("%d decisions in the log, want %d", decisions, asked)
		}
	})
	return func(t *testing.T, v corpora.Vector) (heard, bool) {
		name, arguments, ok := bytesCalled(t, v)
		if !ok {
			return heard{}, false
		}
		asked++
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

// fromMCP is what an answer says: of a call in its result, and of what refuses the
// request in its error.
func fromMCP(t *testing.T, v corpora.Vector, r reply) heard {
	t.Helper()
	type refused struct {
		Code, Stage string
		Violations  []struct{ Path string }
	}
	var said struct {
		Result *struct {
			IsError bool
			Content []struct{ Text string }
		}
		Error *struct{ Data refused }
	}
	if err := json.Unmarshal([]byte(r.body), &said); err != nil || (said.Result == nil) == (said.Error == nil) {
		t.Fatalf("%s: %d %s", v.ID, r.status, r.body)
	}
	var of refused
	switch {
	case said.Error != nil:
		of = said.Error.Data
	case said.Result.IsError:
		var output struct{ Error refused }
		if len(said.Result.Content) != 1 || json.Unmarshal([]byte(said.Result.Content[0].Text), &output) != nil {
			t.Fatalf("%s: no text of a refusal: %s", v.ID, r.body)
		}
		of = output.Error
	default:
		return heard{Verdict: "tool_call"}
	}
	if of.Stage == "execute" { // it was judged, and its tool could not be run here
		return heard{Verdict: "tool_call"}
	}
	h := heard{Verdict: "refused", Code: of.Code, Stage: of.Stage}
	if len(of.Violations) > 0 {
		h.Path = of.Violations[0].Path
	}
	return h
}
