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
	if err != nil || len(list.Tools) != 6 || list.Tools[0].Name != "data.vector_search" {
		t.Fatalf("%+v: %v", list, err)
	}
	r, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "web.search", Arguments: map[string]any{"query": "a\u200bb"}})
	if err != nil || r.IsError || r.Content[0].(*sdk.TextContent).Text != `{"did":{"query":"a\u200bb"}}` {
		t.Errorf("%+v: %v", r, err)
	}
	r, err = s.CallTool(ctx, &sdk.CallToolParams{Name: "web.search", Arguments: map[string]any{"q": "x"}})
	if err != nil || !r.IsError || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, `"code":"missing_argument"`) {
		t.Errorf("%+v: %v", r, err)
	}
	if r, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "web.serch"}); err == nil || !strings.Contains(err.Error(), "web.search") {
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
