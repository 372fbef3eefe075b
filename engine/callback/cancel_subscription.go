package callback

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Unsubscriber runs the tools of type cancel_subscription, by which a model ends a
// subscription of its own thread.
type Unsubscriber struct {
	cancel func(ctx context.Context, by tool.Call, id string) error
}

// NewUnsubscriber returns an Unsubscriber. cancel ends the subscription of a call, if it is in
// the thread of the call that asks for it, and notifies its server; its error is for the
// model. If it is nil, the tools are unavailable.
func NewUnsubscriber(cancel func(ctx context.Context, by tool.Call, id string) error) *Unsubscriber {
	return &Unsubscriber{cancel}
}

// Run ends a subscription.
func (u *Unsubscriber) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	if u.cancel == nil {
		return tool.Result{}, refuse.Unavailable("%s has no subscriptions here", call.Tool)
	}
	var arguments struct {
		ID string `json:"tool_call_id"`
	}
	if err := json.Unmarshal(call.Arguments, &arguments); err != nil {
		return tool.Result{}, refuse.Internal("the arguments of " + call.Tool + " were not judged")
	}
	if err := u.cancel(ctx, call, arguments.ID); err != nil {
		return tool.Result{Attempts: 1}, refusal.From(refusal.Execute, err)
	}
	body, err := json.Marshal(map[string]string{"cancelled": arguments.ID})
	if err != nil {
		return tool.Result{Attempts: 1}, refuse.InvalidResult(call, err.Error())
	}
	return tool.Result{Body: body, JSON: true, Attempts: 1}, nil
}

// Discover fails: no server lists such a tool.
func (*Unsubscriber) Discover(context.Context, tool.Server) ([]tool.Definition, error) {
	return nil, errors.New("tools of type cancel_subscription are defined in a tool file")
}
