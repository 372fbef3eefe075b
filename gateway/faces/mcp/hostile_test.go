package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/parser"
)

// TestMessages are bodies that are no message, each with what is said of it.
func TestMessages(t *testing.T) {
	h := open(t, plan{})
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	for body, want := range map[string]int{
		``:                             -32700,
		` `:                            -32700,
		`{`:                            -32700,
		`{}{}`:                         -32700,
		`{"jsonrpc":"2.0"`:             -32700,
		"\xef\xbb\xbf{}":               -32700,
		"{\"method\":\"\xff\"}":        -32700,
		`{"method":"\ud800"}`:          -32700,
		`{"id":1e999,"method":"ping"}`: -32700,
		`{"id":1,"id":1,"jsonrpc":"2.0","method":"ping"}`:                                                                           -32700,
		`{"id":1,"i\u0064":1,"jsonrpc":"2.0","method":"ping"}`:                                                                      -32700,
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}`:                                                                  -32700,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_now","name":"web_search"}}`:                           -32700,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_now","arguments":{},"arguments":{}}}`:                 -32700,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_now","arguments":{},"\u0061rguments":{"x":1}}}`:       -32700,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_now","arguments":{}},"params":{"name":"web_search"}}`: -32700,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_now","arguments":}}`:                                  -32700,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_now","arguments":{}`:                                  -32700,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_now","arguments":{"a":"}}}`:                           -32700,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_now","_meta":{"a":1,"a":2}}}`:                         -32700,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_now","arguments":{"a":]}}}`:                           -32700,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"arguments":{"a":1,"a":2}}}`:                                       -32700,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":` + deep + `}}`:                                                  -32700,
		`[]`: -32600,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`: -32600,
		`1`:                 -32600,
		`"x"`:               -32600,
		`null`:              -32600,
		`{}`:                -32600,
		`{"jsonrpc":"2.0"}`: -32600,
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                                   -32600,
		`{"jsonrpc":2.0,"id":1,"method":"ping"}`:                                     -32600,
		`{"id":1,"method":"ping"}`:                                                   -32600,
		`{"JSONRPC":"2.0","id":1,"method":"ping"}`:                                   -32600,
		`{"jsonrpc":"2.0","ID":1,"method":"ping"}`:                                   -32600,
		`{"jsonrpc":"2.0","id":1,"Method":"ping"}`:                                   -32600,
		`{"jsonrpc":"2.0","id":1,"method":"ping","extra":1}`:                         -32600,
		`{"jsonrpc":"2.0","id":1,"method":1}`:                                        -32600,
		`{"jsonrpc":"2.0","id":1,"method":""}`:                                       -32600,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`:                       -32600,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:                                -32600,
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:                                 -32600,
		`{"jsonrpc":"2.0","id":1e3,"method":"ping"}`:                                 -32600,
		`{"jsonrpc":"2.0","id":true,"method":"ping"}`:                                -32600,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:                                  -32600,
		`{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 1025) + `","method":"ping"}`: -32600,
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                                       -32600,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}`:                   -32600,
		`{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`:                       -32600,
	} {
		r := h.post(t, body)
		if r.status != http.StatusBadRequest || r.Error.Code != want || r.code() != "bad_request" {
			t.Errorf("%.100s: %d %.300s", body, r.status, r.raw)
		}
	}
	if lines := h.ledger.lines(); len(lines) != 0 {
		t.Errorf("%q", lines)
	}
	// The id comes back as it was written.
	for _, id := range []string{`"x"`, `""`, `0`, `-1`, `9007199254740993`, `123456789012345678901234567890`, `"\u2028é"`} {
		if r := h.post(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`); r.raw != `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`+"\n" {
			t.Errorf("%s: %s", id, r.raw)
		}
	}
}

// TestHead are requests that do not get as far as a message.
func TestHead(t *testing.T) {
	h := open(t, plan{})
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, c := range []struct {
		body    string
		headers []string
		status  int
		code    string
	}{
		{ping, []string{"Content-Type", "text/plain"}, 400, "bad_request"}, // the header stands twice
		{ping, []string{"Content-Encoding", "gzip"}, 415, "unsupported_media_type"},
		{ping, []string{"Callgate-Agnet", "Intern"}, 400, "bad_request"},
		{ping, []string{"Callgate-Agent", "Nobody"}, 403, "agent_unknown"},
		{strings.Repeat(" ", 65536+256<<10+64<<10+1), nil, 413, "request_too_large"},
	} {
		r := h.post(t, c.body, c.headers...)
		if r.status != c.status || r.code() != c.code {
			t.Errorf("%q: %d %s", c.headers, r.status, r.raw)
		}
	}
}

// arguments are what the kernel says of the bytes of a call's arguments, as it does
// on every other face.
var arguments = map[string]string{
	`{"query":"x","query":"y"}`:                                     "duplicate_key",
	`{"query":"x","\u0071uery":"y"}`:                                "duplicate_key",
	`{"query":"x","a":{"b":1,"b":2}}`:                               "duplicate_key",
	`{"query":"\ud800"}`:                                            "malformed_json",
	`{"query":"\udc00\ud800"}`:                                      "malformed_json",
	"{\"query\":\"\xff\"}":                                          "invalid_utf8",
	"{\"query\":\"\xed\xa0\x80\"}":                                  "invalid_utf8",
	`{"query":"x","num_results":1e401}`:                             "invalid_number",
	`{"query":"x","num_results":1e-401}`:                            "invalid_number",
	`{"query":"x","num_results":1` + strings.Repeat("0", 256) + `}`: "invalid_number",
	`{"query":"x","num_results":1e400}`:                             "invalid_value",
	`{"query":"x","num_results":9007199254740993}`:                  "invalid_value",
	`{"query":"x","num_results":01}`:                                "malformed_json",
	`{"query":"x","num_results":NaN}`:                               "malformed_json",
	`{"query":"x",}`:                                                "malformed_json",
	`{'query':'x'}`:                                                 "malformed_json",
	`{"query":"x"/**/}`:                                             "malformed_json",
	"{\"query\":\"a\nb\"}":                                          "malformed_json",
	`{"query":"\x41"}`:                                              "malformed_json",
	`{"query":tru}`:                                                 "malformed_json",
	`{"query":}`:                                                    "malformed_json",
	`{"query" "x"}`:                                                 "malformed_json",
	`{"query":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `}`: "too_deep",
	`{"QUERY":"x"}`:                   "unexpected_argument",
	`{"query":"x","extra":1}`:         "unexpected_argument",
	`true`:                            "wrong_type",
	`1e999`:                           "invalid_number",
	`{"query":"x"}`:                   "",
	"{\"query\":\"\\u0000\"}":         "",
	` { "query" : "x" } `:             "",
	`{"query":"}],{\"arguments\":1"}`: "",
}

func TestArguments(t *testing.T) {
	h := open(t, plan{})
	for args, want := range arguments {
		r := h.old(t, "tools/call", `"name":"web_search","arguments":`+args)
		if r.status != 200 || r.code() != want || r.Result.IsError != (want != "") {
			t.Errorf("%.80s: %d, want %s: %.300s", args, r.status, want, r.raw)
		}
		if want != "" {
			continue
		}
		// The tool was given those bytes.
		var did struct{ Did json.RawMessage }
		if err := json.Unmarshal(r.Result.Structured, &did); err != nil || string(did.Did) != compact(args) {
			t.Errorf("%s became %s", args, r.Result.Structured)
		}
	}
	// A call that is too long is refused by the kernel, where its frame is not.
	long := `{"query":"` + strings.Repeat("x", 65536) + `"}`
	if r := h.old(t, "tools/call", `"name":"web_search","arguments":`+long); r.code() != "output_too_large" || !r.Result.IsError {
		t.Errorf("%.300s", r.raw)
	}
	// Another reader of the same name finds no other arguments.
	r := h.post(t, `{"arguments":0,"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"web_search","arguments":{"query":"x"}}}`)
	if r.Error.Code != -32600 {
		t.Errorf("%s", r.raw)
	}
	r = h.old(t, "tools/call", `"_meta":{"arguments":{"query":"no"}},"argum\u0065nts":{"query":"yes"},"name":"web_search"`)
	if r.text(t) != `{"did":{"query":"yes"}}` {
		t.Errorf("%s", r.raw)
	}
}

// TestNull: a parameter that is null is none, and a tool without arguments gets {}, which is what was judged.
func TestNull(t *testing.T) {
	h := open(t, plan{})
	for what, r := range map[string]reply{
		"parameters":      h.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}`),
		"a notification":  h.post(t, `{"jsonrpc":"2.0","method":"notifications/initialized","params":null}`),
		"a cursor":        h.old(t, "tools/list", `"cursor":null`),
		"of another list": h.ask(t, "prompts/list", `"cursor":null`),
		"meta":            h.old(t, "tools/list", `"_meta":null`),
		"a token":         h.old(t, "tools/call", `"name":"time_now","arguments":{},"_meta":{"progressToken":null}`),
		"no session":      h.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Session-Id", ""),
		"a task":          h.old(t, "tools/call", `"name":"time_now","task":null`),
		"answers":         h.ask(t, "tools/call", `"name":"time_now","requestState":null,"inputResponses":null,"task":null`, "Mcp-Name", "time_now"),
		"a level": h.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":null},"io.modelcontextprotocol/logLevel":null}}}`,
			modern("tools/list", "")...),
	} {
		if r.status != 200 && r.status != 202 || r.Error.Code != 0 || r.Result.IsError {
			t.Errorf("%s: %d %s", what, r.status, r.raw)
		}
	}
	if r := h.old(t, "tools/call", `"name":"time_now","arguments":null`); r.text(t) != `{"did":{}}` {
		t.Errorf("%s", r.raw)
	}
	if r := h.old(t, "tools/call", `"name":"time_now","arguments":nullx`); r.code() != "malformed_json" {
		t.Errorf("%s", r.raw)
	}
}

// compact is JSON without the space around its values, its words untouched.
func compact(s string) string {
	if strings.HasPrefix(s, " ") {
		return strings.ReplaceAll(s, " ", "")
	}
	return s
}

// FuzzMessage: whatever is sent, the answer is one strict message of JSON-RPC, or
// none to a notification; and no call runs whose whole body is not strict JSON.
func FuzzMessage(f *testing.F) {
	for args := range arguments {
		f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"web_search","arguments":`+args+`}}`), false)
		f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"web_search","arguments":`+args+`,`+meta26+`}}`), true)
	}
	for _, more := range []string{`"inputResponses":{"a":{"b":1}},"requestState":"call_x"`, `"inputResponses":{"a":1}`, `"inputResponses":null`, `"requestState":""`} {
		f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"web_search","arguments":{"query":"x"},`+more+`,`+meta26+`}}`), true)
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","method":"tools/list","params":`+meta+`}`), true)
	f.Add([]byte(`{"params":{"arguments":{"query":"x"},"name":"web_search"},"method":"tools/call","id":1,"jsonrpc":"2.0"}`), false)
	h := open(f, plan{})
	f.Fuzz(func(t *testing.T, body []byte, new bool) {
		var headers []string
		if new {
			headers = modern("tools/call", "web_search")
		}
		before := len(h.ledger.lines())
		r := h.post(t, string(body), headers...)
		if r.raw != "" {
			if _, err := parser.ReadValue([]byte(r.raw), 200); err != nil {
				t.Fatalf("%q was answered with %q: %v", body, r.raw, err)
			}
		}
		if r.raw == "" && r.status != http.StatusAccepted {
			t.Fatalf("%q: %d and nothing said", body, r.status)
		}
		if r.status == 200 && !r.Result.IsError && r.Error.Code == 0 || r.status == http.StatusAccepted {
			if _, err := parser.ReadValue(body, 200); err != nil {
				t.Fatalf("%q was taken: %v", body, err)
			}
		}
		for _, line := range h.ledger.lines()[before:] {
			if strings.HasPrefix(line, "outcome") && len(r.Result.Content) == 0 {
				t.Fatalf("%q ran, and was answered with %s", body, r.raw)
			}
		}
		if r.status == http.StatusInternalServerError || r.Error.Code == -32603 {
			t.Fatalf("%q: %s", body, fmt.Sprint(r.raw))
		}
	})
}
