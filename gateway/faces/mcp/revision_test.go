package mcp_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestMCP01Discover(t *testing.T) {
	r := open(t, plan{}).ask(t, "server/discover", "")
	if r.status != http.StatusOK || !strings.Contains(r.raw, `"supportedVersions":["2026-07-28","2025-11-25","2025-06-18"]`) {
		t.Fatalf("%d %s", r.status, r.raw)
	}
	// Declared capabilities work, and undeclared ones do not.
	if len(r.Result.Capabilities) != 4 || r.Result.TTL == nil || r.Result.Scope != "private" {
		t.Errorf("%s", r.raw)
	}
	for _, name := range []string{"tools", "prompts", "resources", "logging"} {
		if !reflect.DeepEqual(r.Result.Capabilities[name], map[string]any{}) {
			t.Errorf("%s: %v", name, r.Result.Capabilities[name])
		}
	}
}

func TestMCP02MetaIsRequired(t *testing.T) {
	h := open(t, plan{})
	const version, able = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":{}`
	for params, want := range map[string]int{
		``:                          -32602,
		`"_meta":{}`:                -32602,
		`"_meta":null`:              -32602,
		`"_meta":[]`:                -32602,
		`"_meta":{` + version + `}`: -32602,
		`"_meta":{` + able + `}`:    -32602,
		`"_meta":{` + version + `,"io.modelcontextprotocol/clientCapabilities":[]}`: -32602,
		`"_meta":{"io.modelcontextprotocol/protocolVersion":20260728,` + able + `}`: -32602,
		`"_meta":{` + version + `,` + able + `}`:                                    0, // the client need not say its name
	} {
		for _, method := range []string{"server/discover", "tools/list", "prompts/list"} {
			r := h.post(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{%s}}`, method, params), modern(method, "")...)
			if status := map[int]int{0: 200, -32602: 400}[want]; r.Error.Code != want || r.status != status || r.ID != 7.0 {
				t.Errorf("%s %s: %d %s", method, params, r.status, r.raw)
			}
		}
	}
}

func TestMCP03Version(t *testing.T) {
	h := open(t, plan{})
	body := func(version string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":"v","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`, version)
	}
	for _, version := range []string{"2027-01-01", "v999.0.0", "2026-07-28 ", "x"} {
		r := h.post(t, body(version), "Mcp-Protocol-Version", version, "Mcp-Method", "tools/list")
		want := fmt.Sprintf(`{"requested":%q,"supported":["2026-07-28","2025-11-25","2025-06-18"]}`, version)
		if r.status != http.StatusBadRequest || r.Error.Code != -32022 || string(r.Error.Data) != want || r.ID != "v" {
			t.Errorf("%q: %d %s", version, r.status, r.raw)
		}
	}
	// An older revision that is said in _meta is that revision.
	if r := h.post(t, body("2025-11-25"), "Mcp-Protocol-Version", "2025-11-25"); r.status != 200 || r.Result.Type != "" || len(r.Result.Tools) == 0 {
		t.Errorf("%d %s", r.status, r.raw)
	}
}

// TestMCP05NothingIsRemembered: what one request said does not hold for the next.
func TestMCP05NothingIsRemembered(t *testing.T) {
	h := open(t, plan{})
	if r := h.ask(t, "tools/list", "", "Callgate-Agent", "Intern"); len(r.Result.Tools) == 0 {
		t.Fatal(r.raw)
	}
	r := h.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, modern("tools/list", "")...)
	if r.Error.Code != -32602 {
		t.Errorf("%s", r.raw)
	}
	one, other := h.ask(t, "tools/list", "", "Callgate-Agent", "Intern"), h.ask(t, "tools/list", "")
	if len(one.Result.Tools) == len(other.Result.Tools) {
		t.Errorf("two agents, one list: %s", one.raw)
	}
	if one.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("a session: %v", one.header)
	}
}

// TestMCP06ResultType, and TestMCP07: every result of 2026-07-28 says of what kind it
// is, and who answers; none of an older revision does.
func TestMCP06ResultTypeMCP07ServerInfo(t *testing.T) {
	h := open(t, plan{})
	for method, params := range map[string]string{
		"server/discover": "", "tools/list": "", "prompts/list": "", "resources/list": "", "resources/templates/list": "",
		"tools/call": `"name":"time_now"`,
	} {
		headers := []string{}
		if method == "tools/call" {
			headers = []string{"Mcp-Name", "time_now"}
		}
		r := h.ask(t, method, params, headers...)
		info, _ := r.Result.Meta["io.modelcontextprotocol/serverInfo"].(map[string]any)
		if r.status != 200 || r.Result.Type != "complete" || info == nil && !strings.Contains(r.raw, `"io.modelcontextprotocol/serverInfo":{"name":"callgate","title":"Callgate","version":"1.2.3"}`) {
			t.Errorf("%s: %d %s", method, r.status, r.raw)
		}
		if method == "server/discover" {
			continue
		}
		if r := h.old(t, method, params); r.status != 200 || strings.Contains(r.raw, "resultType") || strings.Contains(r.raw, "ttlMs") {
			t.Errorf("%s of 2025-11-25: %d %s", method, r.status, r.raw)
		}
	}
	if r := h.call(t, "time_now", `{"x":1}`); !r.Result.IsError || r.Result.Type != "complete" {
		t.Errorf("%s", r.raw)
	}
}

func TestMCP10CacheHints(t *testing.T) {
	h := open(t, plan{})
	for _, method := range []string{"server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
		if r := h.ask(t, method, ""); r.Result.TTL == nil || *r.Result.TTL < 0 || r.Result.Scope != "private" {
			t.Errorf("%s: %s", method, r.raw)
		}
	}
}

func TestMCL01Initialize(t *testing.T) {
	h := open(t, plan{})
	for question, want := range map[string]string{
		"2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18",
		"2025-03-26": "2025-11-25", "2024-11-05": "2025-11-25", "2026-07-28": "2025-11-25", "x": "2025-11-25",
	} {
		r := h.post(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, question))
		if r.status != 200 || r.Result.Version != want || r.Result.Server["version"] != "1.2.3" || r.Result.Capabilities["tools"] == nil || r.ID != 0.0 {
			t.Errorf("%s: %d %s", question, r.status, r.raw)
		}
	}
	for _, params := range []string{``, `"protocolVersion":1`, `"protocolVersion":""`} {
		if r := h.old(t, "initialize", params); r.Error.Code != -32602 {
			t.Errorf("%s: %s", params, r.raw)
		}
	}
	if r := h.post(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Protocol-Version", "2025-11-25"); r.status != http.StatusAccepted || r.raw != "" {
		t.Errorf("%d %s", r.status, r.raw)
	}
}

func TestMCL04VersionHeader(t *testing.T) {
	h := open(t, plan{})
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for version, want := range map[string]int{"": 200, "2025-11-25": 200, "2025-06-18": 200, "2024-11-05": 400, "v1": 400, "2025-11-25,2025-06-18": 400} {
		var headers []string
		if version != "" {
			headers = []string{"Mcp-Protocol-Version", version}
		}
		if r := h.post(t, list, headers...); r.status != want || want == 400 && r.Error.Code != -32022 {
			t.Errorf("%q: %d %s", version, r.status, r.raw)
		}
	}
	if r := h.post(t, list, "Mcp-Protocol-Version", "2025-11-25", "Mcp-Protocol-Version", "2025-11-25"); r.status != 400 || r.Error.Code != -32020 {
		t.Errorf("twice: %d %s", r.status, r.raw)
	}
}

// TestMCL04Headers: headers that say what a message is are held against it where they
// are there, whatever its revision.
func TestMCL04Headers(t *testing.T) {
	h := open(t, plan{})
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_now","arguments":{}}}`
	for _, c := range []struct {
		headers []string
		want    int
	}{
		{nil, 200},
		{[]string{"Mcp-Method", "tools/call", "Mcp-Name", "time_now"}, 200},
		{[]string{"Mcp-Name", "time_now"}, 200},
		{[]string{"Mcp-Method", "tools/list"}, 400},
		{[]string{"Mcp-Name", "web_search"}, 400},
		{[]string{"Mcp-Name", ""}, 400},
		{[]string{"Mcp-Name", "web_search", "Mcp-Name", "time_now"}, 400},
	} {
		for _, version := range []string{"", "2025-11-25"} {
			headers := c.headers
			if version != "" {
				headers = append([]string{"Mcp-Protocol-Version", version}, headers...)
			}
			if r := h.post(t, call, headers...); r.status != c.want || c.want == 400 && r.Error.Code != -32020 {
				t.Errorf("%q %v: %d %s", version, c.headers, r.status, r.raw)
			}
		}
	}
}

func TestMCL05Ping(t *testing.T) {
	h := open(t, plan{})
	if r := h.old(t, "ping", ""); r.raw != `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n" {
		t.Errorf("%s", r.raw)
	}
	// A cancellation is taken, and ends nothing: the call has its own request.
	if r := h.post(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`); r.status != http.StatusAccepted {
		t.Errorf("%d %s", r.status, r.raw)
	}
}

// TestMCL08TwoEras: what a request says of itself decides, and each era has its own
// methods.
func TestMCL08TwoEras(t *testing.T) {
	h := open(t, plan{})
	for _, method := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "completion/complete", "subscriptions/listen", "unknown/method", "tasks/get"} {
		r := h.ask(t, method, "")
		if r.status != http.StatusNotFound || r.Error.Code != -32601 || r.ID != 1.0 {
			t.Errorf("%s: %d %s", method, r.status, r.raw)
		}
		if slices.Contains([]string{"initialize", "ping", "logging/setLevel"}, method) {
			continue
		}
		if r := h.old(t, method, ""); r.status != http.StatusOK || r.Error.Code != -32601 {
			t.Errorf("%s of 2025-11-25: %d %s", method, r.status, r.raw)
		}
	}
	// The first question of a client that may be of either era.
	if r := h.post(t, `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`); r.status != 400 || r.Error.Code != -32602 {
		t.Errorf("%d %s", r.status, r.raw)
	}
}
