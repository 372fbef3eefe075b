package gateway

import (
	"context"
	"errors"

	"github.com/callgate/callgate/refusal"
)

// Admission is a request that was let in, for as many judgements as its
// conversation takes. Only Admit makes one. The caller's rate was taken by it,
// once. Everything else of the request is checked anew at each judgement, under
// the configuration of then: its credential, that this is still the same
// caller's, and the agent. The subject stays the one that was let in, or is
// refused. It is safe for concurrent use.
type Admission struct {
	kernel    *Kernel
	request   Request // of the subject that was let in, without inputs
	principal string
	// statesAgent says that the request named its agent: nothing stood in for it.
	statesAgent      bool
	outsidePrincipal bool // it is for a workspace or a project that is not the principal's
	constraints      Constraints
}

// Admit lets a request in, or says why not, as the first step of every
// judgement does. The inputs of the request are not looked at. The error is a
// *refusal.Error, and is written down but for those of nobody that is known.
func (k *Kernel) Admit(ctx context.Context, request Request) (*Admission, error) {
	request.Inputs = nil
	d := k.open(request, ModeCall, nil)
	c := d.calls[0]
	if d.run(ctx, identify, false) {
		d.recordRest(ctx)
		d.report()
		return nil, c.refused
	}
	states := request.Agent != ""
	request.Subject, request.identified = c.subject, nil
	return &Admission{kernel: k, request: request, principal: principalName(c.principal), statesAgent: states, outsidePrincipal: c.outsidePrincipal()}, nil
}

// AdmitQuery lets a request in that brings no completion, such as one that asks how a call
// stands. Nothing of it but its credential and its caller is looked at, and a refusal is
// not written down. The error is a *refusal.Error.
func (k *Kernel) AdmitQuery(ctx context.Context, request Request) (*Admission, error) {
	c, err := k.admitRequest(ctx, request, nil)
	if err != nil {
		return nil, err
	}
	request.Inputs, request.Subject, request.identified = nil, c.subject, nil
	return &Admission{kernel: k, request: request, principal: principalName(c.principal)}, nil
}

// Recheck tells whether the request may still be answered: its credential, that this is
// still the same caller's, and the agent. The error is a *refusal.Error.
func (a *Admission) Recheck(ctx context.Context) error {
	_, err := a.kernel.admitRequest(ctx, a.request, a)
	return err
}

// admitRequest identifies the caller of a request that brings no completion.
func (k *Kernel) admitRequest(ctx context.Context, request Request, admission *Admission) (*judgement, error) {
	request.Inputs = nil
	o := k.open(request, ModeCall, admission).identify(ctx)
	if o.refused() {
		return nil, o.decision.calls[0].refused
	}
	return o.decision.calls[0].judgement, nil
}

// Subject is for whom, and where, the request was let in.
func (a *Admission) Subject() Subject { return a.request.Subject }

// Principal names who asks; empty where no credentials are asked for.
func (a *Admission) Principal() string { return a.principal }

// AgentRequired tells whether a call must itself state its agent, by the configuration
// of now.
func (a *Admission) AgentRequired() bool {
	return a.kernel != nil && a.kernel.config.Load().AgentRequired
}

// ToolName returns the registry's name for one of OpenAI's alphabet, by the
// configuration of now. A name that stands for no tool is not ok.
func (a *Admission) ToolName(wire string) (name string, ok bool) {
	if a.kernel == nil {
		return "", false
	}
	return a.kernel.config.Load().openAINames.Name(wire)
}

// ToolName returns the registry's name for one of an alphabet, by the configuration of
// now. A name that stands for no tool is not ok.
func (k *Kernel) ToolName(of Alphabet, wire string) (name string, ok bool) {
	return k.config.Load().namesFor(of).Name(wire)
}

// Tools lists what the agent may use now, as Kernel.Tools does.
func (a *Admission) Tools() ([]Tool, error) {
	if a.kernel == nil {
		return nil, notAdmitted()
	}
	c, err := a.kernel.admitRequest(context.Background(), a.request, a) // nothing in it waits
	if err != nil {
		return nil, err
	}
	return c.tools()
}

// Tool returns one of the tools that Tools would list; nil where it would not. Who
// asks is not asked again for that: whatever is done with it is judged anew.
func (a *Admission) Tool(name string) (*Tool, error) {
	if a.kernel == nil {
		return nil, notAdmitted()
	}
	c := &judgement{kernel: a.kernel, config: a.kernel.config.Load(), subject: a.request.Subject}
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

// Judge judges inputs of the request, all or none, as Kernel.Judge does. A
// decision of ModeCall is to be executed, one of ModeEnforce to be handed over.
func (a *Admission) Judge(ctx context.Context, mode Mode, inputs ...Input) *Decision {
	return a.Open(ctx, mode, inputs...).Judge(ctx)
}

// Stream starts the judgement of a completion that will arrive in pieces, as
// Kernel.Stream does. With prose it is the text of an answer whose calls come
// natively (see Input.Prose); Close takes them.
func (a *Admission) Stream(ctx context.Context, mode Mode, prose bool) (*Stream, error) {
	if a.kernel == nil {
		return nil, notAdmitted()
	}
	return a.kernel.stream(ctx, a.request, mode, a, prose)
}

// notAdmitted refuses what was not made by Admit.
func notAdmitted() *refusal.Error {
	return refusal.At(refusal.Identity, refusal.Internal, nothingDone).WithCause(errors.New("an admission that Admit did not make"))
}
