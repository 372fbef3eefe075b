package app

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/telemetry"
)

// TestThreadsOverRestarts: what a thread has done counts behind a restart, with the snapshot and without it; without the key of
// the values, it is unknown, and so refused.
func TestThreadsOverRestarts(t *testing.T) {
	c := facetest.Config(t, map[string]string{
		"policy.csv":      `p, Analyst, *, math.evaluate, "thread.calls('math.evaluate', {'expression': args.expression}) <= 3", allow` + "\n",
		"tools.yaml":      "tools: [{name: math.evaluate, run: {type: demo}, input_schema: {type: object, required: [expression], properties: {expression: {type: string}}}}]\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [.]}}}}\n",
	})
	said := ""                     // by the last refusal
	var counted *telemetry.Metrics // of the last start
	started := func(t *testing.T, do func(call func(thread string) refusal.Code)) {
		t.Helper()
		counted = telemetry.New()
		r, err := Open(t.Context(), c, nil, Options{Logger: slog.New(slog.DiscardHandler), Wait: time.Minute, Metrics: counted})
		if err != nil {
			t.Fatal(err)
		}
		do(func(thread string) refusal.Code {
			o := r.Executor.Handle(context.Background(), gateway.Request{
				Subject: gateway.Subject(c.Defaults), Thread: thread,
				Inputs: []gateway.Input{{Completion: []byte(`{"tool":{"name":"math.evaluate","arguments":{"expression":"1+1"}}}`)}},
			}, "")
			if o.Refusal != nil {
				said = o.Refusal.Message
			}
			return codeOf(o)
		})
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(got, want refusal.Code) {
		t.Helper()
		if got != want {
			t.Errorf("found %q, expected %q", got, want)
		}
	}
	refuses := func(got refusal.Code, why string) {
		t.Helper()
		if expect(got, refusal.PermissionDenied); !strings.Contains(said, why) {
			t.Errorf("said %q, expected %q", said, why)
		}
	}
	file := func(name string) string { return filepath.Join(c.DataDir, name) }
	started(t, func(call func(string) refusal.Code) { expect(call("t"), "") })
	started(t, func(call func(string) refusal.Code) { expect(call("t"), "") })
	if err := os.Remove(file(threadsFile)); err != nil {
		t.Fatal(err)
	}
	started(t, func(call func(string) refusal.Code) {
		// The terms are kept anew, and a thread that began before is not known to them.
		refuses(call("t"), "that is not known")
		scraped := httptest.NewRecorder()
		counted.Handler().ServeHTTP(scraped, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		if want := `callgate_thread_refusals_total{reason="unknown"} 1`; !strings.Contains(scraped.Body.String(), want) {
			t.Errorf("the metrics lack %s", want)
		}
		for range 3 {
			expect(call("u"), "")
		}
		refuses(call("u"), "this thread has had what it may have")
	})
	if err := os.Remove(file(threadsKey)); err != nil {
		t.Fatal(err)
	}
	started(t, func(call func(string) refusal.Code) {
		refuses(call("u"), "that is not known")
		refuses(call("v"), "that is not known") // it may have been there before
	})
}

func codeOf(o calls.Outcome) refusal.Code {
	if o.Refusal == nil {
		return ""
	}
	return o.Refusal.Code
}
