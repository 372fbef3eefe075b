package calls

import (
	"context"

	"github.com/callgate/callgate/approval"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// storedCall is a call as the store has it, with its metadata decoded once.
type storedCall struct {
	store.Call
	meta Metadata
}

func newStoredCall(call store.Call) *storedCall {
	return &storedCall{Call: call, meta: decodeMetadata(call.Metadata)}
}

// get returns a call as the store has it.
func (e *Executor) get(ctx context.Context, id string, whose store.Whose) (*storedCall, error) {
	call, err := ask(e.store, func(s Store) (store.Call, error) { return s.Get(ctx, id, whose) })
	if err != nil {
		return nil, err
	}
	return newStoredCall(call), nil
}

// watch tells when something changes about a call.
func (e *Executor) watch(id string) (*store.Watch, error) {
	return ask(e.store, func(s Store) (*store.Watch, error) { return s.Watch(id) })
}

// update makes one change of a call in the store.
func (e *Executor) update(ctx context.Context, id string, change store.Change) error {
	return tell(e.store, func(s Store) error { return s.Update(ctx, id, change) })
}

// setMetadata replaces the metadata of a call, if they are still those that were read.
func (e *Executor) setMetadata(ctx context.Context, was *storedCall, metadata Metadata) error {
	return e.update(ctx, was.ID, store.SetMetadata{At: was.Step, Was: was.Metadata, Metadata: metadata.encode()})
}

// settle tells the store that the outcome of a call is in the journal. Where it fails,
// that is looked up in the journal at the next start.
func (e *Executor) settle(id string) {
	_ = tell(e.store, func(s Store) error { return s.Settle(context.Background(), id) })
}

// questions reads the tools' questions, for the check of answers.
type questions struct{ executor *Executor }

func (q questions) Questions(ctx context.Context, id, principal string) (*tool.InputRequired, string, error) {
	call, err := q.executor.get(ctx, id, store.Of(principal))
	if err != nil || call.Step != store.Ended {
		return nil, "", err
	}
	return call.meta.Questions, call.meta.QuestionDigest, nil
}

// result is the result of an ended call for the model.
func (s *storedCall) result() wrapper.ToolResult {
	result, err := wrapper.Read(s.Answer.Result)
	if err == nil {
		return result
	}
	refused := refusal.New(refusal.OutcomeUnknown, "What became of the call cannot be read.").WithCause(err)
	result, _ = wrapper.Refusal(&s.Task.Tool, refused) // it holds text
	return result
}

// CallState is the state of a call, as it is written on the wire.
type CallState = store.State

// The states of a call.
const (
	StatePending = store.Pending // it runs, or its tool answers later
	StateDone    = store.Done
	StateUnknown = store.Unknown // it has ended, and its outcome is not known
	// StateAuthorization is the state of a pending call whose tool waits for a person to
	// open Metadata.AuthURL.
	StateAuthorization CallState = "authorization"
	// StateChoice is the state of a pending call whose tool waits for a person to choose, by
	// Metadata.Choice.
	StateChoice CallState = "choice"
)

// CallStatus is the status of a call, as its principal may see it.
type CallStatus struct {
	ID    string
	State CallState
	Ended bool
	// Delivered tells that the result was given before: then it is not to enter its
	// thread again.
	Delivered bool
	// Result is the result for the model, and HTTPStatus its status. Both are empty until
	// the call has ended.
	Result     wrapper.ToolResult
	HTTPStatus int
	Metadata   Metadata
	// Asked is what people are asked to approve, or were; nil: nothing, or the call ran.
	Asked *gateway.Asked

	stored   *storedCall
	approval approval.State // of a call that asked, and has not run
}

func (s *storedCall) status() CallStatus {
	status := CallStatus{ID: s.ID, State: s.State, Ended: s.Step == store.Ended, Metadata: s.meta, stored: s}
	switch {
	case s.Step == store.Waiting && s.meta.Choice != nil:
		status.State = StateChoice
	case s.Step == store.Waiting && s.meta.AuthURL != "":
		status.State = StateAuthorization
	case status.Ended:
		status.Delivered, status.Result, status.HTTPStatus = s.Delivered, s.result(), s.Answer.Status
	}
	return status
}
