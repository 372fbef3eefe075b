package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// Store keeps calls for those who ask for them later, and sees to it that one
// idempotency key never starts a second call. It must be safe for concurrent
// use.
type Store interface {
	// Open notes a call before it is judged. Where its key has started one
	// already, that one is returned, and nothing is noted.
	Open(ctx context.Context, call store.Call) (prior *store.Call, err error)
	// Close notes what became of it.
	Close(ctx context.Context, id string, state store.State, answer store.Answer) error
	// Drop forgets a call that was not dispatched.
	Drop(ctx context.Context, id string) error
	// Get returns a principal's call, or store.ErrAbsent.
	Get(ctx context.Context, id, principal string) (store.Call, error)
}

// Handle judges one completion and executes its call. With an idempotency key,
// a call that the key has started before is not started again: its answer is
// given, or why there is none yet. Refusals before dispatch are not kept.
func (k *Kernel) Handle(ctx context.Context, request Request, key string) Outcome {
	d := k.open(request, ModeCall, nil)
	c := d.calls[0]
	if d.run(ctx, pipeline[:1], false) {
		return k.refuse(ctx, d)
	}
	if key != "" && len(d.calls) > 1 {
		c.refused = refusal.New(refusal.BadRequest, "An idempotency key is for one call.")
		return k.refuse(ctx, d)
	}
	prior, err := k.keep(ctx, c, key)
	if err != nil {
		c.refused = refusal.From(refusal.Execute, err)
		return k.refuse(ctx, d)
	}
	if prior != nil {
		return *prior
	}
	dispatched := false
	defer func() {
		if !dispatched && k.parts.Store != nil {
			// What was not dispatched must not hold its key, whatever the caller does.
			_ = k.parts.Store.Drop(context.WithoutCancel(ctx), c.id)
		}
	}()
	d.run(ctx, pipeline[1:], false)
	d.note(ctx)
	d.close()
	dispatched = d.Refusal() == nil && d.Reports[0].Verdict == VerdictCall
	return k.Execute(ctx, d)[0]
}

// refuse ends a decision whose call is refused.
func (k *Kernel) refuse(ctx context.Context, d *Decision) Outcome {
	d.note(ctx)
	return k.Execute(ctx, d.close())[0]
}

// keep notes the call, and returns the outcome of the one that its key has
// started before.
func (k *Kernel) keep(ctx context.Context, c *call, key string) (*Outcome, error) {
	if k.parts.Store == nil {
		if key == "" {
			return nil, nil
		}
		return nil, noStore(errors.New("there is no store"))
	}
	prior, err := c.noteCall(ctx, key)
	if err != nil || prior == nil {
		return nil, err
	}
	switch {
	case prior.Digest != c.asked():
		return nil, refusal.New(refusal.IdempotencyConflict, "This idempotency key has been used with another completion. Use a new key for a new call.")
	case prior.State == store.Pending:
		return nil, refusal.New(refusal.CallInProgress, "The call of this idempotency key still runs. Ask for it again later.")
	}
	return &Outcome{CallID: prior.ID, Result: prior.Answer.Result, Status: prior.Answer.Status}, nil
}

func noStore(cause error) error {
	return refusal.New(refusal.StoreUnavailable, "The call could not be kept, so nothing was executed. This cannot be mended by changing the call.").WithCause(cause)
}

// asked is the digest of what a key is for. Beside the completion it holds all
// that the answer depends on and the scope does not: an agent must not be given
// what another one was.
func (c *call) asked() string {
	asked := fmt.Appendf(nil, "%q %t %s", c.subject.Agent, c.input.Truncated, c.inputDigest())
	if n := c.input.Native; n != nil {
		asked = fmt.Appendf(asked, " %q %q", n.Name, n.Wire)
	}
	return digest(asked)
}

// scope is whose call this is.
func (c *call) scope() store.Scope {
	return store.Scope{Principal: owner(c.principal), Workspace: c.subject.Workspace, Project: c.subject.Project}
}

// owner names whose calls these are. Without credentials everybody is the same.
func owner(p *identity.Principal) string {
	if p == nil {
		return ""
	}
	return p.Name
}

// settle tells the store what became of the call.
func (c *call) settle(ctx context.Context, o *Outcome) {
	if !c.kept {
		return
	}
	state := store.Done
	if o.Refusal != nil && (o.Refusal.Code == refusal.OutcomeUnknown || o.Refusal.Code == refusal.Internal) {
		state = store.Unknown
	}
	// The outcome stands in the journal: a store that fails here makes it one that
	// cannot be asked for, and only a trace tells.
	defer func() { _ = recover() }() // of the store
	start := c.trace.start()
	err := c.kernel.parts.Store.Close(context.WithoutCancel(ctx), c.id, state, store.Answer{Result: o.Result, Status: o.Status})
	c.trace.stored(start, err)
}

// Lookup returns a principal's call by its id. A call that is not there, or
// another principal's, is not_found. Nothing of the request but its credential
// and its caller is looked at.
func (k *Kernel) Lookup(ctx context.Context, request Request, id string) (store.Call, error) {
	c, err := k.enter(ctx, request, nil)
	if err != nil {
		return store.Call{}, err
	}
	if k.parts.Store == nil {
		return store.Call{}, noStore(errors.New("there is no store"))
	}
	call, err := k.parts.Store.Get(ctx, id, owner(c.principal))
	if errors.Is(err, store.ErrAbsent) {
		return store.Call{}, refusal.New(refusal.NotFound, "There is no such call.")
	}
	if err != nil {
		return store.Call{}, noStore(err)
	}
	return call, nil
}

// Tool is a tool as an agent may see it.
type Tool struct {
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	// Wire is the name in OpenAI's alphabet, Effect read, idempotent or once.
	Wire   string `json:"-"`
	Effect string `json:"-"`
	// Client says that the application runs the tool, not Callgate.
	Client bool `json:"-"`
}

// Tools lists what an agent may use: each tool in the version that a call of its
// name means, with the closed schema that a call is judged by.
func (k *Kernel) Tools(ctx context.Context, request Request) ([]Tool, error) {
	c, err := k.enter(ctx, request, nil)
	if err != nil {
		return nil, err
	}
	return c.tools()
}

// tools are what the agent of a call may use where it acts.
func (c *call) tools() ([]Tool, error) {
	if c.subject.Agent == "" {
		return nil, refusal.New(refusal.AgentRequired, "The caller stands for several agents and did not say which of them is meant.")
	}
	tools := []Tool{}
	for _, entry := range c.state.Tools.Entries() {
		if meant, _ := c.state.Tools.Lookup(entry.Name()); meant != entry {
			continue
		}
		ever, err := c.reaches(entry.Name())
		if err != nil {
			return nil, refusal.From(refusal.Permission, err)
		}
		if ever {
			wire, _ := c.state.wire.Wire(entry.Name())
			tools = append(tools, Tool{
				Name: entry.Name(), Version: entry.Version(), Description: entry.Description(), InputSchema: entry.ClosedSchema(),
				Wire: wire, Effect: entry.Effect(), Client: entry.Run().Type == "client",
			})
		}
	}
	return tools, nil
}

// enter lets a request in that brings no completion.
func (k *Kernel) enter(ctx context.Context, request Request, admission *Admission) (*call, error) {
	request.Inputs = nil
	d := k.open(request, ModeCall, admission)
	if d.run(ctx, pipeline[:1], false) {
		return nil, d.calls[0].refused
	}
	return d.calls[0], nil
}

// status is the HTTP status of an outcome.
func status(refused *refusal.Error) int {
	if refused == nil {
		return http.StatusOK
	}
	return refused.Status()
}
