package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/engine/mcp"
	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/testkit/leaks"
	"github.com/callgate/callgate/internal/testkit/parallel"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// patient is a timeout that no test is meant to reach.
const patient = 60 * time.Second

// TestMain runs the tests, or, started by one of them, a server.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "server" {
		os.Exit(serve(os.Args[2], os.Args[3:]))
	}
	parallel.Waiting()
	leaks.Main(m)
}

// program is the command that starts a server of serve's.
func program(t testing.TB, arguments ...string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{self, "server"}, arguments...)
}

var loopback = []string{"127.0.0.1/32"}

// fixture is an engine with a client of MCP.
type fixture struct {
	*engine.Engine
	client   *mcp.Client
	outbound *outbound.Client
	log      syncBuffer
}

// syncBuffer is written and read at the same time.
type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func newFixture(t testing.TB, options engine.Options, changed func(server string, announced bool)) *fixture {
	t.Helper()
	h := &fixture{outbound: outbound.New(options.Outbound())}
	h.client = mcp.New(mcp.Options{Version: "1.2.3", Outbound: h.outbound, ToolsChanged: changed, Logger: slog.New(slog.NewTextHandler(&h.log, nil))})
	options.Transports = map[string]engine.Transport{"mcp": h.client}
	h.Engine = engine.New(options)
	t.Cleanup(func() {
		h.client.Close()
		h.Engine.Close()
		h.outbound.Close()
	})
	return h
}

// call is one of a tool at a URL.
func call(url, name, effect string) tool.Call {
	return tool.Call{
		Tool: "sample", Version: "1.0.0", Effect: effect, ID: "call-1", Arguments: []byte(`{"text":"hello"}`),
		Run: tool.Run{Type: "mcp", Server: "s", URL: url, Tool: name, Timeout: patient, MaxResultBytes: 1 << 20, Addresses: loopback},
	}
}

// local is one of a tool of a program.
func local(command []string, tool, effect string) tool.Call {
	c := call("", tool, effect)
	c.Run.Command, c.Run.Addresses = command, nil
	return c
}

// code is the code of a refusal, "" for none. An error of another type fails.
func code(t testing.TB, err error) refusal.Code {
	t.Helper()
	if err == nil {
		return ""
	}
	var refused *refusal.Error
	if !errors.As(err, &refused) {
		t.Fatalf("the error is a %T, not a refusal: %v", err, err)
	}
	return refused.Code
}

func (h *fixture) run(t testing.TB, c tool.Call) (tool.Result, *refusal.Error) {
	t.Helper()
	result, err := h.Run(context.Background(), c)
	if code(t, err) == "" {
		return result, nil
	}
	var refused *refusal.Error
	errors.As(err, &refused)
	return result, refused
}

// echoInput is what the tools of the sample server take.
type echoInput struct {
	Text string `json:"text"`
}

// sample is a server of the official SDK.
func sample() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "sample", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Title: "Echo", Description: "says it again"},
		func(_ context.Context, _ *sdk.CallToolRequest, in echoInput) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text}}}, nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "structured"},
		func(_ context.Context, _ *sdk.CallToolRequest, in echoInput) (*sdk.CallToolResult, echoInput, error) {
			return nil, in, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "fails"},
		func(_ context.Context, _ *sdk.CallToolRequest, in echoInput) (*sdk.CallToolResult, any, error) {
			return nil, nil, errors.New("no such " + in.Text)
		})
	sdk.AddTool(s, &sdk.Tool{Name: "image"},
		func(context.Context, *sdk.CallToolRequest, echoInput) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "see"}, &sdk.ImageContent{MIMEType: "image/png", Data: []byte("x")}}}, nil, nil
		})
	var grown atomic.Int64
	sdk.AddTool(s, &sdk.Tool{Name: "grow"},
		func(context.Context, *sdk.CallToolRequest, echoInput) (*sdk.CallToolResult, any, error) {
			sdk.AddTool(s, &sdk.Tool{Name: fmt.Sprint("grown", grown.Add(1))},
				func(context.Context, *sdk.CallToolRequest, echoInput) (*sdk.CallToolResult, any, error) {
					return nil, nil, nil
				})
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "ok"}}}, nil, nil
		})
	return s
}

// note keeps which methods a server was sent.
func note(seen *sync.Map) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			seen.Store(method, true)
			return next(ctx, method, r)
		}
	}
}

// eras are the ways in which the SDK serves one server over HTTP.
var eras = map[string]*sdk.StreamableHTTPOptions{
	"2026-07-28":         {Stateless: true},
	"2026-07-28 as JSON": {Stateless: true, JSONResponse: true},
	"2025-11-25":         {},
	"2025-11-25 as JSON": {JSONResponse: true},
}

func serveSample(t testing.TB, s *sdk.Server, options *sdk.StreamableHTTPOptions) string {
	t.Helper()
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, options)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}
