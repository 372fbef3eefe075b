package registry

import (
	"encoding/json"
	"github.com/callgate/callgate/tool"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRequests loads tools whose arguments have places in a request. Where a case
// states no schema, it is one that declares and requires just these arguments.
func TestRequests(t *testing.T) {
	var cases []struct {
		Why, Type, Method, URL string
		Open                   bool
		Parameters             []tool.Parameter
		Schema                 json.RawMessage
		Want                   []wantFault
	}
	readCases(t, filepath.Join("testdata", "load", "request.json"), &cases)
	if len(cases) < 50 {
		t.Fatalf("found %d cases; expected at least 50", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Why, func(t *testing.T) {
			tool := Tool{Name: "a", Open: c.Open, InputSchema: c.Schema, Run: tool.Run{Type: defaulted(c.Type, "http"), URL: c.URL, Method: c.Method, Parameters: c.Parameters}}
			if tool.Run.Type == "mcp" {
				tool.Run.Tool = "a"
			}
			if c.Schema == nil {
				tool.InputSchema = schemaOf(t, c.Parameters)
			}
			r, err := New([]Tool{tool})
			if len(c.Want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				e, _ := r.Lookup("a")
				if found := e.Run(); !slices.Equal(found.Parameters, c.Parameters) || found.Method != c.Method {
					t.Errorf("found %+v", found)
				}
				if len(c.Parameters) > 0 {
					e.Run().Parameters[0].In = "changed"
					if e.Run().Parameters[0].In == "changed" {
						t.Error("who asks for the parameters can change them")
					}
				}
				return
			}
			if err == nil {
				t.Fatal("loaded")
			}
			found := loadErrors(t, err)
			if len(found) != len(c.Want) {
				t.Fatalf("found %v; expected %v", found, c.Want)
			}
			for i, f := range found {
				if field := strings.Join(f.Field, "."); field != c.Want[i].Field || !strings.Contains(f.Message, c.Want[i].Message) {
					t.Errorf("found %s: %s; expected %s: %s", field, f.Message, c.Want[i].Field, c.Want[i].Message)
				}
			}
		})
	}
}

func schemaOf(t *testing.T, parameters []tool.Parameter) json.RawMessage {
	t.Helper()
	properties, required := map[string]any{}, []string{}
	for _, p := range parameters {
		properties[p.Argument] = map[string]string{"type": "string"}
		if !slices.Contains(required, p.Argument) {
			required = append(required, p.Argument)
		}
	}
	raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestKeptHeaders(t *testing.T) {
	for _, name := range []string{
		"Host", "host", "Connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "transfer_encoding", "Upgrade", "Proxy-Authorization", "Proxy-Connection",
		"Content-Type", "Content-Length", "content_encoding", "Authorization", "Cookie", "Set-Cookie", "Expect", "Callgate-Call-Id", "Callgate-Anything",
		"Idempotency-Key", "Accept", "Accept-Encoding", "User-Agent", "Forwarded", "X-Forwarded-For", "X_Forwarded_Host", "X-HTTP-Method-Override", "Sec-Fetch-Site", "traceparent",
		"X-Original-URL", "X-Original-Host", "X_Remote_User", "Remote-Addr", "X-Host", "True-Client-IP", "CF-Connecting-IP",
	} {
		if !ReservedHeader(name) {
			t.Errorf("an argument may give %s", name)
		}
		if _, err := New([]Tool{{Name: "a", InputSchema: json.RawMessage(`{"type":"object","properties":{"h":{"type":"string"}}}`),
			Run: tool.Run{Type: "http", URL: "https://a.example/", Method: "GET", Parameters: []tool.Parameter{{Argument: "h", In: "header", Name: name}}}}}); err == nil {
			t.Errorf("a tool loads that gives %s", name)
		}
	}
	for _, name := range []string{"If-Match", "X-Request-Id", "Accept-Language", "Prefer", "Range", "X-Content", "Hostname", "Tenant"} {
		if ReservedHeader(name) {
			t.Errorf("no argument may give %s", name)
		}
	}
}
