package calls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/events"
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

// maxAsked bounds how often the tool of one call may ask.
const maxAsked = 16

// Choice is what a tool asks a person.
type Choice = events.Choice

// ChoiceRequest is a choice, and where its tool awaits what was chosen.
type ChoiceRequest struct {
	Choice      Choice `json:"choice"`
	ResponseURL string `json:"response_url"` // is shown to nobody
}

// PastChoice is a choice that is not open any more.
type PastChoice struct {
	ID       string `json:"id"`
	Selected int    `json:"selected"`           // replaced, if another took its place before it was answered
	Accepted bool   `json:"accepted,omitempty"` // by the tool
}

// replaced is PastChoice.Selected of a choice that nobody has answered.
const replaced = -1

// SaveChoice asks a person on behalf of the tool of a waiting call; the call waits on. The same
// message again changes nothing; a message with another choice replaces the one that is open.
// Hooks are run over its texts. A call that does not wait is not_found.
func (e *Executor) SaveChoice(ctx context.Context, p CallbackMessage, asked ChoiceRequest) error {
	return e.inTurn(ctx, p, func(ctx context.Context) error { return e.saveChoice(ctx, p, asked) })
}

func (e *Executor) saveChoice(ctx context.Context, p CallbackMessage, asked ChoiceRequest) error {
	hooked := false
	for {
		call, err := e.findWaiting(ctx, p)
		if err != nil {
			return err
		}
		if call.meta.asked(asked.Choice.ID) {
			return nil
		}
		if !hooked {
			if asked.Choice, err = e.admitChoice(ctx, call, asked); err != nil {
				return err
			}
			hooked = true
		}
		meta := call.meta
		if meta.Choice != nil {
			meta.PastChoices = append(slices.Clone(meta.PastChoices), PastChoice{ID: meta.Choice.Choice.ID, Selected: replaced})
		}
		if meta.Choice = &asked; len(meta.PastChoices) >= maxAsked {
			return refusal.New(refusal.BadRequest, fmt.Sprintf("This call has asked %d times, which is the most. Answer the call.", maxAsked))
		}
		if again, err := e.noteMetadata(ctx, call, meta); !again {
			return err
		}
	}
}

// asked reports whether a choice is open, or was.
func (m *Metadata) asked(id string) bool {
	return m.Choice != nil && m.Choice.Choice.ID == id ||
		slices.ContainsFunc(m.PastChoices, func(past PastChoice) bool { return past.ID == id })
}

// admitChoice checks where the answer of a choice would be sent, and returns the choice as hooks
// leave it.
func (e *Executor) admitChoice(ctx context.Context, call *storedCall, asked ChoiceRequest) (Choice, error) {
	task, ok := e.restore(call).notified()
	if !ok || e.responder == nil {
		return Choice{}, refuseNotWaiting("its tool is not configured any more")
	}
	if err := e.responder.CheckResponse(task, asked.ResponseURL); err != nil {
		return Choice{}, refusal.New(refusal.BadRequest, "The message is not valid: "+err.Error()+".")
	}
	var choice Choice
	err := safe.Do(func() error {
		left, ok, err := asked.Choice.Edit(func(text string) (string, error) { return e.restore(call).HookText(ctx, text) })
		if choice = left; err == nil && !ok {
			err = refusal.New(refusal.HookDenied, "A hook leaves nothing of this choice that can be shown.")
		}
		return err
	})
	return choice, err
}

// ChoiceAnswer is what a person has chosen.
type ChoiceAnswer struct {
	ID string // of the choice
	// Selected is the index of the choice; with Dismissed it is that of the default.
	Selected  int
	Dismissed bool
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
		call, err := e.get(ctx, id, store.Of(principal))
		switch {
		case errors.Is(err, store.ErrNotFound):
			return CallStatus{}, refuseChoice()
		case err != nil:
			return CallStatus{}, refuseUnknown(ctx, err)
		case request.Thread != "" && gateway.ThreadGroup(call.Scope, request.Thread) != groupOf(call):
			return CallStatus{}, refuseChoice()
		}
		closed, err := call.meta.close(&a)
		if err != nil {
			return CallStatus{}, err
		}
		if closed == nil { // it was answered so
			return e.lookup(ctx, id, principal)
		}
		if call.Step != store.Waiting || e.isExpired(call) {
			return CallStatus{}, refuseChoice()
		}
		switch again, err := e.noteMetadata(context.WithoutCancel(ctx), call, *closed); {
		case again:
			continue
		case err != nil:
			return CallStatus{}, err
		}
		if err := e.respond(call, a.Selected); err != nil {
			return CallStatus{}, err
		}
		e.noteAccepted(context.WithoutCancel(ctx), id, a.ID)
		return e.lookup(ctx, id, principal)
	}
}

// close returns the metadata in which the open choice is answered, and sets what is selected
// for one that is dismissed. Without an error, nil says that the same answer was given before.
func (m Metadata) close(a *ChoiceAnswer) (*Metadata, error) {
	for _, past := range m.PastChoices {
		switch {
		case past.ID != a.ID:
		case past.Selected == replaced:
			return nil, refuseChoice()
		case !a.Dismissed && past.Selected != a.Selected:
			return nil, refusal.New(refusal.IdempotencyConflict, "This choice was answered otherwise before, and that stands.")
		case past.Accepted:
			return nil, nil
		default:
			return nil, refusal.New(refusal.OutcomeUnknown, "This was chosen before, and it is not known whether the tool has accepted it. It is not sent again; the tool may ask once more.")
		}
	}
	if m.Choice == nil || m.Choice.Choice.ID != a.ID {
		return nil, refuseChoice()
	}
	choice := m.Choice.Choice
	if a.Dismissed {
		a.Selected = choice.Default
	}
	if a.Selected < 0 || a.Selected >= len(choice.Choices) {
		return nil, refusal.New(refusal.BadRequest, fmt.Sprintf("selected is not the index of one of the %d choices.", len(choice.Choices)))
	}
	m.Choice, m.PastChoices = nil, append(slices.Clone(m.PastChoices), PastChoice{ID: a.ID, Selected: a.Selected})
	return &m, nil
}

func refuseChoice() *refusal.Error {
	return refusal.New(refusal.NotFound, "No such choice is open: it was replaced by another, or its call has ended.")
}

// respond sends what was chosen to the tool of a call.
func (e *Executor) respond(call *storedCall, selected int) error {
	task, ok := e.restore(call).notified()
	err := errors.New("its tool is not configured any more")
	if ok && e.responder != nil {
		ctx, cancel := context.WithTimeout(context.Background(), respondTime)
		defer cancel()
		err = safe.Do(func() error { return e.responder.Respond(ctx, task, call.meta.Choice.ResponseURL, selected) })
	}
	if err != nil {
		return refusal.New(refusal.ToolUnavailable, "The tool did not accept what was chosen, and it is not sent again. The tool may ask once more.").WithCause(err)
	}
	return nil
}

// noteAccepted notes that the tool has accepted what was chosen, for those who send the same
// answer again. Where that fails, they are told that it is not known.
func (e *Executor) noteAccepted(ctx context.Context, id, choice string) {
	for {
		call, err := e.get(ctx, id, store.OfAnyone())
		if err != nil || call.Step != store.Waiting {
			return
		}
		meta := call.meta
		meta.PastChoices = slices.Clone(meta.PastChoices)
		for i := range meta.PastChoices {
			if meta.PastChoices[i].ID == choice {
				meta.PastChoices[i].Accepted = true
			}
		}
		if again, _ := e.noteMetadata(ctx, call, meta); !again {
			return
		}
	}
}
