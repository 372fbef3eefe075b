package gateway_test

import (
	"context"
	"fmt"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/store"
)

// A completion is judged, and its call executed only if every check has passed.
func Example() {
	loaded, err := configs.Load(vectorConfig)
	if err != nil {
		panic(err)
	}
	kernel, err := calls.New(&gateway.Config{
		Output: loaded.Output, Tools: loaded.Tools, Policy: loaded.Policy, Workspaces: loaded.Workspaces,
		Agents: loaded.Agents, Limits: loaded.Limits, Defaults: gateway.Subject(loaded.Defaults), Digest: loaded.Digest,
	}, calls.Deps{
		Deps:   gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}},
		Engine: &engine{}, Store: store.NewMemory(time.Now),
	})
	if err != nil {
		panic(err)
	}
	for _, completion := range []string{
		`It is noon.`,
		`{"tool":{"name":"web.search","arguments":{"query":"noon"}}}`,
		`{"tool":{"name":"web.search","arguments":{"q":"noon"}}}`,
	} {
		request := gateway.Request{Inputs: []gateway.Input{{Completion: []byte(completion)}}}
		decision := kernel.Kernel.Judge(context.Background(), request)
		outcome := kernel.Execute(context.Background(), decision)[0]
		switch {
		case outcome.Refusal != nil:
			fmt.Println(decision.Reports[0].Verdict, outcome.Refusal.Stage, outcome.Refusal.Code)
		case outcome.Text != nil:
			fmt.Println(decision.Reports[0].Verdict, string(outcome.Text))
		default:
			fmt.Println(decision.Reports[0].Verdict, string(outcome.Value.Output))
		}
	}
	// Output:
	// text It is noon.
	// tool_call {"ok":true}
	// refused schema unexpected_argument
}
