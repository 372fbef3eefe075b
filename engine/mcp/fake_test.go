package mcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// fake is a server below the SDK: it greets as it should, and answers calls as a
// test likes.
type fake struct {
	url    string
	legacy bool
	tools  string // of its list
	page   func(cursor string) string
	list   func(w http.ResponseWriter, r *http.Request, id string) // instead of both; may be nil
	call   func(w http.ResponseWriter, r *http.Request, id string)
	sees   func(method string) // before it answers; may be nil
	// answers answers a request in place of everything above, and reports whether it has; may be nil.
	answers func(w http.ResponseWriter, r *http.Request, method string) bool

	mu      sync.Mutex
	methods []string
	headers []http.Header
	bodies  []string
	from    []string // addresses of the client
}

const oneTool = `[{"name":"echo","inputSchema":{"type":"object"}}]`

// newFake starts a server. It counts what it is sent.
func newFake(t testing.TB, legacy bool, call func(w http.ResponseWriter, r *http.Request, id string)) *fake {
	t.Helper()
	f := &fake{legacy: legacy, tools: oneTool, call: call}
	server := httptest.NewServer(f)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	f.url = server.URL
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Cursor string }
	}
	if len(body) > 0 && json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if m.Method == "" {
		m.Method = r.Method
	}
	f.mu.Lock()
	f.methods, f.headers, f.bodies = append(f.methods, m.Method), append(f.headers, r.Header.Clone()), append(f.bodies, string(body))
	f.from = append(f.from, r.RemoteAddr)
	f.mu.Unlock()
	if f.sees != nil {
		f.sees(m.Method)
	}
	if f.answers != nil && f.answers(w, r, m.Method) {
		return
	}
	switch m.Method {
	case "server/discover":
		if f.legacy {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		result(w, string(m.ID), `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`)
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "session-1")
		result(w, string(m.ID), `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`)
	case "tools/list":
		if f.list != nil {
			f.list(w, r, string(m.ID))
			return
		}
		if f.page != nil {
			result(w, string(m.ID), f.page(m.Params.Cursor))
			return
		}
		result(w, string(m.ID), `{"resultType":"complete","tools":`+f.tools+`,"ttlMs":0,"cacheScope":"private"}`)
	case "ping":
		result(w, string(m.ID), `{}`)
	case "tools/call":
		f.call(w, r, string(m.ID))
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// count is how often a method was sent.
func (f *fake) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, m := range f.methods {
		if m == method {
			n++
		}
	}
	return n
}

// last is the last request of a method.
func (f *fake) last(t testing.TB, method string) (http.Header, string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.methods) - 1; i >= 0; i-- {
		if f.methods[i] == method {
			return f.headers[i], f.bodies[i]
		}
	}
	t.Fatalf("the server was not sent %s", method)
	return nil, ""
}

// raw writes JSON as it is.
func raw(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, body)
}

// result answers a request.
func result(w http.ResponseWriter, id, result string) {
	raw(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result))
}

// text is a result of one block.
func text(s string) string {
	quoted, _ := json.Marshal(s)
	return `{"resultType":"complete","content":[{"type":"text","text":` + string(quoted) + `}]}`
}

// answering returns what answers each call with a result.
func answering(body string) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, _ *http.Request, id string) { result(w, id, body) }
}

// withMessages returns what answers each call with JSON in which ID is the id.
func withMessages(body string) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, _ *http.Request, id string) { raw(w, strings.ReplaceAll(body, "ID", id)) }
}

// streaming returns what answers each call with events in which ID is the id.
func streaming(events ...string) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, _ *http.Request, id string) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			io.WriteString(w, strings.ReplaceAll(e, "ID", id))
			w.(http.Flusher).Flush()
		}
	}
}

// endless returns what repeats a text until the client goes away.
func endless(media, head, text string) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, _ *http.Request, id string) {
		w.Header().Set("Content-Type", media)
		io.WriteString(w, strings.ReplaceAll(head, "ID", id))
		for {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
		}
	}
}

// hang answers when the client has gone.
func hang(_ http.ResponseWriter, r *http.Request, _ string) { <-r.Context().Done() }

// cut breaks the connection off.
func cut(w http.ResponseWriter, _ *http.Request, _ string) { panic(http.ErrAbortHandler) }

// status answers with a status alone.
func status(code int) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, _ *http.Request, _ string) { w.WriteHeader(code) }
}
