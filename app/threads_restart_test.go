package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/reload"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/internal/testkit/redistest"
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
		untilClosed(t, c, counted, func(r *Runtime) {
			do(func(thread string) refusal.Code {
				o := evaluate(r, thread, "1+1")
				if o.Refusal != nil {
					said = o.Refusal.Message
				}
				return codeOf(o)
			})
		})
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

// untilClosed starts a gateway, and stops it once do has returned.
func untilClosed(t *testing.T, c *configs.Config, metrics *telemetry.Metrics, do func(*Runtime)) {
	t.Helper()
	r, err := Open(t.Context(), c, nil, Options{Logger: slog.New(slog.DiscardHandler), Wait: time.Minute, Metrics: metrics})
	if err != nil {
		t.Fatal(err)
	}
	do(r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// evaluate calls the tool math.evaluate in a thread.
func evaluate(r *Runtime, thread, expression string) calls.Outcome {
	return r.Executor.Handle(context.Background(), gateway.Request{
		Subject: gateway.Subject{Agent: "Analyst", Workspace: "acme", Project: "alpha"}, Thread: thread,
		Inputs: []gateway.Input{{Completion: []byte(`{"tool":{"name":"math.evaluate","arguments":{"expression":"` + expression + `"}}}`)}},
	}, "")
}

// limited is a configuration with limits of threads.
func limited(t *testing.T, limits string) *configs.Config {
	t.Helper()
	return facetest.Config(t, map[string]string{
		"tools.yaml":      "tools: [{name: math.evaluate, run: {type: demo}, input_schema: {type: object, required: [expression], properties: {expression: {type: string}}}}]\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [.]}}}}\n",
		"limits.yaml":     limits + "\n",
	})
}

// TestLimitsOfThreadsOverRestarts: limits of threads go on counting behind a restart, with the snapshot and by the log alone.
func TestLimitsOfThreadsOverRestarts(t *testing.T) {
	c := limited(t, "threads: {calls: 3, new: 2/h, equal: {calls: 2}}")
	steps := func(want ...string) {
		t.Helper()
		untilClosed(t, c, telemetry.New(), func(r *Runtime) {
			for _, step := range want {
				thread, rest, _ := strings.Cut(step, " ")
				expression, code, _ := strings.Cut(rest, " ")
				if o := evaluate(r, thread, expression); codeOf(o) != refusal.Code(code) {
					t.Errorf("%s: %+v", step, o.Refusal)
				}
			}
		})
	}
	steps("t 1", "t 1", "t 1 loop_detected")
	steps("t 1 loop_detected", "t 2", "t 3 thread_limit", "u 1", "v 1 thread_limit")
	if err := os.Remove(filepath.Join(c.DataDir, threadsFile)); err != nil {
		t.Fatal(err)
	}
	steps("t 1 thread_limit", "u 1", "u 1 loop_detected", "u 2", "u 3 thread_limit", "v 1 thread_limit")
}

// TestLimitsOfThreadsReloaded: a reload changes the limits of threads from the next call on; what nothing bounded was not counted.
func TestLimitsOfThreadsReloaded(t *testing.T) {
	c := limited(t, "{}")
	untilClosed(t, c, telemetry.New(), func(r *Runtime) {
		r.subscribe(r.threads.follow)
		for _, step := range []struct {
			limits string
			passes int
			code   refusal.Code
		}{
			{"{}", 5, ""},
			{"threads: {equal: {calls: 2}}", 2, refusal.LoopDetected},
			{"threads: {equal: {calls: 3}}", 1, refusal.LoopDetected},
			{"threads: {calls: 4}", 1, refusal.ThreadLimit},
			{"threads: {calls: 4, equal: {calls: 9}}", 0, refusal.ThreadLimit},
			{"{}", 5, ""},
			{"threads: {calls: 6}", 2, refusal.ThreadLimit},
		} {
			now := limited(t, step.limits)
			now.DataDir = c.DataDir
			if err := r.reload(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			for range step.passes {
				if o := evaluate(r, "t", "1"); o.Refusal != nil {
					t.Errorf("%s: %+v", step.limits, o.Refusal)
				}
			}
			if o := evaluate(r, "t", "1"); codeOf(o) != step.code {
				t.Errorf("%s: %+v, expected %q", step.limits, o.Refusal, step.code)
			}
		}
	})
}

// startRedis starts a Redis that gateways share.
func startRedis(t *testing.T) *redistest.Server {
	t.Helper()
	if !Has(configs.RedisLimiter) {
		t.Skipf("skipped: this program was built without %s", configs.RedisLimiter)
	}
	return redistest.Start(t)
}

// TestThreadsOverALossOfRedis: what a thread has done counts also where Redis has lost it while no gateway ran: the log says it, and the
// data folder has the key of the values.
func TestThreadsOverALossOfRedis(t *testing.T) {
	server := startRedis(t)
	c := facetest.Config(t, map[string]string{
		"callgate.yaml":   "registry: {files: [tools.yaml]}\nredis: {url: \"redis://" + server.Address() + "\"}\nstore: {kind: redis}\n",
		"limits.yaml":     "replicas: 1\n",
		"policy.csv":      `p, Analyst, *, math.evaluate, "thread.calls('math.evaluate', {'expression': args.expression}) <= 3", allow` + "\n",
		"tools.yaml":      "tools: [{name: math.evaluate, run: {type: demo}, input_schema: {type: object, required: [expression], properties: {expression: {type: string}}}}]\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [.]}}}}\n",
	})
	for start, want := range [][]refusal.Code{{"", ""}, {"", refusal.PermissionDenied}, {refusal.PermissionDenied}} {
		untilClosed(t, c, telemetry.New(), func(r *Runtime) {
			for i, code := range want {
				if got := codeOf(evaluate(r, "t", "1+1")); got != code {
					t.Errorf("start %d, call %d: found %q, expected %q", start, i, got, code)
				}
			}
		})
		redis := server.Client()
		if err := errors.Join(redis.FlushAll(t.Context()).Err(), redis.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestThreadsOfGatewaysThatWait: while a gateway cannot ask for threads, since it waits for the others of its Redis, readiness
// says so.
func TestThreadsOfGatewaysThatWait(t *testing.T) {
	redis := startRedis(t)
	c := facetest.Config(t, map[string]string{
		"callgate.yaml":   "registry: {files: [tools.yaml]}\nredis: {url: \"redis://" + redis.Address() + "\"}\nstore: {kind: redis, replicas: 2}\n",
		"limits.yaml":     "replicas: 2\n",
		"policy.csv":      `p, Analyst, *, math.evaluate, "thread.calls('math.evaluate') <= 3", allow` + "\n",
		"tools.yaml":      "tools: [{name: math.evaluate, run: {type: demo}, input_schema: {type: object, required: [expression], properties: {expression: {type: string}}}}]\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [.]}}}}\n",
	})
	var gates []*Runtime
	front := server.New(server.Options{Metrics: telemetry.New(), Log: slog.New(slog.DiscardHandler)})
	said := func(r *Runtime) string { return health(&reload.Watcher{}, r, &Authn{}, front).Threads }
	for range 2 {
		c.DataDir = t.TempDir()
		r, err := Open(t.Context(), c, nil, Options{Logger: slog.New(slog.DiscardHandler), Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if gates = append(gates, r); len(gates) == 1 && said(r) == "" {
			t.Error("a gateway that waits for another does not say that threads cannot be asked")
		}
	}
	for _, r := range gates {
		for said(r) != "" {
			time.Sleep(time.Millisecond)
		}
	}
	for i, r := range gates {
		if code := codeOf(evaluate(r, "t", "1+1")); code != "" {
			t.Errorf("gateway %d that is ready refuses as %q", i, code)
		}
	}
	for _, r := range gates {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func codeOf(o calls.Outcome) refusal.Code {
	if o.Refusal == nil {
		return ""
	}
	return o.Refusal.Code
}
