package approvals_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/refusal"
)

// The revisions of MCP that stories are told in, and what a client declares to show its user.
const (
	mcpNow  = "2026-07-28"
	mcpThen = "2025-11-25"

	showsNothing = `{}`
	showsPages   = `{"elicitation":{"url":{}}}`
	showsForms   = `{"elicitation":{"form":{}}}`
)

// byMCP are the faces for clients of MCP: in two revisions, of clients that show nothing and of
// those that show the page where people decide.
func byMCP() []face {
	return []face{
		{"MCP " + mcpNow, false, true, func(o *office, c call) *httptest.ResponseRecorder {
			return o.sendMCP(c, showsNothing, "")
		}, codeOfMCP},
		{"MCP " + mcpNow + ", page", false, false, func(o *office, c call) *httptest.ResponseRecorder {
			return o.sendMCP(c, showsPages, "")
		}, codeOfMCPPage},
		{"MCP " + mcpThen, false, true, func(o *office, c call) *httptest.ResponseRecorder {
			return o.talk(c, showsNothing, nil)
		}, codeOfMCP},
		{"MCP " + mcpThen + ", page", false, false, func(o *office, c call) *httptest.ResponseRecorder {
			return o.talk(c, showsPages, func(string) string { return `{"action":"decline"}` })
		}, codeOfMCPPage},
	}
}

// sendMCP sends a call of 2026-07-28, with more members of its parameters.
func (o *office) sendMCP(c call, shows, more string) *httptest.ResponseRecorder {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":%s}`
	params := fmt.Sprintf(`"name":%q,"arguments":%s%s,`+meta, c.tool(), c.Arguments, more, mcpNow, shows)
	return o.post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+params+`}}`, c,
		"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", mcpNow, "Mcp-Method", "tools/call", "Mcp-Name", c.tool())
}

// replies are what a call of 2026-07-28 says to what an earlier response asked.
func replies(id, name, reply string) string {
	return fmt.Sprintf(`,"requestState":"approval.%s","inputResponses":{%q:%s}`, id, name, reply)
}

var (
	questionID = regexp.MustCompile(`"id":"([A-Z2-7]{26})"`)
	pageOf     = regexp.MustCompile(regexp.QuoteMeta(pages) + `(call_[A-Z2-7]+)`)
)

// talk has a client of 2025-11-25 make a call, and answer each question in the middle of it. It
// returns the answer with all that was streamed.
func (o *office) talk(c call, shows string, answer func(question string) string) *httptest.ResponseRecorder {
	headers := []string{"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", mcpThen}
	begun := o.post("/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"c","version":"1"}}}`, mcpThen, shows), c, headers...)
	if session := begun.Header().Get("Mcp-Session-Id"); session != "" {
		headers = append(headers, "Mcp-Session-Id", session)
	}
	questions, done := make(chan string, 16), make(chan struct{})
	seen := map[string]bool{}
	w := &facetest.Recorder{ResponseRecorder: httptest.NewRecorder(), Seen: func(body string) {
		for line := range strings.SplitSeq(body[:strings.LastIndex(body, "\n")+1], "\n") {
			if strings.Contains(line, "elicitation/create") && !seen[line] {
				seen[line] = true
				questions <- line
			}
		}
	}}
	r := o.request("/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":%q,"arguments":%s}}`, c.tool(), c.Arguments), c, headers...)
	go func() {
		defer close(done)
		o.ServeHTTP(w, r)
	}()
	for {
		select {
		case <-done:
			return w.ResponseRecorder
		case q := <-questions:
			o.post("/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":%s}`, questionID.FindStringSubmatch(q)[1], answer(q)), c, headers...)
		}
	}
}

// codeOfMCP is the code of the result of a call; approval_required where it asks for input.
func codeOfMCP(t *testing.T, _ *office, w *httptest.ResponseRecorder) string {
	t.Helper()
	raw := w.Body.String()
	if i := strings.LastIndex(raw, "data: "); i >= 0 {
		raw = raw[i+len("data: "):]
	}
	var got struct {
		Result *struct {
			Type    string `json:"resultType"`
			IsError bool
			Content []struct{ Text string }
		}
		Error struct{ Data struct{ Code string } }
	}
	if err := json.Unmarshal([]byte(raw), &got); err != nil || (got.Result == nil) == (got.Error.Data.Code == "") {
		t.Fatalf("%v: %s", err, w.Body)
	}
	switch {
	case got.Result == nil: // what the client replied is refused
		return got.Error.Data.Code
	case got.Result.Type == "input_required":
		return string(refusal.ApprovalRequired)
	case !got.Result.IsError:
		return ""
	case len(got.Result.Content) != 1:
		t.Fatal(w.Body)
	}
	return codeIn(got.Result.Content[0].Text)
}

// codeOfMCPPage is codeOfMCP for a client that shows pages: it was shown that of the approval if
// and only if the call waits for people.
func codeOfMCPPage(t *testing.T, o *office, w *httptest.ResponseRecorder) string {
	t.Helper()
	code := codeOfMCP(t, o, w)
	page := pageOf.FindStringSubmatch(w.Body.String())
	if waits := code == string(refusal.ApprovalRequired) && len(o.opened()) > 0; waits != (page != nil) || waits && !slices.Contains(o.opened(), page[1]) {
		t.Errorf("waits: %v, and was shown %q", waits, page)
	}
	return code
}
