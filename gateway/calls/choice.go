package calls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/gateway/threads"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// Responder is an Engine that can send what a person has chosen to the tool that asked. It
// sends it once, and returns in bounded time.
type Responder interface {
	// CheckResponse says why nothing may be sent to a URL about a call.
	CheckResponse(call tool.Call, url string) error
	Respond(ctx context.Context, call tool.Call, url string, selected int) error
}

// respondTime is how long a tool may take to accept what was chosen.
const respondTime = 10 * time.Second

// maxChoices bounds how often the tool of one call may ask.
const maxChoices = 16

type (
	// Choice is what a tool asks a person.
	Choice = events.Choice
	// ChoiceRequest is a choice, and where its tool awaits what was chosen.
	ChoiceRequest = stored.ChoiceRequest
	// ChoiceAnswer is what a person has chosen.
	ChoiceAnswer = stored.ChoiceAnswer
)

// SaveChoice asks a person on behalf of the tool of a waiting call; the call waits on. The same
// message again changes nothing; a message with another choice replaces the one that is open.
// Hooks are run over its texts. A call that does not wait is not_found.
func (e *Executor) SaveChoice(ctx context.Context, p CallbackMessage, request ChoiceRequest) error {
	return e.inTurn(ctx, p, func(ctx context.Context) error { return e.saveChoice(ctx, p, request) })
}

func (e *Executor) saveChoice(ctx context.Context, p CallbackMessage, request ChoiceRequest) error {
	hooked := false
	for {
		call, err := e.findWaiting(ctx, p)
		if err != nil {
			return err
		}
		if call.Meta.HasChoice(request.Choice.ID) {
			return nil
		}
		if !hooked {
			if request.Choice, err = e.admitChoice(ctx, call, request); err != nil {
				return err
			}
			hooked = true
		}
		meta := call.Meta
		if meta.Choice != nil {
			meta.EarlierChoices = append(slices.Clone(meta.EarlierChoices),
				stored.EarlierChoice{ID: meta.Choice.Choice.ID, Selected: stored.Replaced})
		}
		if meta.Choice = &request; len(meta.EarlierChoices) >= maxChoices {
			return refusal.New(refusal.BadRequest,
				fmt.Sprintf("This call has asked %d times, which is the most. Answer the call.", maxChoices))
		}
		if again, err := e.noteMetadata(ctx, call, meta); !again {
			return err
		}
	}
}

// admitChoice checks where the answer of a choice would be sent, and returns the choice as hooks
// leave it.
func (e *Executor) admitChoice(ctx context.Context, call *stored.Call, request ChoiceRequest) (Choice, error) {
	task, ok := e.notified(call)
	if !ok || e.responder == nil {
		return Choice{}, refuseNotWaiting("its tool is not configured any more")
	}
	if err := e.responder.CheckResponse(task, request.ResponseURL); err != nil {
		return Choice{}, refusal.New(refusal.BadRequest, "The message is not valid: "+err.Error()+".")
	}
	var choice Choice
	err := safe.Do(func() error {
		left, ok, err := request.Choice.Edit(func(text string) (string,
			error) {
			return e.executions.Restore(call).Hooks().Early().Text(ctx, text)
		})
		if choice = left; err == nil && !ok {
			err = refusal.New(refusal.HookDenied, "A hook leaves nothing of this choice that can be shown.")
		}
		return err
	})
	return choice, err
}

// Choose answers the open choice of a principal's call, and returns the call's status then. If
// the request names a thread, it must be that of the call. The choice is closed in the store
// before anything is sent, and it is sent once: if that fails, the error is tool_unavailable, and
// only the tool can ask again. The same answer again changes nothing; another is
// idempotency_conflict. A choice that is not open is not_found.
func (e *Executor) Choose(ctx context.Context, request gateway.Request, id string, a ChoiceAnswer) (CallStatus, error) {
	principal, err := e.principalOf(ctx, request)
	if err != nil {
		return CallStatus{}, err
	}
	for {
		call, err := e.calls.Get(ctx, id, store.Of(principal))
		switch {
		case errors.Is(err, store.ErrNotFound):
			return CallStatus{}, stored.RefuseChoice()
		case err != nil:
			return CallStatus{}, stored.RefuseUnknown(ctx, err)
		case request.Thread != "" && threads.Group(call.Scope, request.Thread) != call.Group():
			return CallStatus{}, stored.RefuseChoice()
		}
		a.Until = e.now().Add(gateway.StoreWait + respondTime)
		closed, err := call.Meta.Answer(&a, e.now())
		if err != nil {
			return CallStatus{}, err
		}
		if closed == nil { // it was answered so
			return e.lookup(ctx, id, principal)
		}
		if call.Step != store.Waiting || call.Expired(e.now()) {
			return CallStatus{}, stored.RefuseChoice()
		}
		switch again, err := e.noteMetadata(context.WithoutCancel(ctx), call, *closed); {
		case again:
			continue
		case err != nil:
			return CallStatus{}, err
		}
		sent := e.respond(call, a.Selected)
		e.noteSent(context.WithoutCancel(ctx), id, a.ID, sent == nil)
		if sent != nil {
			return CallStatus{}, sent
		}
		return e.lookup(ctx, id, principal)
	}
}

// respond sends what was chosen to the tool of a call.
func (e *Executor) respond(call *stored.Call, selected int) error {
	task, ok := e.notified(call)
	err := errors.New("its tool is not configured any more")
	if ok && e.responder != nil {
		ctx, cancel := context.WithTimeout(context.Background(), respondTime)
		defer cancel()
		err = safe.Do(func() error { return e.responder.Respond(ctx, task, call.Meta.Choice.ResponseURL, selected) })
	}
	if err != nil {
		return refusal.New(refusal.ToolUnavailable,
			"The tool has not said that it accepted what was chosen, and it is not sent again. The tool may ask once more.").WithCause(err)
	}
	return nil
}

// noteSent notes whether the tool has accepted what was chosen, for those who send the same
// answer again. Where that fails, they are told that it is not known.
func (e *Executor) noteSent(ctx context.Context, id, choice string, accepted bool) {
	for {
		call, err := e.calls.Get(ctx, id, store.OfAnyone())
		if err != nil || call.Step != store.Waiting {
			return
		}
		meta := call.Meta
		meta.EarlierChoices = slices.Clone(meta.EarlierChoices)
		for i := range meta.EarlierChoices {
			if meta.EarlierChoices[i].ID == choice {
				meta.EarlierChoices[i].Accepted, meta.EarlierChoices[i].Until = accepted, time.Time{}
			}
		}
		if again, _ := e.noteMetadata(ctx, call, meta); !again {
			return
		}
	}
}
