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

// Handle judges one completion and executes its call. A call whose idempotency key was
// used before is not started again: Handle returns the first outcome, or says that it is
// not there yet. Refusals before dispatch are not stored. A call that answers the
// questions of its tool has the questions' own key, whatever key the caller sends, so
// that the first answer stands. The id of a call is always a key of that call, too.
//
// Where the tool answers later, Handle waits for that as long as the tool may
// take, or until ctx ends.
func (k *Kernel) Handle(ctx context.Context, request Request, key string) Outcome {
	return k.handle(ctx, k.open(request, ModeCall, nil), key)
}

// handle is Handle for a decision that was opened: identify, then idempotency, then
// judge, then execute.
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
		key = state // instead of the caller's key: only the first answer counts
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
		// A call that was not dispatched must not hold its key.
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

// nameTool reads the tool of a completion that is refused before it is judged, so that
// the refusal can name it.
func (c *call) nameTool(ctx context.Context) {
	if guarded(ctx, check{stage: refusal.Parse, run: readInput}, c) != nil || c.parsed.Kind != parser.Call {
		c.parsed = parser.Result{}
	}
}

// refuse records a decision whose call is refused, and returns its outcome.
func (k *Kernel) refuse(ctx context.Context, d *Decision) Outcome {
	d.recordRest(ctx)
	return k.Execute(ctx, d.report())[0]
}

// claimKey stores the call under its key. It returns the outcome of an earlier call that
// has this key, or this id.
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
		// The first answer is still judged, and has answered nothing if it is refused.
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

// priorByID returns the call of the same principal whose id is the key, or nil. An id
// that no call has is an ordinary key.
func (c *call) priorByID(ctx context.Context, key string) (*storedCall, error) {
	// A face may put a prefix and a space before a key.
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
	refused := refusal.New(refusal.StoreUnavailable, "The call could not be saved and was not executed. Retry later; changing the call will not help.")
	return asCanceled(ctx, refusal.Execute, refused.WithCause(cause))
}

// refuseUnknown is the refusal for a read that the store cannot answer.
func refuseUnknown(ctx context.Context, cause error) error {
	refused := refusal.New(refusal.StoreUnavailable, "The state of the call cannot be read now. Ask again later.")
	return asCanceled(ctx, refusal.Execute, refused.WithCause(cause))
}

// idempotencyDigest hashes everything the result depends on that the key's scope does not
// cover: one agent must not be given the result of another.
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

// storeScope is the owner of the call: the principal, its workspace and its project.
func (c *judgement) storeScope() store.Scope {
	return store.Scope{Principal: principalName(c.principal), Workspace: c.subject.Workspace, Project: c.subject.Project}
}

// principalName names the owner of calls. Without credentials all callers are one owner.
func principalName(p *identity.Principal) string {
	if p == nil {
		return ""
	}
	return p.Name
}

// Lookup returns the status of a call of the principal. A call that does not exist, and
// one of another principal, is not_found. Only the credential and the caller of the
// request are checked.
//
// Lookup marks the result of an ended call as delivered; Delivered tells whether it was
// delivered before.
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

// tools lists the tools that the agent may use in its project.
func (c *judgement) tools() ([]Tool, error) {
	if c.subject.Agent == "" {
		return nil, refusal.New(refusal.AgentRequired, "The caller may act for several agents and did not name one.")
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

// mayShow tells whether the agent may be shown a tool. In a workspace or a project that
// is not its caller's it is shown none.
func (c *judgement) mayShow(entry *registry.Entry) (bool, error) {
	if c.outsidePrincipal() {
		return false, nil
	}
	ever, err := c.canReach(entry.Name())
	return err == nil && ever && !c.kernel.quarantined(entry.Name()), err
}

// toolView is the description of a tool for an agent.
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

// admitRequest identifies the caller of a request that brings no completion.
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
