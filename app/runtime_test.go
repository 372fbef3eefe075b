package app

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// taken is a transport that keeps what it was asked to run.
type taken struct{ call tool.Call }

func (t *taken) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	t.call = c
	return tool.Result{}, nil
}

func (t *taken) Discover(context.Context, tool.Server) ([]tool.Definition, error) {
	return nil, nil
}

// TestRunnerTellsAll: the engine is told all that the kernel says of a call.
func TestRunnerTellsAll(t *testing.T) {
	to := &taken{}
	e := engine.New(engine.Options{Transports: map[string]engine.Transport{"mcp": to}})
	defer e.Close()
	run := tool.Run{Type: "mcp", URL: "https://example.com/", Tool: "there", Timeout: time.Minute, MaxResultBytes: 1}
	_, err := engineAdapter{e, t.Context()}.Run(t.Context(), tool.Call{
		ID: "id", Tool: "a.b", Version: "1.0.0", Effect: "read", Run: run, Arguments: []byte("{}"), Typed: true,
		Roots: []string{"/r"}, Thread: "t", Ancestors: []string{"s"}, User: "u",
	})
	want := tool.Call{
		ID: "id", Tool: "a.b", Version: "1.0.0", Effect: "read", Run: run, Arguments: []byte("{}"), Typed: true,
		Roots: []string{"/r"}, Thread: "t", Ancestors: []string{"s"}, User: "u",
	}
	if err != nil || !reflect.DeepEqual(to.call, want) {
		t.Errorf("%+v, want %+v: %v", to.call, want, err)
	}
}

// waits is a transport that waits for the end of its context.
type waits struct{ taken }

func (*waits) Run(ctx context.Context, _ tool.Call) (tool.Result, error) {
	<-ctx.Done()
	return tool.Result{}, ctx.Err()
}

// TestRunningCallsEnd: a call that runs ends when the process cuts its calls off, and at the
// time at which the kernel does not wait for it any more.
func TestRunningCallsEnd(t *testing.T) {
	e := engine.New(engine.Options{Transports: map[string]engine.Transport{"mcp": &waits{}}})
	defer e.Close()
	task := tool.Call{ID: "id", Tool: "a.b", Effect: "once", Run: tool.Run{Type: "mcp", URL: "https://example.com/", Tool: "there", Timeout: time.Minute, MaxResultBytes: 1}}
	for name, c := range map[string]struct{ cut, within time.Duration }{"cut off": {50 * time.Millisecond, time.Minute}, "too late": {time.Minute, 50 * time.Millisecond}} {
		running, cut := context.WithTimeout(t.Context(), c.cut)
		ctx, cancel := context.WithTimeout(t.Context(), c.within)
		start := time.Now()
		if _, err := (engineAdapter{e, running}).Run(ctx, task); err == nil || time.Since(start) > 30*time.Second {
			t.Errorf("%s: ended after %v: %v", name, time.Since(start), err)
		}
		cancel()
		cut()
	}
}

// TestModeKeysLetsNobodyInWithoutKeys: a process that was started with keys
// stays shut, whatever a later configuration lacks.
func TestModeKeysLetsNobodyInWithoutKeys(t *testing.T) {
	c, err := configs.Default(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.Auth.Mode, c.Keys = configs.AuthKeys, nil
	authn, _, err := (&Authn{}).prepare(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	k, err := gateway.New(KernelConfig(c, authn), gateway.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	r := k.Check(context.Background(), gateway.Request{Credential: "anything", Inputs: []gateway.Input{{Completion: []byte("text")}}})
	if r.Refusal == nil || r.Refusal.Code != refusal.Unauthenticated {
		t.Errorf("got %+v", r.Refusal)
	}
}
