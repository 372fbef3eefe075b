package clients_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// fixture is a tool that the conformance suite asks for by its name.
type fixture struct {
	name, description string
	schema            string // of its arguments; "" takes none
	call              mcp.ToolHandler
}

// The least image and sound that there are.
var (
	pixel  = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82")
	silent = []byte("RIFF$\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00@\x1f\x00\x00\x01\x00\x08\x00data\x00\x00\x00\x00")
)

func content(blocks ...mcp.Content) mcp.ToolHandler {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: blocks}, nil
	}
}

func text(s string) *mcp.TextContent { return &mcp.TextContent{Text: s} }

func embedded(uri, media, s string) *mcp.EmbeddedResource {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: media, Text: s}}
}

// fixtures are the tools of the scenarios that are about tools alone.
var fixtures = []fixture{
	{"test_simple_text", "Answers with text.", "", content(text("This is a simple text response for testing."))},
	{"test_image_content", "Answers with an image.", "", content(&mcp.ImageContent{Data: pixel, MIMEType: "image/png"})},
	{"test_audio_content", "Answers with a sound.", "", content(&mcp.AudioContent{Data: silent, MIMEType: "audio/wav"})},
	{"test_embedded_resource", "Answers with a resource.", "", content(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."))},
	{"test_multiple_content_types", "Answers with text, an image and a resource.", "", content(
		text("Multiple content types test:"), &mcp.ImageContent{Data: pixel, MIMEType: "image/png"},
		embedded("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`))},
	{"test_error_handling", "Fails.", "", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{text("This tool intentionally returns an error for testing")}}, nil
	}},
	{"test_missing_capability", "Needs a client that samples.", "", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: -32021, Message: "sampling is needed", Data: json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`)}
	}},
	{"test_streaming_elicitation", "Answers with text.", "", content(text("Nothing was asked."))},
	{"test_logging_tool", "Answers with text.", "", content(text("Nothing was logged."))},
	{"json_schema_2020_12_tool", "Takes a schema of many keywords.", `{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
		"properties": {
			"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}, "contactMethod": {"type": "string", "enum": ["phone", "email"]},
			"phone": {"type": "string"}, "email": {"type": "string"}
		},
		"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
		"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
		"then": {"required": ["phone"]},
		"else": {"required": ["email"]},
		"additionalProperties": false
	}`, content(text("Taken."))},
	{"test_x_mcp_header", "Takes an argument that a header repeats.", `{
		"type": "object",
		"properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
		"required": ["region"]
	}`, content(text("Taken."))},
	{"add", "Adds two numbers.", `{"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}`,
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var of struct{ A, B float64 }
			if err := json.Unmarshal(r.Params.Arguments, &of); err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{text("sum")}, StructuredContent: map[string]float64{"sum": of.A + of.B}}, nil
		}},
}

func (f fixture) inputSchema() json.RawMessage {
	if f.schema == "" {
		return json.RawMessage(`{"type": "object"}`)
	}
	return json.RawMessage(f.schema)
}

// mcpServer is a server of the official SDK that has the fixtures.
func mcpServer(t *testing.T) string {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "fixtures", Version: "1"}, &mcp.ServerOptions{Logger: slog.New(slog.DiscardHandler)})
	for _, f := range slices.Concat(fixtures, asking) {
		s.AddTool(&mcp.Tool{Name: f.name, Description: f.description, InputSchema: f.inputSchema()}, f.call)
	}
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// registryOf is a tool file in which the fixtures are run by their server.
func registryOf(t *testing.T, server string) string {
	t.Helper()
	tools := []map[string]any{}
	state := func(f fixture, asks []string) {
		tools = append(tools, map[string]any{
			"name": f.name, "description": f.description, "effect": "idempotent", "input_schema": f.inputSchema(),
			"run": map[string]any{"type": "mcp", "url": server, "tool": f.name, "addresses": []string{"127.0.0.1/32"}, "input_requests": asks},
		})
	}
	for _, f := range fixtures {
		state(f, []string{})
	}
	for _, f := range asking {
		state(f, []string{"form", "url", "sampling", "roots"})
	}
	b, err := json.Marshal(map[string]any{"tools": tools})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
