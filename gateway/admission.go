package gateway

import (
	"context"
	"time"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store/approval"
)

// Admission is an admitted request, for as many judgements as its conversation takes. Only
// Admit makes one. Admit charges the caller's rate once. Each judgement checks everything
// else again, under the configuration current at that time: the credential, that it still
// belongs to the same caller, and the agent. The subject stays the admitted one, or is
// refused. It is safe for concurrent use.
type Admission struct {
	kernel    *Kernel
	request   Request // of the admitted subject, without inputs
	principal string
	// statesAgent says that the request named its agent: nothing stood in for it.
	statesAgent      bool
	outsidePrincipal bool            // it is for a workspace or a project that is not the principal's
	paid             bool            // its calls were charged when they were judged before
	takesUp          string          // the approval that its call takes up; see TakeUp
	repeat           approval.Repeat // of that approval
	constraints      Constraints
	brought          *broughtTools  // by the request; nil: none
	labels           *broughtLabels // by the request and what its provider runs; nil: they are not noted
}

// Admit admits a request or returns the reason for its refusal, as the first step of every
// judgement does. It does not read the inputs. The error is a *refusal.Error, and is
// recorded unless the caller is unknown.
func (k *Kernel) Admit(ctx context.Context, request Request) (*Admission, error) {
	j, times := k.judgementOf(k.config.Load(), &request, ModeCall, nil)
	began := k.deps.Now()
	if refused := j.admit(ctx); refused != nil {
		d := &Decision{Digest: j.config.Digest, mode: ModeCall, judgement: j}
		d.add(Input{}, times)
		d.calls[0].identityRefused(refused, began)
		d.end(ctx)
		return nil, refused
	}
	admitted := j.admitted()
	admitted.statesAgent = request.Agent != ""
	return admitted, nil
}

// admit is the first step of the judgement, for whom nothing more is judged.
func (c *judgement) admit(ctx context.Context) (refused *refusal.Error) {
	err := safe.Do(func() error { return c.identifyCaller(ctx) })
	return refusal.From(refusal.Identity, refusal.AsCanceled(ctx, refusal.Identity, err))
}

// admitted is the admission of a request whose caller was identified.
func (c *judgement) admitted() *Admission {
	a := &Admission{kernel: c.kernel, request: c.request, principal: principalName(c.principal), outsidePrincipal: c.outsidePrincipal()}
	a.request.Subject = c.subject
	return a
}

// identityRefused ends a call whose caller was refused, by a step that began at a time.
func (c *Call) identityRefused(refused *refusal.Error, began time.Time) {
	ended := c.kernel.deps.Now()
	c.started, c.refused = began, refused
	c.times.Add(refusal.Identity, ended.Sub(began))
	if c.trace != nil {
		c.trace.Span.Start = began
		c.trace.Add(string(refusal.Identity), began, ended, refused)
	}
}

// AdmitQuery admits a request without a completion, such as one for the status of a call.
// It checks only the credential and the caller, and does not record a refusal. The error is
// a *refusal.Error.
func (k *Kernel) AdmitQuery(ctx context.Context, request Request) (*Admission, error) {
	j, err := k.admitRequest(ctx, request, nil)
	if err != nil {
		return nil, err
	}
	return j.admitted(), nil
}

// Recheck reports whether the request may still be answered: it checks the credential, that
// it still belongs to the same caller, and the agent. The error is a *refusal.Error.
func (a *Admission) Recheck(ctx context.Context) error {
	_, err := a.kernel.admitRequest(ctx, a.request, a)
	return err
}

// admitRequest identifies the caller of a request without a completion.
func (k *Kernel) admitRequest(ctx context.Context, request Request, admission *Admission) (*judgement, error) {
	j, _ := k.judgementOf(k.config.Load(), &request, ModeCall, admission)
	if refused := j.admit(ctx); refused != nil {
		return nil, refused
	}
	return &j, nil
}

// Subject returns the agent, workspace and project that the request was admitted for.
func (a *Admission) Subject() Subject { return a.request.Subject }

// Principal returns the caller's name; it is empty if no credentials are required.
func (a *Admission) Principal() string { return a.principal }

// AgentRequired reports whether a call must itself state its agent, by the configuration
// of now.
func (a *Admission) AgentRequired() bool {
	return a.kernel != nil && a.kernel.config.Load().AgentRequired
}

// ToolName returns the registry's name of a tool for its name in OpenAI's alphabet, under
// the current configuration. If the name stands for no tool, ok is false.
func (a *Admission) ToolName(wire string) (name string, ok bool) {
	if a.kernel == nil {
		return "", false
	}
	return a.config().openAINames.Name(wire)
}

// config is the configuration of now, with the tools that the request brings.
func (a *Admission) config() *Config { return a.toolsOver(a.kernel.config.Load()) }

// ToolName returns the registry's name for one of an alphabet, by the configuration of
// now. A name that stands for no tool is not ok.
func (k *Kernel) ToolName(of Alphabet, wire string) (name string, ok bool) {
	return k.config.Load().namesFor(of).Name(wire)
}

// Tools lists what the agent may use now, as Kernel.Tools does.
func (a *Admission) Tools() ([]Tool, error) {
	if a.kernel == nil {
		return nil, refuse.NotAdmitted()
	}
	c, err := a.kernel.admitRequest(context.Background(), a.request, a) // nothing in it waits
	if err != nil {
		return nil, err
	}
	return c.tools()
}

// Tool returns one of the tools that Tools would list, or nil. It does not identify the
// caller again, because every use of the tool is judged.
func (a *Admission) Tool(name string) (*Tool, error) {
	if a.kernel == nil {
		return nil, refuse.NotAdmitted()
	}
	c := &judgement{kernel: a.kernel, config: a.config(), subject: a.request.Subject}
	entry, known := c.config.Tools.Lookup(name)
	if !known || a.outsidePrincipal || c.subject.Agent == "" {
		return nil, nil
	}
	may, err := c.mayShow(entry)
	if err != nil {
		return nil, refusal.From(refusal.Permission, err)
	}
	if !may {
		return nil, nil
	}
	tool := c.toolView(entry)
	return &tool, nil
}

// ToolKind returns the kind of a tool and whether it is registered, also where the caller may not
// know of it: a face that tells its caller of the answer would reveal which tools there are.
func (a *Admission) ToolKind(name string) (kind string, registered bool) {
	if a.kernel == nil {
		return "", false
	}
	entry, known := a.config().Tools.Lookup(name)
	if !known {
		return "", false
	}
	return entry.Kind(), true
}

// Judge judges inputs of the request, all or none, as Kernel.Judge does. The caller
// executes a decision of ModeCall, and hands over one of ModeEnforce.
func (a *Admission) Judge(ctx context.Context, mode Mode, inputs ...Input) *Decision {
	return a.Open(ctx, mode, inputs...).Judge(ctx)
}

// Stream starts the judgement of a completion that will arrive in pieces, as Kernel.Stream
// does. With prose, the completion is the text of an answer whose calls are native (see
// Input.TextOnly) and are given to Close.
func (a *Admission) Stream(ctx context.Context, mode Mode, textOnly bool) (*Stream, error) {
	if a.kernel == nil {
		return nil, refuse.NotAdmitted()
	}
	return a.kernel.stream(ctx, a.request, mode, a, textOnly)
}
