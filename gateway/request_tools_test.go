package gateway_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

const extraSchema = `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`

// extra is a call of a tool that only the request has.
func extra(arguments string) gateway.Input {
	return gateway.Input{Native: &gateway.NativeCall{Name: "web.extra", Wire: "web_extra", Arguments: []byte(arguments)}}
}

// withExtra admits a request that brings web.extra, which the policy allows, and pay.extra,
// which it does not.
func withExtra(t testing.TB, k *calls.Executor) *gateway.Admission {
	t.Helper()
	a, leftOut, cured, err := admit(t, k, gateway.Request{}).WithTools([]registry.Brought{
		{Name: "web.extra", InputSchema: []byte(extraSchema)}, {Name: "pay.extra", InputSchema: []byte(extraSchema)},
		{Name: "no.schema", InputSchema: []byte("7")}, {Name: "odd", InputSchema: []byte(`{"strict":true}`)},
	})
	if err != nil || len(leftOut) != 1 || leftOut[0].Name != "no.schema" || !slices.Equal(cured, []string{"odd"}) {
		t.Fatal(err, leftOut, cured)
	}
	if name, ok := a.ToolName("no_schema"); ok {
		t.Errorf("found %s", name)
	}
	return a
}

// TestBroughtTools: they are tools of their one request, and of no other.
func TestBroughtTools(t *testing.T) {
	ctx := context.Background()
	e, j := &engine{}, &journal{}
	k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}, Engine: e, Store: store.NewMemory(time.Now)})
	a := withExtra(t, k)
	if name, ok := a.ToolName("web_extra"); !ok || name != "web.extra" {
		t.Errorf("found %s", name)
	}
	shown, err := a.Tool("web.extra")
	if err != nil || shown == nil || shown.Wire != "web_extra" || !shown.Client || shown.Effect != "once" {
		t.Errorf("found %+v, %v", shown, err)
	}
	if hidden, err := a.Tool("pay.extra"); hidden != nil || err != nil {
		t.Errorf("found %+v, %v", hidden, err)
	}
	all, err := a.Tools()
	if err != nil || !slices.ContainsFunc(all, func(t gateway.Tool) bool { return t.Name == "web.extra" }) || !slices.ContainsFunc(all, func(t gateway.Tool) bool { return t.Name == "web.search" }) {
		t.Errorf("found %v, %v", all, err)
	}
	for arguments, want := range map[string]string{`{"q":"x"}`: "", `{"q":"x","r":1}`: "schema unexpected_argument", `{}`: "schema missing_argument"} {
		d := a.Judge(ctx, gateway.ModeEnforce, extra(arguments), gateway.Input{Native: &gateway.NativeCall{Name: "time.now", Wire: "time_now", Arguments: []byte("{}")}})
		if got := refusedBy(d); got != want {
			t.Errorf("%s: found %q", arguments, got)
		}
		if want == "" {
			if o := k.HandOver(ctx, d); o[0].Refusal != nil || o[1].Refusal != nil {
				t.Errorf("found %+v", o)
			}
		}
	}
	settle(t, k)
	if first := j.all()[0]; first.Tool != "web.extra" && first.Tool != "time.now" || !slices.ContainsFunc(j.all(), func(r audit.Record) bool {
		return r.Tool == "web.extra" && r.ToolVersion == registry.BroughtVersion && r.Outcome == audit.HandedOver
	}) {
		t.Errorf("found %+v", j.all())
	}
	// A completion in the call language, and one in pieces.
	if got := refusedBy(a.Judge(ctx, gateway.ModeEnforce, gateway.Input{Completion: []byte(`{"tool":{"name":"web.extra","arguments":{"q":"x"}}}`)})); got != "" {
		t.Error(got)
	}
	s, err := a.Stream(ctx, gateway.ModeEnforce, true)
	if err != nil {
		t.Fatal(err)
	}
	s.Write([]byte("Looking."))
	if got := refusedBy(s.Close(ctx, false, extra(`{"q":"x"}`))); got != "" {
		t.Error(got)
	}
	// It is known to no other request, and never run here.
	other := admit(t, k, gateway.Request{})
	if _, ok := other.ToolName("web_extra"); ok {
		t.Error("another request has the name")
	}
	if got := refusedBy(other.Judge(ctx, gateway.ModeEnforce, extra(`{"q":"x"}`))); got != "schema unknown_tool" {
		t.Errorf("found %q", got)
	}
	d := a.Judge(ctx, gateway.ModeCall, extra(`{"q":"x"}`))
	for _, o := range k.Execute(ctx, d) {
		if o.Refusal == nil || e.runs.Load() != 0 {
			t.Errorf("it was run: %+v", o)
		}
	}
	// Not even where it is on the list of tools in quarantine.
	k.Kernel.Quarantine(map[string]bool{"web.extra": true})
	if got := refusedBy(a.Judge(ctx, gateway.ModeEnforce, extra(`{"q":"x"}`))); got != "permission tool_quarantined" {
		t.Errorf("found %q", got)
	}
}

// TestBroughtToolsAndReload: a later configuration takes the tools of the request over.
func TestBroughtToolsAndReload(t *testing.T) {
	ctx := context.Background()
	before := loose(t)
	k := kernelWith(t, before, ratelimit.NewLocal(time.Now))
	a := withExtra(t, k)
	swap := func(more ...registry.Tool) {
		t.Helper()
		var tools []registry.Tool
		for _, e := range before.Tools.Entries() {
			tools = append(tools, registry.Tool{Name: e.Name(), Version: e.Version(), InputSchema: e.InputSchema(), Effect: e.Effect(), Run: e.Run()})
		}
		r, err := registry.New(append(tools, more...))
		if err != nil {
			t.Fatal(err)
		}
		next := *before
		next.Tools = r
		if err := k.Kernel.Swap(&next); err != nil {
			t.Fatal(err)
		}
	}
	judged := func() string { return refusedBy(a.Judge(ctx, gateway.ModeEnforce, extra(`{"q":"x"}`))) }
	swap()
	if got := judged(); got != "" {
		t.Errorf("the same tools: found %q", got)
	}
	own := registry.Tool{Name: "web.extra", InputSchema: []byte(`{"type":"object","properties":{"r":{"type":"string"}}}`), Run: tool.Run{Type: "client"}}
	swap(own)
	if got := judged(); got != "schema unexpected_argument" {
		t.Errorf("the registry has it: found %q", got)
	}
	if a.Agrees("web.extra", []byte(extraSchema)) || !a.Agrees("web.extra", own.InputSchema) || a.Agrees("pay.extra", []byte(extraSchema)) {
		t.Error("Agrees is about the registry's tools")
	}
	own.Name = "web_extra" // the same name on the wire
	swap(own)
	if got := judged(); got != "schema unknown_tool" {
		t.Errorf("one name for two: found %q", got)
	}
	swap()
	if got := judged(); got != "" {
		t.Errorf("as before: found %q", got)
	}
}

func TestBroughtToolsAreRefused(t *testing.T) {
	k := kernelWith(t, loose(t), ratelimit.NewLocal(time.Now))
	a := admit(t, k, gateway.Request{})
	var fault *registry.LoadError
	if _, _, _, err := a.WithTools([]registry.Brought{{Name: "web.search", InputSchema: []byte(extraSchema)}}); !errors.As(err, &fault) {
		t.Errorf("a tool of the registry: %v", err)
	}
	if _, _, _, err := a.WithTools([]registry.Brought{{Name: "web_search", InputSchema: []byte(extraSchema)}}); err == nil || errors.As(err, &fault) && fault.Name == "" {
		t.Errorf("a name that stands for another tool: %v", err)
	}
	var none gateway.Admission
	if _, _, _, err := none.WithTools(nil); refusedAs(err) != "identity internal" || none.Agrees("web.search", nil) {
		t.Errorf("no admission: %v", err)
	}
}
