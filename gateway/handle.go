package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/store"
)

// Handle judges one completion and executes its call. With an idempotency key,
// a call that the key has started before is not started again: its answer is
// given, or why there is none yet. Refusals before dispatch are not kept. A call that
// answers what its tool has asked goes by the key of what was asked alone, so that the
// first answer stands. The id of a call is a key of that call, too, whether it was
// begun with another or with none.
//
// Where the tool answers later, Handle waits for that as long as the tool may
// take, or until ctx ends.
func (k *Kernel) Handle(ctx context.Context, request Request, key string) Outcome {
	return k.handle(ctx, k.open(request, ModeCall, nil), key)
}

// handle takes a decision that was opened to its end.
func (k *Kernel) handle(ctx context.Context, d *Decision, key string) Outcome {
	executions := d.executions()
	c := executions[0]
	if d.run(ctx, identify, false) {
		return k.refuse(ctx, d)
	}
	if strings.HasPrefix(key, answerKeyPrefix) {
		c.refused = refusal.New(refusal.BadRequest, "This idempotency key is not one that a caller may choose.")
		return k.refuse(ctx, d)
	}
	if state := c.answerKey(); state != "" {
		key = state // whatever key the caller gives: one answer counts
	}
	if key != "" && len(d.calls) > 1 {
		c.refused = refusal.New(refusal.BadRequest, "An idempotency key is for one call.")
		return k.refuse(ctx, d)
	}
	if key != "" {
		prior, err := k.claimKey(ctx, c, key)
		if err != nil {
			c.nameTool(ctx)
			c.refused = refusal.From(refusal.Execute, err)
			return k.refuse(ctx, d)
		}
		if prior != nil {
			return *prior
		}
		// What was not dispatched must not hold its key. What was, stays.
		defer c.forget(ctx)
	}
	d.run(ctx, judge, false)
	d.recordRest(ctx)
	d.report()
	defer d.Release()
	o := d.execute(ctx, executions)[0]
	if !o.deadline.IsZero() {
		return k.awaitEnd(ctx, c.call, o)
	}
	return o
}

// nameTool reads a completion that is refused before it is judged, so that the
// refusal names the tool where the completion does.
func (c *call) nameTool(ctx context.Context) {
	if guarded(ctx, check{stage: refusal.Parse, run: readInput}, c) != nil || c.parsed.Kind != parser.Call {
		c.parsed = parser.Result{}
	}
}

// refuse ends a decision whose call is refused.
func (k *Kernel) refuse(ctx context.Context, d *Decision) Outcome {
	d.recordRest(ctx)
	return k.Execute(ctx, d.report())[0]
}

// claimKey notes the call of a key, and returns the outcome of the one that the key
// has started before, or is the id of.
func (k *Kernel) claimKey(ctx context.Context, c *execution, key string) (*Outcome, error) {
	prior, err := c.priorByID(ctx, key)
	if err == nil && prior == nil {
		prior, err = c.openInStore(ctx, key)
		if err != nil {
			c.opened = true // the store may have taken it, and not said so
			c.forget(ctx)
		}
	}
	if err != nil || prior == nil {
		return nil, err
	}
	answers := strings.HasPrefix(key, answerKeyPrefix)
	other := prior.Scope != c.storeScope() || prior.Digest != c.idempotencyDigest()
	switch {
	case answers && (prior.Step == store.Opened || !other && prior.Step != store.Ended):
		// One that is still judged may be refused, and then it has answered nothing.
		return nil, refusal.New(refusal.CallInProgress, "An answer to what was asked is being taken in. Send this one again later.")
	case answers && other:
		return nil, refusal.New(refusal.IdempotencyConflict, "What was asked has been answered otherwise, and the first answer stands. Send the call without the state to be asked anew.")
	case other:
		return nil, refusal.New(refusal.IdempotencyConflict, "This idempotency key has been used with another completion. Use a new key for a new call.")
	case prior.Step != store.Ended:
		return nil, refusal.New(refusal.CallInProgress, "The call of this idempotency key still runs. Ask for it again later.")
	}
	if err := k.markDelivered(ctx, prior); err != nil {
		return nil, err
	}
	o := Outcome{CallID: prior.ID, Status: prior.Answer.Status, Replayed: true}
	o.setResult(prior.result())
	o.applyMetadata(prior.meta, c.input.Dialogue)
	return &o, nil
}

// priorByID is the call of the same principal whose id a key is, or nil. An id that no
// call has is a key as any other: it is told with the first answer, so that nobody
// has it of a call that could still become one.
func (c *call) priorByID(ctx context.Context, key string) (*storedCall, error) {
	// A face may put a word of its own before a key.
	if _, own, with := strings.Cut(key, " "); with {
		key = own
	}
	if !isID(key) {
		return nil, nil
	}
	prior, err := c.kernel.get(ctx, key, principalName(c.principal))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, refuseUnsaved(ctx, err)
	}
	return prior, nil
}

func refuseUnsaved(ctx context.Context, cause error) error {
	refused := refusal.New(refusal.StoreUnavailable, "The call could not be kept, so nothing was executed. This cannot be mended by changing the call.")
	return asCanceled(ctx, refusal.Execute, refused.WithCause(cause))
}

// refuseUnknown is refuseUnsaved for what executes nothing.
func refuseUnknown(ctx context.Context, cause error) error {
	refused := refusal.New(refusal.StoreUnavailable, "What became of the call cannot be told now. Ask again later.")
	return asCanceled(ctx, refusal.Execute, refused.WithCause(cause))
}

// idempotencyDigest is the digest of what a key is for. Beside the completion it holds all
// that the answer depends on and the scope does not: an agent must not be given
// what another one was. What the call says to its tool beside the completion is part
// of the input's digest.
func (c *call) idempotencyDigest() string {
	asked := fmt.Appendf(nil, "%q %t %s", c.subject.Agent, c.input.Truncated, c.inputDigest())
	if n := c.input.Native; n != nil {
		asked = fmt.Appendf(asked, " %q %q", n.Name, n.Wire)
		if n.Version != "" {
			asked = fmt.Appendf(asked, " %q", n.Version)
		}
	}
	if c.request.User != "" { // the tool may be told for whom it acts
		asked = fmt.Appendf(asked, " for %q", c.request.User)
	}
	return digest(asked)
}

// storeScope is whose call this is.
func (c *judgement) storeScope() store.Scope {
	return store.Scope{Principal: principalName(c.principal), Workspace: c.subject.Workspace, Project: c.subject.Project}
}

// principalName names whose calls these are. Without credentials everybody is the same.
func principalName(p *identity.Principal) string {
	if p == nil {
		return ""
	}
	return p.Name
}

// Lookup returns a principal's call by its id. A call that is not there, or
// another principal's, is not_found. Nothing of the request but its credential
// and its caller is looked at.
//
// The result of a call that has ended is delivered by that: Delivered of the call
// tells whether it was before.
func (k *Kernel) Lookup(ctx context.Context, request Request, id string) (CallStatus, error) {
	c, err := k.admitRequest(ctx, request, nil)
	if err != nil {
		return CallStatus{}, err
	}
	return k.lookup(ctx, id, principalName(c.principal))
}

// lookup is Lookup for a principal that was let in.
func (k *Kernel) lookup(ctx context.Context, id, principal string) (CallStatus, error) {
	call, err := k.get(ctx, id, principal)
	if errors.Is(err, store.ErrNotFound) {
		return CallStatus{}, refusal.New(refusal.NotFound, "There is no such call.")
	}
	if err != nil {
		return CallStatus{}, refuseUnknown(ctx, err)
	}
	if err := k.markDelivered(ctx, call); err != nil {
		return CallStatus{}, err
	}
	return call.status(), nil
}

// markDelivered marks an ended call as delivered. With an error the result must not be
// sent.
func (k *Kernel) markDelivered(ctx context.Context, call *storedCall) error {
	if call.Step != store.Ended || call.Delivered {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	first, err := ask(k.statuses, func(s StatusStore) (bool, error) {
		return s.Deliver(ctx, call.ID, call.Scope.Principal)
	})
	if err != nil {
		return refuseUnknown(ctx, err)
	}
	call.Delivered = !first
	return nil
}

// Tool is a tool as an agent may see it.
type Tool struct {
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	// Wire is the name in OpenAI's alphabet, ID that in OXP's, Effect read, idempotent or once, and Run
	// how it is run.
	Wire   string `json:"-"`
	ID     string `json:"-"`
	Effect string `json:"-"`
	Run    string `json:"-"`
	// Client says that the application runs the tool, not Callgate.
	Client bool `json:"-"`
	// AuthoredSchema is the input schema in its author's words, closed; OutputSchema
	// is what results are judged by, as it was written, or nil.
	AuthoredSchema json.RawMessage `json:"-"`
	OutputSchema   json.RawMessage `json:"-"`
}

// Tools lists what an agent may use: each tool in the version that a call of its
// name means, with the closed schema that a call is judged by.
func (k *Kernel) Tools(ctx context.Context, request Request) ([]Tool, error) {
	c, err := k.admitRequest(ctx, request, nil)
	if err != nil {
		return nil, err
	}
	return c.tools()
}

// tools are what the agent of a call may use where it acts.
func (c *judgement) tools() ([]Tool, error) {
	if c.subject.Agent == "" {
		return nil, refusal.New(refusal.AgentRequired, "The caller stands for several agents and did not say which of them is meant.")
	}
	tools := []Tool{}
	for _, entry := range c.config.Tools.Entries() {
		if meant, _ := c.config.Tools.Lookup(entry.Name()); meant != entry {
			continue
		}
		may, err := c.mayShow(entry)
		if err != nil {
			return nil, refusal.From(refusal.Permission, err)
		}
		if may {
			tools = append(tools, c.toolView(entry))
		}
	}
	return tools, nil
}

// mayShow tells whether the agent of a call may be shown a tool. It may use none in a
// workspace or a project that is not its caller's, whatever others may there.
func (c *judgement) mayShow(entry *registry.Entry) (bool, error) {
	if c.outsidePrincipal() {
		return false, nil
	}
	ever, err := c.canReach(entry.Name())
	return err == nil && ever && !c.kernel.quarantined(entry.Name()), err
}

// toolView is what the agent of a call is told of a tool.
func (c *judgement) toolView(entry *registry.Entry) Tool {
	wire, _ := c.config.openAINames.Wire(entry.Name())
	id, _ := c.config.oxpNames.Wire(entry.Name())
	run := entry.Run().Type
	return Tool{
		Name: entry.Name(), Version: entry.Version(), Description: entry.Description(), InputSchema: entry.ClosedSchema(),
		Wire: wire, ID: id, Effect: entry.Effect(), Run: run, Client: run == "client",
		AuthoredSchema: entry.AuthoredSchema(), OutputSchema: entry.OutputSchema(),
	}
}

// admitRequest lets a request in that brings no completion.
func (k *Kernel) admitRequest(ctx context.Context, request Request, admission *Admission) (*judgement, error) {
	request.Inputs = nil
	d := k.open(request, ModeCall, admission)
	if d.run(ctx, identify, false) {
		return nil, d.calls[0].refused
	}
	return d.calls[0].judgement, nil
}

// httpStatus is the HTTP status of an outcome.
func httpStatus(refused *refusal.Error) int {
	if refused == nil {
		return http.StatusOK
	}
	return refused.Status()
}
