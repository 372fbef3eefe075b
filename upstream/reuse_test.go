package upstream

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/callgate/callgate/upstream/chat"
)

// TestReadersAreNotShared: answers that are read at the same time, by readers that are used
// again, keep their own texts, also after the next answer was read.
func TestReadersAreNotShared(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		name := string(body)
		if r.Header.Get("Accept") == "application/json" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"%s","choices":[{"index":0,"message":{"content":"%s"},"finish_reason":"stop"}],"usage":{"total_tokens":1,"for":"%s"},"x":"%s"}`, name, name, name, name)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range 50 {
			fmt.Fprintf(w, `data: {"id":"%s","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}],"x":"%s"}`+"\n\n", name, name, name)
		}
		_, _ = io.WriteString(w, endEvent+doneEvent)
	}))
	t.Cleanup(server.Close)
	c, route := newClient(t, Options{}), routeTo(t, definition(server.URL))
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			var kept []*chat.Completion
			var names []string
			var texts [][]string
			for turn := range 20 {
				name := fmt.Sprintf("%c%d", 'a'+worker, turn)
				names = append(names, name)
				whole, err := c.Complete(t.Context(), route, []byte(name))
				if err != nil {
					t.Error(err)
					return
				}
				kept = append(kept, whole)
				pieces, err := piecesOf(c, route, name, t)
				if err != nil {
					t.Error(err)
					return
				}
				texts = append(texts, pieces)
			}
			for i, whole := range kept {
				if *whole.Choices[0].Message.Content != names[i] || !strings.Contains(string(whole.Usage.Raw), names[i]) || string(whole.Extra.Lookup("x")) != `"`+names[i]+`"` {
					t.Errorf("%s: got %+v", names[i], whole)
				}
				if got := strings.Join(texts[i], ","); got != strings.Repeat(names[i]+",", 49)+names[i] {
					t.Errorf("%s: got %q", names[i], got)
				}
			}
		})
	}
	all.Wait()
}

// piecesOf are the contents of the chunks of a stream.
func piecesOf(c *Client, route *Route, body string, t *testing.T) ([]string, error) {
	events, err := c.Stream(t.Context(), route, []byte(body))
	if err != nil {
		return nil, err
	}
	defer events.Close()
	var pieces []string
	for {
		chunk, err := events.Next()
		if err == io.EOF {
			return pieces, nil
		}
		if err != nil {
			return nil, err
		}
		if text := chunk.Choices[0].Delta.Content; text != nil {
			pieces = append(pieces, *text)
		}
	}
}
