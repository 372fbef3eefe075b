package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

func TestQuarantine(t *testing.T) {
	k := kernelWith(t, loose(t), ratelimit.NewLocal(time.Now))
	listed := func(name string) bool {
		t.Helper()
		tools, err := k.Tools(context.Background(), gateway.Request{})
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
	if r := k.Check(context.Background(), completion(search)); r.Refusal != nil || !listed("web.search") {
		t.Fatalf("refused before: %v", r.Refusal)
	}
	apart := map[string]bool{"web.search": true, "web.new": true, "pay.new": true}
	k.Quarantine(apart)
	clear(apart) // is the caller's own
	for text, code := range map[string]refusal.Code{
		search: refusal.ToolQuarantined,
		// Nothing is shown of what it would have asked for.
		`{"tool":{"name":"web.search","arguments":{"wrong":1}}}`: refusal.ToolQuarantined,
		// One that was never accepted is known by its name alone.
		`{"tool":{"name":"web.new","arguments":{}}}`: refusal.ToolQuarantined,
		`{"tool":{"name":"pay.new","arguments":{}}}`: refusal.PermissionDenied,
		// It is not offered either.
		`{"tool":{"name":"web.serch","arguments":{"query":"x"}}}`: refusal.UnknownTool,
	} {
		r := k.Check(context.Background(), completion(text))
		if r.Refusal == nil || r.Refusal.Code != code || len(r.Refusal.DidYouMean) > 0 || strings.Contains(r.Refusal.Message, "query") {
			t.Errorf("%s: %v", text, r.Refusal)
		}
	}
	if listed("web.search") {
		t.Error("a tool in quarantine is listed")
	}
	k.Quarantine(nil)
	if r := k.Check(context.Background(), completion(search)); r.Refusal != nil || !listed("web.search") {
		t.Errorf("refused after: %v", r.Refusal)
	}
}
