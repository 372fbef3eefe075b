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
