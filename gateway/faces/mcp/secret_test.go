package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/callgate/callgate/tool"
)

// TestMCP25NoSecretsByForms: a tool that asks for a secret by a form has failed, whichever
// era its caller is of, and nobody is asked. At an address it may ask.
func TestMCP25NoSecretsByForms(t *testing.T) {
	asks := func(kind, params string) *fixture {
		a := &asker{questions: []tool.Question{{Name: "q", Kind: kind, Method: "elicitation/create", Params: json.RawMessage(params)}}}
		return open(t, plan{files: asking, engine: a.run})
	}
	const (
		secret   = `{"message":"Sign in.","requestedSchema":{"type":"object","properties":{"user":{"type":"string"},"apiKey":{"type":"string"}}}}`
		harmless = `{"message":"Sign in.","requestedSchema":{"type":"object","properties":{"user":{"type":"string"}}}}`
		visit    = `{"mode":"url","message":"Give your password there.","url":"https://id.example/signin","elicitationId":"e"}`
		both     = `{"elicitation":{"form":{},"url":{}}}`
	)
	r := asks("form", secret).asks(t, "book", both, `"arguments":{}`)
	if !r.Result.IsError || r.code() != "tool_failed" || r.Result.Requests != nil || strings.Contains(r.raw, "apiKey") {
		t.Errorf("%d %s", r.status, r.raw)
	}
	url := serves(t, asks("form", secret))
	old := begins(t, url, "2025-11-25", both).call(`"name":"book","arguments":{}`).result()
	if !old.Result.IsError || !strings.Contains(old.raw, "tool_failed") || strings.Contains(old.raw, "apiKey") {
		t.Errorf("%s", old.raw)
	}
	for kind, params := range map[string]string{"form": harmless, "url": visit} {
		if r := asks(kind, params).asks(t, "book", both, `"arguments":{}`); r.Result.Type != "input_required" {
			t.Errorf("%s: %s", kind, r.raw)
		}
	}
}
