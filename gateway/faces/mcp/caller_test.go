package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/tool"
)

// patience is far longer than anything here takes.
const patience = time.Minute

// caller is a client of a revision before 2026-07-28, over real connections.
type caller struct {
	t       *testing.T
	url     string
	http    *http.Client
	headers []string
	session string
}

// serves has a gateway served over connections.
func serves(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL + "/mcp"
}

// begins is a client that has begun with its capabilities.
func begins(t *testing.T, url, revision, capabilities string, headers ...string) *caller {
	t.Helper()
	c := &caller{t: t, url: url, http: &http.Client{Transport: &http.Transport{}}, headers: append([]string{"Mcp-Protocol-Version", revision}, headers...)}
	t.Cleanup(c.http.CloseIdleConnections)
	r, body := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"c","version":"1"}}}`, revision, capabilities))
	if r.StatusCode != 200 || !strings.Contains(body, `"protocolVersion":"`+revision+`"`) {
		t.Fatalf("%d %s", r.StatusCode, body)
	}
	if c.session = r.Header.Get("Mcp-Session-Id"); c.session != "" {
		c.headers = append(c.headers, "Mcp-Session-Id", c.session)
	}
	return c
}

// request is one with the headers of the client, and some instead; "" has none.
func (c *caller) request(ctx context.Context, body string, headers ...string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for _, list := range [][]string{c.headers, headers} {
		for i := 0; i < len(list); i += 2 {
			if r.Header.Del(list[i]); list[i+1] != "" {
				r.Header.Set(list[i], list[i+1])
			}
		}
	}
	answer, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer
}

// post sends a message and takes the whole answer.
func (c *caller) post(body string, headers ...string) (*http.Response, string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r := c.request(ctx, body, headers...)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return r, string(b)
}

// streamMessage is a message that came over a stream.
type streamMessage struct {
	raw    string
	ID     any
	Method string
	Params json.RawMessage
	Result json.RawMessage
}

// talk is a call that is answered by a stream.
type talk struct {
	t          *testing.T
	header     http.Header
	next       func() streamMessage
	disconnect context.CancelFunc
}

// call has a tool called, whose name and more are the parameters.
func (c *caller) call(params string, headers ...string) *talk {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c.t.Cleanup(cancel)
	r := c.request(ctx, `{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{`+params+`}}`, headers...)
	c.t.Cleanup(func() { r.Body.Close() })
	k := &talk{t: c.t, header: r.Header, disconnect: cancel}
	if r.Header.Get("Content-Type") != "text/event-stream" {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			c.t.Fatal(err)
		}
		k.next = func() streamMessage { return c.read(bytes.TrimSuffix(b, []byte("\n"))) }
		return k
	}
	lines := bufio.NewReader(r.Body)
	k.next = func() streamMessage {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				c.t.Fatalf("the stream ended: %q %v", line, err)
			}
			if data, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "data: "); ok {
				return c.read([]byte(data))
			}
			if line != "\n" && !strings.HasPrefix(line, ":") {
				c.t.Fatalf("%q is of no event", line)
			}
		}
	}
	return k
}

func (c *caller) read(line []byte) streamMessage {
	c.t.Helper()
	m := streamMessage{raw: string(line)}
	if err := json.Unmarshal(line, &m); err != nil || strings.Contains(m.raw, serverState) {
		c.t.Fatalf("%s: %v", line, err)
	}
	return m
}

// question is the next message, which must be a question.
func (k *talk) question() streamMessage {
	k.t.Helper()
	m := k.next()
	if id, _ := m.ID.(string); len(id) != 26 || m.Method == "" {
		k.t.Fatalf("no question: %s", m.raw)
	}
	return m
}

// result is the next message but for what is withdrawn before it, which must be the
// result of the call.
func (k *talk) result() (r reply) {
	k.t.Helper()
	m := k.next()
	for m.Method == "notifications/cancelled" {
		m = k.next()
	}
	r.raw = m.raw
	if err := json.Unmarshal([]byte(m.raw), &r); err != nil || m.ID != "call" || m.Method != "" {
		k.t.Fatalf("no result: %s", m.raw)
	}
	return r
}

// says is a response to a question.
func (m streamMessage) says(result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":%s}`, m.ID, result)
}

// answer sends a response, which must be taken.
func (c *caller) answer(q streamMessage, result string) {
	c.t.Helper()
	if r, body := c.post(q.says(result)); r.StatusCode != http.StatusAccepted || body != "" {
		c.t.Fatalf("%d %s", r.StatusCode, body)
	}
}

// empty waits until no question waits.
func (h *fixture) empty(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(patience); h.face.Waiting() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d questions wait", h.face.Waiting())
		}
	}
}

// everything is what a client declares that answers all kinds of questions.
const everything = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{"listChanged":true}}`

const (
	ann       = `{"action":"accept","content":{"name":"Ann"}}`
	completed = `{"booked":true}`
)

// all are questions of every kind.
func all() []tool.Question {
	return []tool.Question{
		who(),
		{Name: "pay", Kind: "url", Method: "elicitation/create", Params: json.RawMessage(`{"mode":"url","message":"Pay","url":"https://pay.example/1"}`)},
		{Name: "model", Kind: "sampling", Method: "sampling/createMessage", Params: json.RawMessage(`{"maxTokens":10,"messages":[{"role":"user","content":{"type":"text","text":"Hi"}}]}`)},
		{Name: "where", Kind: "roots", Method: "roots/list", Params: json.RawMessage(`{}`)},
	}
}
