package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
)

// versionedState has a tool in three versions, each with a schema of its own, and
// one that the policy denies.
func versionedState(t testing.TB) *gateway.Config {
	t.Helper()
	s := state(t, vectorConfig)
	s.Limits = &ratelimit.Limits{Replicas: 1}
	tool := func(name, version, member string) registry.Tool {
		return registry.Tool{Name: name, Version: version, Run: tool.Run{Type: "demo"}, InputSchema: json.RawMessage(`{"type":"object","required":["` + member + `"],"properties":{"` + member + `":{}}}`)}
	}
	tools, err := registry.New([]registry.Tool{
		tool("web.search", "1.0.0", "one"), tool("web.search", "1.9.0", "nine"), tool("web.search", "1.10.0", "ten"),
		tool("files.delete", "1.0.0", "one"), tool("files.delete", "2.0.0", "two"),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Tools = tools
	return s
}

// TestVersions: a version is judged by its own schema; what holds of the name holds of
// every version.
func TestVersions(t *testing.T) {
	k := kernelWith(t, versionedState(t), ratelimit.NewLocal(time.Now))
	for _, c := range []struct {
		name, wire string
		alphabet   gateway.Alphabet
		version    string
		arguments  string
		want       string // the version, or the code
	}{
		{"web.search", "", gateway.OpenAI, "", `{"ten":1}`, "1.10.0"},
		{"web.search", "", gateway.OpenAI, "1.9.0", `{"nine":1}`, "1.9.0"},
		{"web.search", "web.search", gateway.OXP, "1.0.0", `{"one":1}`, "1.0.0"},
		{"web.search", "web_search", gateway.OpenAI, "1.0.0", `{"one":1}`, "1.0.0"},
		{"web.search", "", gateway.OpenAI, "1.9.0", `{"ten":1}`, "missing_argument"},
		{"web.search", "", gateway.OpenAI, "1.1.0", `{}`, "unknown_tool"},
		{"web.search", "", gateway.OpenAI, "1.9", `{"nine":1}`, "unknown_tool"},
		{"web.search", "", gateway.OpenAI, "v1.9.0", `{"nine":1}`, "unknown_tool"},
		{"web.search", "web_search", gateway.OXP, "1.9.0", `{"nine":1}`, "unknown_tool"},
		{"web.search", "web.search", gateway.OpenAI, "1.9.0", `{"nine":1}`, "unknown_tool"},
		{"web.search", "web.search", gateway.Alphabet(7), "", `{"ten":1}`, "unknown_tool"},
		{"web.serch", "", gateway.OpenAI, "1.9.0", `{}`, "unknown_tool"},
		{"files.delete", "", gateway.OpenAI, "1.0.0", `{}`, "permission_denied"},
		{"files.delete", "", gateway.OpenAI, "3.0.0", `{}`, "permission_denied"}, // which there are is not told either
	} {
		d := k.Kernel.Judge(context.Background(), gateway.Request{Inputs: []gateway.Input{{Native: &gateway.NativeCall{Name: c.name, Wire: c.wire, Alphabet: c.alphabet, Version: c.version, Arguments: []byte(c.arguments)}}}})
		r := d.Reports[0]
		d.Release()
		var got string
		if r.Refusal != nil {
			got = string(r.Refusal.Code)
			for _, schema := range []string{"nine", "two"} {
				if c.want != "missing_argument" && strings.Contains(r.Refusal.Message, schema) {
					t.Errorf("%+v: shows a schema: %s", c, r.Refusal.Message)
				}
			}
		} else {
			got = r.Call.Version
		}
		if got != c.want {
			t.Errorf("%+v: %s %v", c, got, r.Refusal)
		}
	}
	// A version that was never accepted is one that is there; the others stay.
	k.Kernel.Quarantine(map[string]bool{"web.search@7.0.0": true, "web.search@": true, "files.delete@3.0.0": true})
	for _, c := range []struct {
		name, version string
		want          refusal.Code
	}{
		{"web.search", "7.0.0", refusal.ToolQuarantined}, {"web.search", "7.0.1", refusal.UnknownTool}, {"files.delete", "3.0.0", refusal.PermissionDenied},
		{"web.search@7.0.0", "", refusal.UnknownTool}, {"web.search", "", refusal.MissingArgument}, {"web.search", "1.9.0", refusal.MissingArgument},
	} {
		r := k.Kernel.Check(context.Background(), gateway.Request{Inputs: []gateway.Input{{Native: &gateway.NativeCall{Name: c.name, Version: c.version, Arguments: []byte(`{}`)}}}})
		if r.Refusal == nil || r.Refusal.Code != c.want {
			t.Errorf("%s %q: %v, want %s", c.name, c.version, r.Refusal, c.want)
		}
	}
	k.Kernel.Quarantine(map[string]bool{"web.search": true})
	for _, version := range []string{"", "1.0.0", "1.9.0", "7.0.0"} {
		r := k.Kernel.Check(context.Background(), gateway.Request{Inputs: []gateway.Input{{Native: &gateway.NativeCall{Name: "web.search", Version: version, Arguments: []byte(`{}`)}}}})
		if r.Refusal == nil || r.Refusal.Code != refusal.ToolQuarantined {
			t.Errorf("in quarantine, %q: %v", version, r.Refusal)
		}
	}
}

// TestVersionsRun: the version that was judged is the one that is run, and a key is of
// one version.
func TestVersionsRun(t *testing.T) {
	var last tool.Call
	tool := &engine{answer: func(_ context.Context, task tool.Call) (tool.Result, error) {
		last = task
		return tool.Result{Body: []byte(`{"ok":true}`), JSON: true, Attempts: 1}, nil
	}}
	k := kernelOf(t, versionedState(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: tool, Store: newShelf()})
	send := func(version, arguments, key string) calls.Outcome {
		return k.Handle(context.Background(), gateway.Request{Inputs: []gateway.Input{{Native: &gateway.NativeCall{Name: "web.search", Version: version, Arguments: []byte(arguments)}}}}, key)
	}
	for version, arguments := range map[string]string{"1.0.0": `{"one":1}`, "1.9.0": `{"nine":1}`, "1.10.0": `{"ten":1}`, "": `{"ten":1}`} {
		if o := send(version, arguments, ""); o.Refusal != nil {
			t.Errorf("%q: %v", version, o.Refusal)
		}
		want := version
		if want == "" {
			want = "1.10.0"
		}
		if last.Version != want {
			t.Errorf("%q was run as %q", version, last.Version)
		}
	}
	if o := send("1.10.0", `{"ten":1}`, "k"); o.Refusal != nil || o.Replayed {
		t.Errorf("%+v", o)
	}
	if o := send("1.10.0", `{"ten":1}`, "k"); !o.Replayed || len(o.Result) == 0 {
		t.Errorf("%+v", o)
	}
	if o := send("", `{"ten":1}`, "k"); o.Refusal == nil || o.Refusal.Code != refusal.IdempotencyConflict {
		t.Errorf("the highest, under the key of a version: %+v", o)
	}
}
