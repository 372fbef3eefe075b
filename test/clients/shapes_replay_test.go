package clients_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/upstream"
)

// TestShapesReplayed sends what the clients sent in every shape to a whole gateway. It needs
// neither the clients nor the network.
func TestShapesReplayed(t *testing.T) {
	if !app.Speaks(upstream.ResponsesWire) {
		t.Skip("skipped: the shapes are those of all APIs, and this program has no face of OpenAI Responses")
	}
	g := serveShapes(t)
	recorded := map[string]map[string][]*exchange{}
	for _, s := range readShapes(t) {
		if recorded[s.Client] == nil {
			recorded[s.Client] = readExchanges(t, s.Client)
		}
		exchanges := recorded[s.Client][s.ID]
		delete(recorded[s.Client], s.ID)
		if len(exchanges) == 0 {
			t.Errorf("%s: %s has no request of it", s.ID, requestsFile(s.Client))
			continue
		}
		g.drain()
		var status int
		var answer string
		for i, e := range exchanges {
			if status, answer = g.send(t, e); status != e.Status {
				t.Errorf("%s, request %d: found %d %s; expected %d", s.ID, i, status, answer, e.Status)
			}
		}
		s.checkAnswer(t, status, answer)
		asked := g.drain()
		for _, part := range s.Sends {
			if len(asked) == 0 || !strings.Contains(asked[len(asked)-1], part) {
				t.Errorf("%s: the model was sent %s; expected %s in it", s.ID, asked, part)
			}
		}
		if s.Refused != nil && s.Refused.Code == "bad_request" && len(exchanges) == 1 && len(asked) > 0 {
			t.Errorf("%s: the request is refused, and the model was asked: %s", s.ID, asked)
		}
	}
	for client, rest := range recorded {
		for id := range rest {
			t.Errorf("%s has requests of %s, which %s does not have", requestsFile(client), id, shapesFile)
		}
	}
}

// send sends a request as it was recorded, and returns the status and the body of the answer. On a
// machine that stands still for seconds the gateway closes connections whose request has not come in
// time: then the request is sent again, as clients do.
func (g *shapesGateway) send(t *testing.T, e *exchange) (status int, answer string) {
	t.Helper()
	var err error
	for range 5 {
		if status, answer, err = g.sendOnce(t.Context(), e); err == nil {
			return status, answer
		}
	}
	t.Fatal(err)
	return 0, ""
}

func (g *shapesGateway) sendOnce(ctx context.Context, e *exchange) (int, string, error) {
	body := e.Other
	if body == nil {
		body = e.Body
	}
	request, err := http.NewRequestWithContext(ctx, e.Method, g.address+e.Path, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for name, value := range e.Header {
		request.Header.Set(name, value)
	}
	response, err := g.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), err
}

// checkAnswer checks the last answer of a shape: its text, its calls or its refusal.
func (s *shape) checkAnswer(t *testing.T, status int, answer string) {
	t.Helper()
	if s.Refused == nil {
		if status != http.StatusOK || strings.Contains(answer, `"error":{`) {
			t.Errorf("%s: found %d %s", s.ID, status, answer)
		}
		expected := cmp.Or(s.Answer, s.Sees)
		if text := textsOf(answer); !strings.Contains(text, expected) && !strings.Contains(answer, expected) {
			t.Errorf("%s: found %q of %s; expected %q", s.ID, text, answer, expected)
		}
		return
	}
	if s.Refused.Status != 0 && status != s.Refused.Status {
		t.Errorf("%s: found the status %d; expected %d", s.ID, status, s.Refused.Status)
	}
	code, message := refusalOf(answer)
	if code != s.Refused.Code || !strings.Contains(message, s.Refused.Names) {
		t.Errorf("%s: found %q, %q of %s; expected the code %s, and that the message names %q", s.ID, code, message, answer, s.Refused.Code, s.Refused.Names)
	}
}

// data returns the JSON documents of an answer: its body, or the data of its events.
func data(answer string) []map[string]any {
	var all []map[string]any
	for line := range strings.Lines(answer) {
		var document map[string]any
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &document) == nil {
			all = append(all, document)
		}
	}
	return all
}

// textsOf returns everything that an answer says, of any API, in the order of its pieces.
func textsOf(answer string) string {
	var b strings.Builder
	for _, document := range data(answer) {
		collect(&b, document)
	}
	return b.String()
}

// collect writes the texts of a value: the strings under the members that hold text, names and
// arguments.
func collect(b *strings.Builder, value any) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			collect(b, element)
		}
	case map[string]any:
		for _, name := range []string{"name", "text", "content", "arguments", "partial_json", "delta", "input", "message", "tool_calls", "function", "choices", "output", "content_block", "item", "data"} {
			if s, ok := v[name].(string); ok {
				b.WriteString(s)
				continue
			}
			collect(b, v[name])
		}
		for _, name := range []string{"command", "expression"} {
			s, _ := v[name].(string)
			b.WriteString(s)
		}
	}
}

// refusalOf reads the refusal of an answer in the shape of any of the APIs: the code and the message
// that their clients show.
func refusalOf(answer string) (code, message string) {
	type fault struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Details struct {
			Code string `json:"error_code"`
		} `json:"details"`
	}
	for _, document := range data(answer) {
		for _, at := range []any{document, document["response"]} {
			o, _ := at.(map[string]any)
			raw, err := json.Marshal(o["error"])
			var f fault
			if err == nil && json.Unmarshal(raw, &f) == nil && f.Message != "" {
				return f.Code + f.Details.Code, f.Message
			}
		}
	}
	return "", ""
}
