package mcp_test

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/tool"
)

// The calls of one session have one thread for their tools, which is not the session's id; a
// thread that the client names comes before, and the calls of another session have another.
func TestTIP05OneThreadForASession(t *testing.T) {
	threads := make(chan string, 1)
	h := open(t, plan{engine: func(task tool.Call) (tool.Result, error) {
		threads <- task.Thread
		return tool.Result{Body: []byte(`{}`), JSON: true}, nil
	}})
	session := func() string {
		r := h.post(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		return r.header.Get("Mcp-Session-Id")
	}
	call := func(headers ...string) string {
		r := h.post(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"time_now","arguments":{}}}`, append([]string{"MCP-Protocol-Version", "2025-11-25"}, headers...)...)
		select {
		case thread := <-threads:
			return thread
		default:
			t.Fatalf("the tool was not called: %+v", r)
			return ""
		}
	}
	one, other := session(), session()
	first := call("Mcp-Session-Id", one)
	if second := call("Mcp-Session-Id", one); first == "" || second != first || strings.Contains(one, first) || strings.Contains(first, strings.Split(one, ".")[2]) {
		t.Errorf("found the threads %q and %q in the session %q", first, second, one)
	}
	if third := call("Mcp-Session-Id", other); third == first || third == "" {
		t.Errorf("another session has the thread %q", third)
	}
	if own := call("Mcp-Session-Id", one, "Callgate-Thread", "conv"); own != "conv" {
		t.Errorf("found the thread %q", own)
	}
	if alone := call(); alone != "" {
		t.Errorf("a call without a session is of the thread %q", alone)
	}
}
