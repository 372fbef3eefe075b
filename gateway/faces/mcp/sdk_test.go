package mcp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// drives has a client of the official SDK list the tools and call some.
func drives(t *testing.T, transport sdk.Transport) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, nil).Connect(ctx, transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := s.ListTools(ctx, nil)
	if err != nil || len(list.Tools) != 6 || list.Tools[0].Name != "data_vector_search" {
		t.Fatalf("%+v: %v", list, err)
	}
	r, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "web_search", Arguments: map[string]any{"query": "a\u200bb"}})
	if err != nil || r.IsError || r.Content[0].(*sdk.TextContent).Text != `{"did":{"query":"a\u200bb"}}` {
		t.Errorf("%+v: %v", r, err)
	}
	r, err = s.CallTool(ctx, &sdk.CallToolParams{Name: "web_search", Arguments: map[string]any{"q": "x"}})
	if err != nil || !r.IsError || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, `"code":"missing_argument"`) {
		t.Errorf("%+v: %v", r, err)
	}
	if r, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "web_serch"}); err == nil || !strings.Contains(err.Error(), "web_search") {
		t.Errorf("%+v: %v", r, err)
	}
	if p, err := s.ListPrompts(ctx, nil); err != nil || len(p.Prompts) != 0 {
		t.Errorf("%+v: %v", p, err)
	}
}

func TestOfficialClientOverHTTP(t *testing.T) {
	server := httptest.NewServer(open(t, plan{}))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	drives(t, &sdk.StreamableClientTransport{Endpoint: server.URL + "/mcp", HTTPClient: client})
}

func TestOfficialClientOverPipes(t *testing.T) {
	h := open(t, plan{})
	in, toFace := io.Pipe()
	fromFace, out := io.Pipe()
	var done sync.WaitGroup
	done.Go(func() {
		if err := h.face.Stdio(context.Background(), gateway.Request{}, in, out); err != nil {
			t.Error(err)
		}
		out.Close()
	})
	drives(t, &sdk.IOTransport{Reader: fromFace, Writer: toFace})
	done.Wait()
}

// asksAndTells is a tool that asks who calls, and then says how far it is.
func asksAndTells(t tool.Call) (tool.Result, error) {
	if t.Answers == nil {
		return tool.Result{InputRequired: &tool.InputRequired{Questions: []tool.Question{who()}}}, refusal.New(refusal.ToolFailed, "The tool asks.")
	}
	for i := range 3 {
		t.Progress(tool.Progress{Done: float64(i), Total: 2, Message: "step"})
	}
	return tool.Result{Body: t.Answers["who"], JSON: true}, nil
}

// converses has a client of the official SDK answer what a tool asks, and hear how far
// it is.
func converses(t *testing.T, transport sdk.Transport) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	received := make(chan *sdk.ProgressNotificationParams, 10)
	client := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			if r.Params.Message != "Who are you?" {
				t.Errorf("%+v", r.Params)
			}
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { received <- r.Params },
	})
	s, err := client.Connect(ctx, transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	params := &sdk.CallToolParams{Name: "book"}
	params.SetProgressToken("p")
	r, err := s.CallTool(ctx, params)
	if err != nil || r.IsError || r.Content[0].(*sdk.TextContent).Text != `{"action":"accept","content":{"name":"Ann"}}` {
		t.Fatalf("%+v: %v", r, err)
	}
	reported := map[float64]bool{} // the client may hand them out in any order
	for range 3 {
		select {
		case p := <-received:
			if p.ProgressToken != "p" || reported[p.Progress] || p.Progress > 2 || p.Total != 2 || p.Message != "step" {
				t.Errorf("%+v", p)
			}
			reported[p.Progress] = true
		case <-ctx.Done():
			t.Fatal("it is not told how far the call is")
		}
	}
}

func TestOfficialClientConversesOverHTTP(t *testing.T) {
	server := httptest.NewServer(open(t, plan{files: asking, engine: asksAndTells}))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	converses(t, &sdk.StreamableClientTransport{Endpoint: server.URL + "/mcp", HTTPClient: client})
}

func TestOfficialClientConversesOverPipes(t *testing.T) {
	h := open(t, plan{files: asking, engine: asksAndTells})
	in, toFace := io.Pipe()
	fromFace, out := io.Pipe()
	var done sync.WaitGroup
	done.Go(func() {
		if err := h.face.Stdio(context.Background(), gateway.Request{}, in, out); err != nil {
			t.Error(err)
		}
		out.Close()
	})
	converses(t, &sdk.IOTransport{Reader: fromFace, Writer: toFace})
	done.Wait()
}
