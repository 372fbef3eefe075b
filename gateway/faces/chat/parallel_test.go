package chat_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var streamName = regexp.MustCompile(`stream-(\d+)-(\w+)`)

// textOf is the text of one stream in pieces, of several alphabets and lengths.
func textOf(seed int) (pieces []string) {
	random := rand.New(rand.NewPCG(1, uint64(seed)))
	for i := range 30 {
		pieces = append(pieces, fmt.Sprintf("%d:%d ", seed, i)+strings.Repeat(string([]rune("aZé\"\\\n日")[random.IntN(7)]), random.IntN(8)))
	}
	return pieces
}

// TestStreamsShareNothing: streams over real connections, cut at any byte, some of which are
// refused at their end and some of whose applications leave in the middle. Every other one gets
// exactly its own text.
func TestStreamsShareNothing(t *testing.T) {
	h := open(t, func(_ int, w http.ResponseWriter, r *http.Request) {}, plan{rules: noRepairs})
	h.model.script = func(turn int, w http.ResponseWriter, r *http.Request) {
		name := streamName.FindStringSubmatch(string(h.model.body(t, turn)))
		seed, _ := strconv.Atoi(name[1])
		var all strings.Builder
		for i, piece := range textOf(seed) {
			padding := strings.Repeat("x", i%15/14*100_000) // longer than any buffer
			fmt.Fprintf(&all, "data: {\"obfuscation\":\"%s\",\"id\":\"c%d\",\"object\":\"chat.completion.chunk\",\"created\":7,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":null}]}\n\n", padding, seed, quoted(piece))
		}
		end := `{},"finish_reason":"stop"`
		if name[2] == "refused" {
			end = `{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"no_such_tool","arguments":"{}"}}]},"finish_reason":"tool_calls"`
		}
		fmt.Fprintf(&all, "data: {\"id\":\"c%d\",\"object\":\"chat.completion.chunk\",\"created\":7,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\ndata: [DONE]\n\n", seed, end)
		w.Header().Set("Content-Type", "text/event-stream")
		random, text := rand.New(rand.NewPCG(2, uint64(seed))), all.String()
		for len(text) > 0 {
			n := min(len(text), 1+random.IntN(3000))
			if _, err := io.WriteString(w, text[:n]); err != nil {
				return
			}
			if text = text[n:]; random.IntN(2) == 0 {
				w.(http.Flusher).Flush()
			}
			if name[2] == "left" && len(text) < all.Len()/2 {
				<-r.Context().Done() // it stalls
				return
			}
		}
	}
	server := httptest.NewServer(h)
	defer server.Close()
	var all sync.WaitGroup
	for worker := range 12 {
		all.Go(func() {
			for turn := range 8 {
				seed, kind := 100*worker+turn, []string{"whole", "refused", "left"}[(worker+turn)%3]
				ctx, cancel := context.WithCancel(t.Context())
				if kind == "left" {
					time.AfterFunc(time.Duration(seed%7)*10*time.Millisecond, cancel)
				}
				body := strings.Replace(asks(`"stream":true`), `"hi"`, fmt.Sprintf(`"stream-%d-%s"`, seed, kind), 1)
				request, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v1/chat/completions", strings.NewReader(body))
				request.Header.Set("Content-Type", "application/json")
				answer, err := server.Client().Do(request)
				var text []byte
				if err == nil {
					text, err = io.ReadAll(answer.Body)
					answer.Body.Close()
				}
				cancel()
				want := strings.Join(textOf(seed), "")
				if kind == "left" {
					if end := strings.LastIndex(string(text), "\n\n"); end > 0 {
						if got := readsStream(t, string(text[:end])).text(); !strings.HasPrefix(want, got) {
							t.Errorf("stream %d begins with %.200q", seed, got)
						}
					}
					continue
				}
				if err != nil {
					t.Errorf("stream %d: %v", seed, err)
					continue
				}
				got := readsStream(t, string(text))
				if got.text() != want || got.done != (kind == "whole") || (got.Error.Code != "") != (kind == "refused") {
					t.Errorf("stream %d, %s: done %t, %q, %.200q", seed, kind, got.done, got.Error.Code, got.text())
				}
			}
		})
	}
	all.Wait()
}
