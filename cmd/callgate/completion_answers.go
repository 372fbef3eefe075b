package main

import (
	"context"
	"encoding/json"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/refusal"
)

// answerer judges one completion and returns its answer, with the id of its line if it has
// one. The error decides the exit code of a command that answers this completion alone;
// it may come with an answer.
type answerer func(ctx context.Context, id json.RawMessage, request gateway.Request) (any, error)

// checkedLine is the answer to a completion that was judged and not executed.
type checkedLine struct {
	ID json.RawMessage `json:"id,omitempty"`
	gateway.Report
}

// checkCompletion returns an answerer that executes nothing.
func checkCompletion(k *gateway.Kernel) answerer {
	return func(ctx context.Context, id json.RawMessage, request gateway.Request) (any, error) {
		report := k.Check(ctx, request)
		return checkedLine{ID: id, Report: report}, refusalError(report.Refusal)
	}
}

// executedLine is the answer to a completion that was judged and executed.
type executedLine struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Text   *string         `json:"text,omitempty"`
	Result json.RawMessage `json:"tool_result,omitempty"`
	// CallID and State are of a call that has not ended yet.
	CallID string `json:"call_id,omitempty"`
	State  string `json:"state,omitempty"`
}

// executeCompletion returns an answerer that executes accepted calls.
func executeCompletion(x *calls.Executor) answerer {
	return func(ctx context.Context, id json.RawMessage, request gateway.Request) (any, error) {
		o := x.Handle(ctx, request, "")
		switch {
		case o.Pending:
			return executedLine{ID: id, CallID: o.CallID, State: "pending"}, nil
		case o.Refusal == nil && o.Result == nil:
			text := string(o.Text)
			return executedLine{ID: id, Text: &text}, nil
		}
		var answer executedLine
		if err := json.Unmarshal(o.Result, &answer); err != nil {
			return nil, cli.InternalError{Err: err}
		}
		answer.ID = id
		return answer, refusalError(o.Refusal)
	}
}

// refusalError returns the error for the exit code of a refusal, or of a call that ended
// in an error.
func refusalError(refused *refusal.Error) error {
	switch {
	case refused == nil:
		return nil
	case refused.Code == refusal.Internal:
		return cli.InternalError{Err: refused}
	}
	return cli.ErrRefused
}
