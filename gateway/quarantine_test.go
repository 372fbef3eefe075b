package gateway_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
)

func TestQuarantine(t *testing.T) {
	k := kernelWith(t, loose(t), ratelimit.NewLocal(time.Now))
	listed := func(name string) bool {
		t.Helper()
		tools, err := k.Kernel.Tools(context.Background(), gateway.Request{})
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools {
			if tool.Name == name {
				return true
			}
		}
		return false
	}
	if r := k.Kernel.Check(context.Background(), completion(search)); r.Refusal != nil || !listed("web.search") {
		t.Fatalf("refused before: %v", r.Refusal)
	}
	apart := map[string]bool{"web.search": true, "web.new": true, "pay.new": true, "web.hub.*": true}
	k.Kernel.Quarantine(apart)
	clear(apart) // is the caller's own
	for text, code := range map[string]refusal.Code{
		search: refusal.ToolQuarantined,
		// Nothing is shown of what it would have asked for.
		`{"tool":{"name":"web.search","arguments":{"wrong":1}}}`: refusal.ToolQuarantined,
		// One that was never accepted is known by its name alone.
		`{"tool":{"name":"web.new","arguments":{}}}`: refusal.ToolQuarantined,
		`{"tool":{"name":"pay.new","arguments":{}}}`: refusal.PermissionDenied,
		// Neither is one of a server that nobody has asked for its tools.
		`{"tool":{"name":"web.hub.x","arguments":{}}}`:   refusal.ToolQuarantined,
		`{"tool":{"name":"web.hub.x.y","arguments":{}}}`: refusal.ToolQuarantined,
		`{"tool":{"name":"web.hub","arguments":{}}}`:     refusal.UnknownTool,
		`{"tool":{"name":"web.hubx.y","arguments":{}}}`:  refusal.UnknownTool,
		// It is not offered either.
		`{"tool":{"name":"web.serch","arguments":{"query":"x"}}}`: refusal.UnknownTool,
	} {
		r := k.Kernel.Check(context.Background(), completion(text))
		if r.Refusal == nil || r.Refusal.Code != code || len(r.Refusal.DidYouMean) > 0 || strings.Contains(r.Refusal.Message, "query") {
			t.Errorf("%s: %v", text, r.Refusal)
		}
	}
	if listed("web.search") {
		t.Error("a tool in quarantine is listed")
	}
	k.Kernel.Quarantine(nil)
	if r := k.Kernel.Check(context.Background(), completion(search)); r.Refusal != nil || !listed("web.search") {
		t.Errorf("refused after: %v", r.Refusal)
	}
}

// TestStarting: while a tool's server has not listed its tools, the tool is listed as it was accepted,
// and a call of it may be sent again, by whoever may call it.
func TestStarting(t *testing.T) {
	k := kernelWith(t, loose(t), ratelimit.NewLocal(time.Now))
	refused := func(text string) *refusal.Error { return k.Kernel.Check(t.Context(), completion(text)).Refusal }
	k.Kernel.Starting(map[string]time.Duration{"web.search": 0, "files.delete": 0})
	for _, text := range []string{search, `{"tool":{"name":"web.search","arguments":{"wrong":1}}}`} {
		r := refused(text)
		if r == nil || r.Code != refusal.ToolStarting || r.Stage != refusal.Schema || r.Status() != 503 || !r.Retryable() || r.RetryAfterMS < 1 || strings.Contains(r.Message, "query") {
			t.Errorf("%s: %+v", text, r)
		}
	}
	tools, err := k.Kernel.Tools(t.Context(), gateway.Request{})
	if err != nil || !slices.ContainsFunc(tools, func(tool gateway.Tool) bool { return tool.Name == "web.search" }) {
		t.Errorf("%+v, %v", tools, err)
	}
	if r := refused(`{"tool":{"name":"files.delete","arguments":{"path":"x"}}}`); r == nil || r.Code != refusal.PermissionDenied {
		t.Errorf("what the agent may not use: %v", r)
	}
	k.Kernel.Starting(map[string]time.Duration{"web.search": 16 * time.Second})
	if r := refused(search); r == nil || r.Code != refusal.ToolStarting || r.RetryAfterMS != 16_000 || !strings.Contains(r.Message, "16000 ms") || strings.Contains(r.Message, "is starting") {
		t.Errorf("a server that was asked in vain: %v", r)
	}
	k.Kernel.Hold(map[string]bool{"web.search": true}, nil)
	if r := refused(search); r == nil || r.Code != refusal.ToolQuarantined {
		t.Errorf("a list that differs: %v", r)
	}
	k.Kernel.Hold(nil, nil)
	if r := refused(search); r != nil {
		t.Errorf("a list as it was accepted: %v", r)
	}
}

// TestAcceptedMeanwhile: a call that is judged by what was accepted when it began is
// refused where something else was accepted before it ends: its server says that now.
func TestAcceptedMeanwhile(t *testing.T) {
	accepted := func(server, schema string) *gateway.Config {
		run := tool.Run{Type: "http", URL: "https://example.com/"}
		if server != "" {
			run = tool.Run{Type: "mcp", URL: "https://example.com/", Tool: "search", Server: server}
		}
		tools, err := registry.New([]registry.Tool{{Name: "web.search", InputSchema: json.RawMessage(schema), Run: run}})
		if err != nil {
			t.Fatal(err)
		}
		s := loose(t)
		s.Tools = tools
		return s
	}
	const (
		first = `{"type":"object","properties":{"query":{"type":"string"}}}`
		other = `{"type":"object","properties":{"query":{"type":"string","maxLength":9}}}`
	)
	for why, c := range map[string]struct {
		server, now, schema string
		code                refusal.Code
	}{
		"the same":         {"hub", "hub", first, ""},
		"another":          {"hub", "hub", other, refusal.ToolQuarantined},
		"of another":       {"hub", "far", first, refusal.ToolQuarantined},
		"of the operator":  {"hub", "", first, refusal.ToolQuarantined},
		"of no server":     {"", "", other, ""},
		"taken by another": {"", "hub", other, ""},
	} {
		k := kernelWith(t, accepted(c.server, first), ratelimit.NewLocal(time.Now))
		s, err := k.Kernel.Stream(context.Background(), gateway.Request{})
		if err != nil {
			t.Fatal(err)
		}
		s.Write([]byte(search))
		if err := k.Kernel.Swap(accepted(c.now, c.schema)); err != nil {
			t.Fatal(err)
		}
		d := s.Close(context.Background(), false)
		if got := codeOf(d); got != c.code {
			t.Errorf("%s: found %q; expected %q", why, got, c.code)
		}
		d.Release()
	}
}
