package mcp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/tool"
)

// answers has a client of the official SDK call a tool that asks for everything, in a
// revision, and answer it. It tells what the client was asked.
func answers(t *testing.T, revision string, transport sdk.Transport) (requests []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, what)
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{
			RootsV2:     &sdk.RootCapabilities{}, //nolint:staticcheck // of these revisions it is no past
			Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}},
		},
		ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			if r.Params.URL != "" {
				note("url " + r.Params.URL)
				return &sdk.ElicitResult{Action: "accept"}, nil
			}
			note("form " + r.Params.Message)
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}, nil
		},
		CreateMessageHandler: func(_ context.Context, r *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) { //nolint:staticcheck // the same
			note(fmt.Sprintf("sampling %v %d", r.Params.Messages[0].Content.(*sdk.TextContent).Text, r.Params.MaxTokens))
			return &sdk.CreateMessageResult{Role: "assistant", Model: "m", Content: &sdk.TextContent{Text: "Hello"}}, nil //nolint:staticcheck // the same
		},
	})
	c.AddRoots(&sdk.Root{URI: "file:///srv/alpha/work", Name: "work"}) //nolint:staticcheck // the same
	s, err := c.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.InitializeResult().ProtocolVersion; got != revision {
		t.Errorf("the revision is %s", got)
	}
	r, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "book"})
	if err != nil || r.IsError || r.Content[0].(*sdk.TextContent).Text != completed {
		t.Errorf("%+v: %v", r, err)
	}
	return requests
}

// everyKind asks for every kind that it may.
func everyKind(tasks *[]tool.Call) toolFunc {
	return func(task tool.Call) (tool.Result, error) {
		a := &asker{}
		for _, q := range all() {
			for _, kind := range task.QuestionKinds {
				if q.Kind == kind {
					a.questions = append(a.questions, q)
				}
			}
		}
		*tasks = append(*tasks, task)
		return a.run(task)
	}
}

// inWork is a project whose paths are those of the client's roots.
func inWork() map[string]string {
	files := map[string]string{"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst, Intern], roots: [/srv/alpha]}}}}\n# end\n"}
	for name, text := range asking {
		files[name] = text
	}
	return files
}

// TestOfficialClientElicit: the official client of before 2026-07-28 is asked, over
// HTTP and pipes, and its answers reach the tool.
func TestOfficialClientElicit(t *testing.T) {
	for revision, kinds := range map[string]int{"2025-11-25": 4, "2025-06-18": 3} {
		var tasks []tool.Call
		h := open(t, plan{files: inWork(), engine: everyKind(&tasks)})
		client := &http.Client{Transport: &http.Transport{}}
		check := func(requests []string) {
			t.Helper()
			if len(requests) != kinds-1 || len(tasks) != 2 || len(tasks[1].Answers) != kinds || h.face.Waiting() != 0 {
				t.Fatalf("%s: asked %q, %d runs, %d wait", revision, requests, len(tasks), h.face.Waiting())
			}
			if got := string(tasks[1].Answers["where"]); got != `{"roots":[{"uri":"file:///srv/alpha/work","name":"work"}]}` {
				t.Errorf("%s: %s", revision, got)
			}
			if got := string(tasks[1].Answers["model"]); got != `{"role":"assistant","content":{"type":"text","text":"Hello"},"model":"m"}` {
				t.Errorf("%s: %s", revision, got)
			}
			tasks = nil
		}
		check(answers(t, revision, &sdk.StreamableClientTransport{Endpoint: serves(t, h), HTTPClient: client}))
		client.CloseIdleConnections()

		in, toFace := io.Pipe()
		fromFace, out := io.Pipe()
		var done sync.WaitGroup
		done.Go(func() {
			if err := h.face.Stdio(context.Background(), gateway.Request{}, in, out); err != nil {
				t.Error(err)
			}
			out.Close()
		})
		check(answers(t, revision, &sdk.IOTransport{Reader: fromFace, Writer: toFace}))
		done.Wait()
	}
}
