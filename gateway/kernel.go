package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
)

// Parts are what a kernel works with beside a configuration, and what outlives
// each. A part that is nil refuses whatever needs it.
type Parts struct {
	Limiter ratelimit.Limiter
	Journal Journal
	Engine  Engine
	Store   Store
	// Observer is told of every judgement and outcome; nil tells nobody.
	Observer Observer
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// NewID makes an identifier that nobody can guess; nil is crypto/rand.
	NewID func() string
	// Record is how much of a completion the journal is given.
	Record audit.Content
	// Replica names this process in the journal.
	Replica string
}

// Observer counts. It must not block, and must be safe for concurrent use.
type Observer interface {
	Judged(verdict string, refused *refusal.Error)
	Stage(stage refusal.Stage, took time.Duration)
	Ended(outcome string, took time.Duration)
	Recorded(durable bool, took time.Duration)
}

// Kernel judges and executes. It is safe for concurrent use.
type Kernel struct {
	state atomic.Pointer[State]
	parts Parts
	owed  debts
	mine  pending
}

// New returns a kernel that judges by a configuration.
func New(state *State, parts Parts) (*Kernel, error) {
	if parts.Now == nil {
		parts.Now = time.Now
	}
	if parts.NewID == nil {
		parts.NewID = func() string { return "call_" + rand.Text() }
	}
	k := &Kernel{parts: parts}
	return k, k.Swap(state)
}

// Swap replaces the configuration for judgements that start from now on. One
// that is not whole is an error and changes nothing.
func (k *Kernel) Swap(state *State) error {
	if err := state.whole(); err != nil {
		return err
	}
	k.state.Store(state)
	return nil
}

// check is one step of the pipeline. Its run refuses by returning an error, and
// can do nothing else.
type check struct {
	stage refusal.Stage
	run   func(context.Context, *call) error
	// takes says that the step takes something or writes something down, so that
	// Check leaves it out.
	takes bool
}

// pipeline is every check, in the order of the contract. Two stages have two
// steps each: an identity that the model claims can only be looked at once the
// completion was read, and whether a tool could ever be used here is asked
// before anything of its schema is shown.
var pipeline = []check{
	{stage: refusal.Identity, run: bind},
	{stage: refusal.Parse, run: read},
	{stage: refusal.Identity, run: claim},
	{stage: refusal.Parse, run: envelope},
	{stage: refusal.Schema, run: find},
	{stage: refusal.Permission, run: reach},
	{stage: refusal.Schema, run: validate},
	{stage: refusal.Permission, run: permit},
	{stage: refusal.Rate, run: take, takes: true},
	{stage: refusal.Workspace, run: enterWorkspace},
	{stage: refusal.Project, run: enterProject},
	{stage: refusal.Project, run: stayWithin},
	{stage: refusal.Log, run: record, takes: true},
}

// call is one input on its way through the checks, with what they found.
type call struct {
	kernel *Kernel
	state  *State
	// principal is who asks; nil where no credentials are asked for, and where one
	// was not known.
	principal *identity.Principal
	subject   Subject
	input     Input
	stream    *parser.Stream // of a completion that came in pieces
	digest    string         // SHA-256 of it, in hex, once it has ended

	parsed  parser.Result
	tool    *registry.Entry
	args    map[string]any // the decoded arguments
	project *policy.Project
	lease   ratelimit.Lease

	id       string    // the call id
	request  *Request  // that it is part of
	started  time.Time // when its judgement began
	recorded bool      // its decision is in the journal
	kept     bool      // the store has it

	times   stages
	refused *refusal.Error
}

// Decision is the judgement on the inputs of one request. It is recorded
// already. Execute releases it; whoever does not execute it must Release it.
type Decision struct {
	// Reports has one report for each input. Where one is refused, none of the
	// calls may run.
	Reports []Report
	// Digest is of the configuration that judged.
	Digest string

	calls    []*call
	executed atomic.Bool
}

// Refusal is the first refusal, or nil.
func (d *Decision) Refusal() *refusal.Error {
	for i := range d.Reports {
		if d.Reports[i].Refusal != nil {
			return d.Reports[i].Refusal
		}
	}
	return nil
}

// Release gives back the concurrency slots that the decision holds. It is safe
// to call twice.
func (d *Decision) Release() {
	for _, c := range d.calls {
		c.lease.Release()
	}
}

// Judge judges the inputs of a request, all or none, and takes from the limits
// what they need. A decision is refused, or holds a slot for each call.
func (k *Kernel) Judge(ctx context.Context, request Request) *Decision {
	return k.judge(ctx, request, false)
}

// Check judges one completion. It takes nothing, writes nothing and executes
// nothing, and its report cannot be executed.
func (k *Kernel) Check(ctx context.Context, request Request) Report {
	return k.judge(ctx, request, true).Reports[0]
}

func (k *Kernel) judge(ctx context.Context, request Request, only bool) *Decision {
	d := k.open(request)
	d.run(ctx, pipeline, only)
	if !only {
		d.note(ctx)
	}
	return d.close()
}

// open starts a decision: it pins the configuration.
func (k *Kernel) open(request Request) *Decision {
	state := k.state.Load()
	principal := state.principal(request)
	d := &Decision{Digest: state.Digest}
	inputs := request.Inputs
	if len(inputs) == 0 {
		inputs = []Input{{}} // nothing is an empty completion
	}
	for _, in := range inputs {
		d.calls = append(d.calls, &call{
			kernel: k, state: state, principal: principal, subject: state.subject(request, principal), input: in,
			id: k.parts.NewID(), request: &request, started: k.parts.Now(),
		})
	}
	return d
}

// run takes every input through the checks, one check after the other. At the
// first that refuses any of them it ends, and gives back what was taken.
func (d *Decision) run(ctx context.Context, checks []check, only bool) (refused bool) {
	now := d.calls[0].kernel.parts.Now
	before := now()
	for _, check := range checks {
		if check.takes && only {
			continue
		}
		for _, c := range d.calls {
			if c.finished() {
				continue
			}
			c.refused = refusal.From(check.stage, guarded(ctx, check, c))
			after := now()
			c.times.add(check.stage, after.Sub(before))
			before = after
			refused = refused || c.refused != nil
		}
		if refused {
			d.Release()
			return true
		}
	}
	return false
}

// close makes the reports.
func (d *Decision) close() *Decision {
	for _, c := range d.calls {
		r := c.report()
		d.Reports = append(d.Reports, r)
		if o := c.kernel.parts.Observer; o != nil {
			o.Judged(string(r.Verdict), r.Refusal)
			for _, t := range c.times {
				o.Stage(t.stage, t.took)
			}
		}
	}
	return d
}

// finished tells whether no further check applies: a text is judged once it
// was read.
func (c *call) finished() bool { return c.refused != nil || c.parsed.Kind == parser.Text }

func (c *call) report() Report {
	r := Report{
		CallID: c.id, Verdict: VerdictCall, Refusal: c.refused, Stages: c.times.report(c.refused),
		Tool: c.parsed.Name, Named: c.parsed.Named,
	}
	switch {
	case c.refused != nil:
		r.Verdict = VerdictRefused
	case c.parsed.Kind == parser.Text:
		r.Verdict, r.Text = VerdictText, c.parsed.Text
	default:
		r.Call = &Call{
			Tool: c.tool.Name(), Version: c.tool.Version(), Arguments: c.parsed.Arguments,
			Agent: c.subject.Agent, Workspace: c.subject.Workspace, Project: c.subject.Project,
		}
	}
	return r
}

// panicked says of a panic what an operator may read: the runtime's own words,
// or only the type of what was thrown, which may hold a value of the model.
func panicked(p any) error {
	var fault runtime.Error
	if err, ok := p.(error); ok && errors.As(err, &fault) {
		return fmt.Errorf("panic: %w", fault)
	}
	return fmt.Errorf("panic of type %T", p)
}

// guarded runs a check; one that panics refuses.
func guarded(ctx context.Context, check check, c *call) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = refusal.From(check.stage, panicked(p))
		}
	}()
	return check.run(ctx, c)
}

// Output returns the bounds of completions that are judged now.
func (k *Kernel) Output() parser.Options { return k.state.Load().Output }

// Digest returns the digest of the configuration that judges now.
func (k *Kernel) Digest() string { return k.state.Load().Digest }
