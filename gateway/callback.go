package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// CallbackMessage is what is common to what a tool posts about a call that it has taken.
type CallbackMessage struct {
	CallID string // that the address stands for
	// ID and Group are the call and the thread that the message names.
	ID, Group string
	Digest    string // SHA-256 of the message, in hex
}

// CallbackResult is the answer of a tool that has called back.
type CallbackResult struct {
	Output Output
	// Failure is what went wrong, in the tool's words for the model; then there is
	// no output.
	Failure string
	Display json.RawMessage // how it is shown to people; nil where the tool does not say
	// Subscribed says that the tool tells of events from now on.
	Subscribed bool
}

// answerWait bounds how long an answer waits for another to the same call that is
// being taken in.
const answerWait = 5 * time.Second

// Complete ends a call with what its tool has posted. The first answer ends it; the
// same again changes nothing and is no error. What names no call that waits is
// not_found, whatever the reason. Another answer than the first is
// idempotency_conflict. That, what comes too late, and what names another call or
// thread than its address stands for, are written down. With any other refusal the
// tool is to post the same again.
//
// With nil the answer is durable.
func (k *Kernel) Complete(ctx context.Context, p CallbackMessage, a CallbackResult) error {
	ctx = context.WithoutCancel(ctx) // what has come in is not dropped half-way
	for {
		call, err := k.posted(ctx, p)
		if err != nil {
			return err
		}
		if k.overdue(&call) {
			k.expire(ctx, &call)
			return k.dispute(ctx, &call, p, notPending(tooLate))
		}
		if call.Step == store.Ended {
			return k.repeated(ctx, &call, p)
		}
		c := k.restore(&call)
		if !k.ends.begin(c) {
			if err := k.untilEnded(ctx, &call); err != nil {
				return err
			}
			continue
		}
		subscribed := a.Subscribed && k.feeds.begin(&call, k.parts.Now())
		c.note = Metadata{Display: a.Display, AnswerDigest: p.Digest, Subscribed: subscribed}.encode()
		o := c.finish(ctx, a.Output, c.fault(a), call.Opened)
		switch {
		case c.late: // somebody was quicker, and that answer may have subscribed
			if subscribed {
				k.abandon(ctx, &call)
			}
		case o.Pending:
			if subscribed {
				k.feeds.stop(call.ID)
			}
			return notNow(ctx, errors.New("the store did not take the answer in"))
		default:
			return nil
		}
	}
}

// MaxCallbackBytes is the longest result of a tool that calls back, in bytes.
func (k *Kernel) MaxCallbackBytes() int64 { return k.state.Load().answer }

// tooLate is why an answer is refused, for the operator.
const tooLate = "the call has ended, or its time is over"

// posted finds the call that a message is about, which must be the one that its
// address stands for. What names another call or thread is written down.
func (k *Kernel) posted(ctx context.Context, p CallbackMessage) (store.Call, error) {
	call, err := k.store.Find(ctx, p.CallID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Call{}, notPending(notKept)
	case err != nil:
		return store.Call{}, notNow(ctx, err)
	case call.Step != store.Waiting && call.Step != store.Ended:
		return store.Call{}, notPending("the call waits for no answer")
	case p.ID != call.ID, p.Group != group(&call):
		return store.Call{}, k.dispute(ctx, &call, p, foreign())
	}
	return call, nil
}

// CallOwner names who made the call that a message is about; without credentials, its tool.
// What names no call that is kept is not_found.
func (k *Kernel) CallOwner(ctx context.Context, callID string) (string, error) {
	call, err := k.store.Find(ctx, callID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", notPending(notKept)
	case err != nil:
		return "", notNow(ctx, err)
	case call.Scope.Principal != "":
		return call.Scope.Principal, nil
	}
	return "tool " + call.Task.Tool, nil
}

// notKept is why a message is refused, for the operator.
const notKept = "the call is not kept, or not any more"

// foreign is the refusal for a message whose id or group is not that of the call
// that its address stands for.
func foreign() *refusal.Error {
	refused := notPending("the message names another call or thread than its address stands for")
	refused.Stage = refusal.Identity
	return refused
}

// group is the thread that a tool was told of: the call's own, or else the call by
// itself is one.
func group(call *store.Call) string {
	if call.Task.Thread != "" {
		return call.Task.Thread
	}
	return call.ID
}

// fault is why a call has no output, though its tool has answered. The tool is not
// named in it: a call that was kept does not say by which name the model knows it.
func (c *call) fault(a CallbackResult) error {
	switch {
	case c.tool == nil:
		return refusal.New(refusal.InvalidResult, "The tool is not configured any more, so its answer is not shown.")
	case a.Failure == "":
		return nil
	case int64(len(a.Failure)) > c.tool.Run().MaxResultBytes:
		return refusal.New(refusal.ResultTooLarge, "The tool answered with more than is allowed. Ask it for less.")
	}
	return refusal.New(refusal.ToolFailed, a.Failure).WithCause(fmt.Errorf("%s says that it failed", c.parsed.Name))
}

// repeated is what an answer is to a call that has ended.
func (k *Kernel) repeated(ctx context.Context, call *store.Call, p CallbackMessage) error {
	switch MetadataOf(call).AnswerDigest {
	case p.Digest:
		return nil
	case "": // it ended without an answer
		return k.dispute(ctx, call, p, notPending(tooLate))
	}
	return k.dispute(ctx, call, p, refusal.New(refusal.IdempotencyConflict, "This call was answered otherwise before, and that stands."))
}

// untilEnded waits for the end of a call that is being taken in here.
func (k *Kernel) untilEnded(ctx context.Context, call *store.Call) error {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	_, err := k.change(ctx, call.ID, call.Scope.Principal, func(call *store.Call) bool { return call.Step == store.Ended })
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return notNow(ctx, err)
	}
	return nil
}

// SaveAuthURL notes that a call waits for somebody to open a URL. A call that does
// not wait is not_found.
func (k *Kernel) SaveAuthURL(ctx context.Context, p CallbackMessage, url string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepWait)
	defer cancel()
	for {
		call, err := k.posted(ctx, p)
		if err != nil {
			return err
		}
		if call.Step != store.Waiting || k.overdue(&call) {
			return notPending(tooLate)
		}
		switch err := k.store.SetMetadata(ctx, call.ID, store.Waiting, call.Metadata, Metadata{AuthURL: url}.encode()); {
		case errors.Is(err, store.ErrConflict): // by another URL: the one that is noted last holds
			continue
		case errors.Is(err, store.ErrEnded), errors.Is(err, store.ErrNotFound):
			return notPending(tooLate)
		case err != nil:
			return notNow(ctx, err)
		}
		return nil
	}
}

// dispute writes down what a tool has said of a call beside its one answer, and
// returns how that is refused. Only its digest is kept.
func (k *Kernel) dispute(ctx context.Context, call *store.Call, p CallbackMessage, refused *refusal.Error) error {
	ctx = context.WithoutCancel(ctx)
	if !k.disputes.note(call.ID) {
		return refused
	}
	r := k.restore(call).record(audit.Decision)
	r.Verdict, r.Stage, r.Code = audit.Refused, refused.Stage, refused.Code
	r.InputSHA256, r.ArgumentsSHA256, r.Arguments, r.Completion = p.Digest, "", nil, ""
	if err := k.write(ctx, r); err != nil {
		k.disputes.forget(call.ID)
		return err
	}
	return refused
}

const (
	// mostDisputes is how much of what is said of one call is written down: a tool
	// must not fill the journal.
	mostDisputes = 8
	// mostDisputed is of how many calls that is counted.
	mostDisputed = 4096
)

// disputes counts, by call. The zero value has counted nothing.
type disputes struct {
	mu   sync.Mutex
	byID map[string]int
}

// note tells whether one more is to be written down.
func (d *disputes) note(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byID == nil {
		d.byID = map[string]int{}
	}
	noted, known := d.byID[id]
	if noted >= mostDisputes {
		return false
	}
	for other := range d.byID {
		if known || len(d.byID) < mostDisputed {
			break
		}
		delete(d.byID, other) // whose comes first
	}
	d.byID[id]++
	return true
}

// forget takes back what was noted and could not be written down: it comes again.
func (d *disputes) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byID[id]--; d.byID[id] <= 0 {
		delete(d.byID, id)
	}
}
