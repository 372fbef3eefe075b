package console_test

import (
	"context"
	"strings"
	"testing"

	"github.com/callgate/callgate/store"
)

// The pages of what is in use show what the API answers, and lead to the tool and the call.
func TestLimitsAndRunning(t *testing.T) {
	f := newFixtureOf(t, nil, map[string]string{
		"callgate.yaml": "registry: {files: [tools.yaml]}\nlimits: limits.yaml\n", "tools.yaml": oneTool, "limits.yaml": "default: {rate: 60/m, burst: 10, concurrency: 4}\ntools: {web.search: {rate: 1/h, burst: 1}}\n",
	})
	f.judge("Analyst", `{"tool":{"name":"web.search","arguments":{}}}`)
	ctx := context.Background()
	if _, err := f.store.Open(ctx, store.Call{ID: "call_x", Scope: store.Scope{Principal: "ada", Workspace: "acme", Project: "alpha"}}); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Dispatch(ctx, "call_x", store.Task{Tool: "web.search", Version: "1.0.0", Agent: "Analyst", Effect: "read"}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{
		"/console/limits":            {"spent", "tools.web.search", "1/h", "default.concurrency", ">9<", ">10<", ">256<", `href="/console/tools/web.search"`},
		"/console/limits?kind=slots": {"calls of an agent at the same time", "default.concurrency"},
		"/console/running":           {"running", "ada", "acme/alpha", `href="/console/calls/call_x"`, `href="/console/tools/web.search"`},
	} {
		answer, body := f.do(t, f.Client(), sent{path: path})
		for _, w := range want {
			if answer.StatusCode != 200 || !strings.Contains(body, w) {
				t.Errorf("%s: %d, without %q:\n%s", path, answer.StatusCode, w, body)
			}
		}
	}
	if _, body := f.do(t, f.Client(), sent{path: "/console/limits?kind=slots"}); strings.Contains(body, "1/h") {
		t.Errorf("a filter lets other kinds pass: %s", body)
	}
}
