// Package clients_test drives the official Go client against the model itself
// and against gateways in front of it. It is a module of its own, so that what
// the client needs stays out of the gateway's.
package clients_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

// place is where the client is pointed.
type place struct {
	name, address, prefix string
	judges                bool
}

func address(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run make test-clients", name)
	}
	return value + "/v1"
}

func places(t *testing.T) []place {
	enforcing := address(t, "CLIENTS_ENFORCE")
	return []place{
		{"the model itself", address(t, "CLIENTS_MODEL"), "", false},
		{"enforce, native protocol", enforcing, "", true},
		{"enforce, text protocol", enforcing, "text/", true},
	}
}

func orchestrated(t *testing.T) []place {
	orchestrating := address(t, "CLIENTS_ORCHESTRATE")
	return []place{
		{"orchestrate, native protocol", orchestrating, "", true},
		{"orchestrate, text protocol", orchestrating, "text/", true},
	}
}

// counted counts requests.
type counted struct{ requests int }

func (c *counted) Do(r *http.Request) (*http.Response, error) {
	c.requests++
	return http.DefaultClient.Do(r)
}

func (p place) client(more ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{option.WithBaseURL(p.address), option.WithAPIKey("unused")}, more...)...)
}

// asking is a request for a scenario of the sample model.
func (p place) asking(scenario string, tools ...openai.ChatCompletionToolUnionParam) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    p.prefix + scenario,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Please.")},
		Tools:    tools,
	}
}

// names are of what the application can run.
var names = []string{"math_evaluate", "web_search", "files_read"}

// tools are what the application can run.
func tools() []openai.ChatCompletionToolUnionParam {
	var all []openai.ChatCompletionToolUnionParam
	for _, name := range names {
		all = append(all, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name:       name,
			Parameters: shared.FunctionParameters{"type": "object"},
		}))
	}
	return all
}

// perform is what the application's tools return.
func perform(t *testing.T, name, arguments string) string {
	t.Helper()
	if !json.Valid([]byte(arguments)) {
		t.Fatalf("%s got the arguments %q", name, arguments)
	}
	switch name {
	case "math_evaluate":
		return `{"value":14}`
	case "web_search":
		return `{"results":[{"title":"Two tides a day","url":"https://example.com/tides"}]}`
	case "files_read":
		return `{"path":"notes.md","text":"# Notes"}`
	}
	t.Fatalf("there is no tool %s", name)
	return ""
}

// answered asks once, streamed or not.
func answered(t *testing.T, c openai.Client, q openai.ChatCompletionNewParams, stream bool) (openai.ChatCompletionMessage, error) {
	t.Helper()
	if !stream {
		got, err := c.Chat.Completions.New(t.Context(), q)
		if err != nil {
			return openai.ChatCompletionMessage{}, err
		}
		return got.Choices[0].Message, nil
	}
	s := c.Chat.Completions.NewStreaming(t.Context(), q)
	defer s.Close()
	var all openai.ChatCompletionAccumulator
	for s.Next() {
		if !all.AddChunk(s.Current()) {
			t.Fatal("the chunks do not fit together")
		}
	}
	if err := s.Err(); err != nil {
		return openai.ChatCompletionMessage{}, err
	}
	return all.Choices[0].Message, nil
}

// loop lets the model call tools until it answers in text.
func loop(t *testing.T, c openai.Client, q openai.ChatCompletionNewParams, stream bool) string {
	t.Helper()
	for range 6 {
		m, err := answered(t, c, q, stream)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.ToolCalls) == 0 {
			return m.Content
		}
		q.Messages = append(q.Messages, m.ToParam())
		for _, call := range m.ToolCalls {
			q.Messages = append(q.Messages, openai.ToolMessage(perform(t, call.Function.Name, call.Function.Arguments), call.ID))
		}
	}
	t.Fatal("the model does not come to an end")
	return ""
}

// both runs a test streamed and not.
func both(t *testing.T, name string, f func(t *testing.T, stream bool)) {
	t.Run(name, func(t *testing.T) { f(t, false) })
	t.Run(name+", streamed", func(t *testing.T) { f(t, true) })
}

func TestEnforce(t *testing.T) {
	for _, p := range places(t) {
		t.Run(p.name, func(t *testing.T) {
			both(t, "text", func(t *testing.T, stream bool) {
				m, err := answered(t, p.client(), p.asking("text"), stream)
				if err != nil || !strings.Contains(m.Content, "rises and falls") {
					t.Errorf("%q, %v", m.Content, err)
				}
			})
			both(t, "a tool call", func(t *testing.T, stream bool) {
				for _, scenario := range []string{"call", "bytes"} {
					m, err := answered(t, p.client(), p.asking(scenario, tools()...), stream)
					if err != nil || len(m.ToolCalls) != 1 || m.ToolCalls[0].Function.Name != "math_evaluate" || m.ToolCalls[0].ID == "" {
						t.Errorf("%s: %+v, %v", scenario, m.ToolCalls, err)
					}
				}
			})
			both(t, "a loop", func(t *testing.T, stream bool) {
				const want = `The best page is "Two tides a day", at https://example.com/tides. The notes of this project begin with "# Notes".`
				if got := loop(t, p.client(), p.asking("agent", tools()...), stream); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
			if !p.judges {
				return
			}
			both(t, "a call that is corrected is seen corrected only", func(t *testing.T, stream bool) {
				for _, scenario := range []string{"near-name", "prose"} {
					if scenario == "prose" && stream && p.prefix != "" {
						continue // the prose has been shown before the call begins
					}
					m, err := answered(t, p.client(), p.asking(scenario, tools()...), stream)
					if err != nil || len(m.ToolCalls) != 1 || m.ToolCalls[0].Function.Name != "math_evaluate" {
						t.Errorf("%s: %+v, %v", scenario, m.ToolCalls, err)
					}
				}
			})
			t.Run("a refusal is an error of the client", func(t *testing.T) {
				count := &counted{}
				_, err := answered(t, p.client(option.WithHTTPClient(count)), p.asking("stubborn", tools()...), false)
				refused(t, err, http.StatusUnprocessableEntity, "unexpected_argument")
				if count.requests != 1 {
					t.Errorf("%d requests, want no further one", count.requests)
				}
			})
			t.Run("a refusal of a stream", func(t *testing.T) {
				m, err := answered(t, p.client(), p.asking("stubborn", tools()...), true)
				refusedInStream(t, m, err, "unexpected_argument")
				if p.prefix != "" {
					// Text that was shown cannot be taken back, so the stream ends in an
					// error.
					m, err = answered(t, p.client(), p.asking("prose", tools()...), true)
					refusedInStream(t, m, err, "mixed_output")
				}
			})
			t.Run("an answer that breaks off is no call", func(t *testing.T) {
				// Nothing ran, so the client may ask again, and by default it does.
				once := p.client(option.WithMaxRetries(0))
				_, err := answered(t, once, p.asking("cut", tools()...), false)
				refused(t, err, http.StatusBadGateway, "upstream_unavailable")
				m, err := answered(t, once, p.asking("cut", tools()...), true)
				refusedInStream(t, m, err, "upstream_unavailable")
			})
		})
	}
}

func TestOrchestrate(t *testing.T) {
	for _, p := range orchestrated(t) {
		t.Run(p.name, func(t *testing.T) {
			both(t, "a whole task in one request", func(t *testing.T, stream bool) {
				m, err := answered(t, p.client(), p.asking("agent"), stream)
				if err != nil || len(m.ToolCalls) > 0 || !strings.Contains(m.Content, "https://example.com/science/tides") || !strings.Contains(m.Content, "# Notes") {
					t.Errorf("%q, %v", m.Content, err)
				}
			})
			t.Run("an endless loop ends", func(t *testing.T) {
				_, err := answered(t, p.client(), p.asking("loop"), false)
				refused(t, err, http.StatusUnprocessableEntity, "bound_reached")
				m, err := answered(t, p.client(), p.asking("loop"), true)
				refusedInStream(t, m, err, "bound_reached")
			})
		})
	}
}

// refused wants the client's own error, with status, code and message.
func refused(t *testing.T, err error, status int, code string) {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) || e.StatusCode != status || e.Code != code || e.Message == "" {
		t.Errorf("got %v, want %d %s as an error of the client", err, status, code)
	}
}

// refusedInStream wants a stream that ended in an error which has the code, or,
// where nothing had been sent, in one of the client.
func refusedInStream(t *testing.T, m openai.ChatCompletionMessage, err error, code string) {
	t.Helper()
	var e *openai.Error
	if errors.As(err, &e) {
		if e.Code != code {
			t.Errorf("got the code %q, want %s", e.Code, code)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), code) {
		t.Errorf("the stream ended with %v and the calls %+v, want %s", err, m.ToolCalls, code)
	}
}
