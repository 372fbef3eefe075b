package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/workers"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
)

// wireState has tools whose names differ between the registry and the wire.
func wireState(t testing.TB) *gateway.Config {
	t.Helper()
	s := state(t, vectorConfig)
	s.Limits = &ratelimit.Limits{Replicas: 1}
	schema := json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}}}`)
	tools, err := registry.New([]registry.Tool{
		{Name: "web.search", Effect: "read", Run: tool.Run{Type: "demo"}, InputSchema: schema},
		{Name: "web.fetch", Effect: "idempotent", Run: tool.Run{Type: "client"}, InputSchema: schema},
		{Name: "data", Run: tool.Run{Type: "demo"}, InputSchema: schema},
		{Name: "files.delete", Run: tool.Run{Type: "demo"}, InputSchema: schema},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Tools = tools
	return s
}

func TestToolsOfAnAdmission(t *testing.T) {
	k := kernelWith(t, wireState(t), ratelimit.NewLocal(time.Now))
	a := admit(t, k, gateway.Request{})
	admitted, err := a.Tools()
	if err != nil {
		t.Fatal(err)
	}
	listed, err := k.Kernel.Tools(context.Background(), gateway.Request{})
	if err != nil {
		t.Fatal(err)
	}
	type seen struct {
		Name, Wire, Effect string
		Client             bool
	}
	want := []seen{{"web.fetch", "web_fetch", "idempotent", true}, {"web.search", "web_search", "read", false}}
	for door, tools := range map[string][]gateway.Tool{"admission": admitted, "kernel": listed} {
		var got []seen
		for _, tool := range tools {
			got = append(got, seen{tool.Name, tool.Wire, tool.Effect, tool.Client})
			line, _ := json.Marshal(tool)
			var members map[string]any
			if json.Unmarshal(line, &members) != nil || len(members) != 4 {
				t.Errorf("%s: shown as %s", door, line)
			}
		}
		if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("%s: %+v", door, got)
		}
	}
	for wire, want := range map[string]string{"web_search": "web.search", "data": "data", "web.search": "", "web_searches": "", "WEB_SEARCH": "", "": ""} {
		if name, ok := a.ToolName(wire); name != want || ok != (want != "") {
			t.Errorf("%q is %q, %v", wire, name, ok)
		}
	}
}

// TestToolsElsewhere: what an agent of the same name may use in a workspace, or a
// project, that is not the caller's is nobody's to be told.
func TestToolsElsewhere(t *testing.T) {
	s := state(t, vectorConfig)
	s.Identity = knows{"k": {Name: "ann", Agents: []string{"Intern"}, Workspace: "acme", Projects: []string{"alpha"}}}
	k := kernelWith(t, s, ratelimit.NewLocal(time.Now))
	for _, c := range []struct {
		workspace, project string
		some               bool
	}{
		{"", "", true}, {"acme", "alpha", true}, {"", "beta", false}, {"globex", "", false}, {"globex", "gamma", false}, {"nowhere", "alpha", false},
	} {
		request := gateway.Request{Credential: "k", Subject: gateway.Subject{Workspace: c.workspace, Project: c.project}}
		tools, err := k.Kernel.Tools(context.Background(), request)
		if err != nil || (len(tools) > 0) != c.some {
			t.Errorf("%+v: %d tools, %v", c, len(tools), err)
		}
		tool, err := admit(t, k, request).Tool("time.now")
		if err != nil || (tool != nil) != c.some {
			t.Errorf("%+v: %+v, %v", c, tool, err)
		}
	}
}

// TestWireNames: a model is told only names that it can use, and the registry's
// stand for nothing on the wire.
func TestWireNames(t *testing.T) {
	k := kernelWith(t, wireState(t), ratelimit.NewLocal(time.Now))
	a := admit(t, k, gateway.Request{})
	for _, c := range []struct {
		name, wire, arguments string
		want, message         string
		near                  string
	}{
		{"web.search", "web_search", `{"query":"x"}`, "", "", ""},
		{"web.search", "", `{"query":"x"}`, "", "", ""},
		{"web.searhc", "web_searhc", `{}`, "schema unknown_tool", `There is no tool "web_searhc". Did you mean web_search?`, "web_search"},
		{"web.searhc", "", `{}`, "schema unknown_tool", `There is no tool "web.searhc". Did you mean web.search?`, "web.search"},
		{"web.search", "web.search", `{"query":"x"}`, "schema unknown_tool", `There is no tool "web.search". Did you mean web_search?`, "web_search"},
		{"web.search", "web_fetch", `{"query":"x"}`, "schema unknown_tool", `There is no tool "web_fetch".`, ""},
		{"web.search", "web_search", `{"more":"x"}`, "schema unexpected_argument", `not part of web_search`, ""},
		{"web.search", "", `{"more":"x"}`, "schema unexpected_argument", `not part of web.search`, ""},
		{"files.delete", "files_delete", `{}`, "permission permission_denied", `may not use files_delete here`, ""},
		{"data", "data", `{}`, "permission permission_denied", `may not use data here`, ""},
	} {
		d := a.Judge(context.Background(), gateway.ModeEnforce, gateway.Input{Native: &gateway.NativeCall{Name: c.name, Wire: c.wire, Arguments: []byte(c.arguments)}})
		if refusedBy(d) != c.want {
			t.Errorf("%s as %s: %q, want %q", c.name, c.wire, refusedBy(d), c.want)
			continue
		}
		o := k.HandOver(context.Background(), d)[0]
		if c.want == "" {
			continue
		}
		r := d.Refusal()
		if !strings.Contains(r.Message, c.message) {
			t.Errorf("%s as %s: %s", c.name, c.wire, r.Message)
		}
		near := ""
		if len(r.DidYouMean) > 0 {
			near = r.DidYouMean[0]
		}
		if near != c.near && c.near != "" {
			t.Errorf("%s as %s: offered %v", c.name, c.wire, r.DidYouMean)
		}
		for _, name := range r.DidYouMean {
			if c.wire != "" && strings.Contains(name, ".") {
				t.Errorf("%s as %s: offered %s", c.name, c.wire, name)
			}
		}
		if !strings.HasPrefix(string(o.Result), `{"tool_result":{"tool":"`+c.name+`",`) {
			t.Errorf("%s as %s: %s", c.name, c.wire, o.Result)
		}
	}
}

// TestWireNamesLater: what refuses after the schema says the wire name too.
func TestWireNamesLater(t *testing.T) {
	ctx := context.Background()
	s := state(t, vectorConfig)
	s.Limits = &ratelimit.Limits{Replicas: 1}
	refund := func(amount string) gateway.Input {
		return gateway.Input{Native: &gateway.NativeCall{Name: "payments.refund", Wire: "payments_refund", Arguments: []byte(`{"payment_id":"pay_abc123","amount":` + amount + `}`)}}
	}
	for name, c := range map[string]struct {
		amount string
		engine workers.Engine
		code   refusal.Code
	}{
		"not with these arguments": {"500", &engine{}, refusal.PermissionDenied},
		"nobody runs it":           {"1", nil, refusal.ToolUnavailable},
		"no JSON":                  {"1", &engine{answer: body("{", true)}, refusal.InvalidResult},
		"too large":                {"1", &engine{answer: body(strings.Repeat("a", 1<<20+1), false)}, refusal.ResultTooLarge},
	} {
		k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: c.engine, Store: newShelf()})
		a := admit(t, k, gateway.Request{})
		o := k.Execute(ctx, a.Judge(ctx, gateway.ModeCall, refund(c.amount)))[0]
		if o.Refusal == nil || o.Refusal.Code != c.code || !strings.Contains(o.Refusal.Message, "payments_refund") || strings.Contains(o.Refusal.Message, "payments.refund") {
			t.Errorf("%s: %+v", name, o.Refusal)
		}
		if !strings.HasPrefix(string(o.Result), `{"tool_result":{"tool":"payments.refund",`) {
			t.Errorf("%s: %s", name, o.Result)
		}
	}
}
