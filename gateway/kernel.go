package gateway

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/store"
)

// Deps are what a kernel works with beside a configuration, and what outlives
// each. A part that is nil refuses whatever needs it.
type Deps struct {
	Limiter ratelimit.Limiter
	Journal Journal
	Engine  Engine
	Store   Store
	// Observer is told of every judgement and outcome; nil tells nobody.
	Observer Observer
	// Tracer takes the traces of calls; nil traces nothing.
	Tracer Tracer
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// NewID makes an identifier that nobody can guess; nil is crypto/rand.
	NewID func() string
	// RecordContent is how much of a completion the journal is given.
	RecordContent audit.Content
	// Replica names this process in the journal.
	Replica string
	// Node is the same for every process that writes this journal, and for no other.
	Node string
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
	config     atomic.Pointer[Config]
	quarantine atomic.Pointer[map[string]bool] // tools that may not be called
	deps       Deps
	store      safeStore
	pending    pendingWrites
	endings    endings
	// disputes counts what the tools of calls have sent beside the one answer.
	disputes    disputeCounter
	events      eventHub
	cancelSlots chan struct{} // holds a token for each tool that is being told
}

// New returns a kernel that judges by a configuration.
func New(state *Config, parts Deps) (*Kernel, error) {
	if parts.Now == nil {
		parts.Now = time.Now
	}
	if parts.NewID == nil {
		parts.NewID = newID
	}
	k := &Kernel{deps: parts, store: safeStore{parts.Store}, pending: pendingWrites{slots: make(chan struct{}, maxHandedOver)}, cancelSlots: make(chan struct{}, maxCancels)}
	return k, k.Swap(state)
}

// Swap replaces the configuration for judgements that start from now on. One
// that is not whole is an error and changes nothing.
func (k *Kernel) Swap(state *Config) error {
	if err := state.validate(); err != nil {
		return err
	}
	named, err := state.withNameMaps()
	if err != nil {
		return err
	}
	k.config.Store(named)
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
	// waits says that the step may wait for something outside the process, so that
	// a trace shows it.
	waits bool
}

// pipeline is every check, in the order of the contract. Two stages have two
// steps each: an identity that the model claims can only be looked at once the
// completion was read, and whether a tool could ever be used here is asked
// before anything of its schema is shown. What only the answer's own request rules
// out is asked with the envelope.
var pipeline = []check{
	{stage: refusal.Identity, run: identifyCaller, waits: true},
	{stage: refusal.Parse, run: readInput},
	{stage: refusal.Identity, run: checkAgentClaim},
	{stage: refusal.Parse, run: checkEnvelope},
	{stage: refusal.Parse, run: checkConstraints},
	{stage: refusal.Schema, run: findTool},
	{stage: refusal.Permission, run: checkReach},
	{stage: refusal.Schema, run: validateArguments},
	{stage: refusal.Schema, run: checkAnswers},
	{stage: refusal.Permission, run: checkPermission},
	{stage: refusal.Rate, run: charge, takes: true, waits: true},
	{stage: refusal.Workspace, run: checkWorkspace},
	{stage: refusal.Project, run: checkProject},
	{stage: refusal.Project, run: checkBoundary},
	{stage: refusal.Log, run: recordDecision, takes: true, waits: true},
}

// call is one input on its way through the checks, with what they found.
type call struct {
	kernel *Kernel
	config *Config
	mode   Mode
	// admission is what let the request in; nil where this judgement does so.
	admission *Admission
	// identified is the caller as it was identified before its request was read; nil
	// where this judgement does so.
	identified *identified
	// principal is who asks; nil where no credentials are asked for, and where one
	// was not known. unasked is why nobody could say who it is.
	principal *identity.Principal
	authErr   error
	subject   Subject
	input     Input
	stream    *parser.Stream // of a completion that came in pieces
	digest    string         // SHA-256 of it, in hex, once it has ended

	parsed  parser.Result
	tool    *registry.Entry
	args    map[string]any // the decoded arguments
	project *policy.Project
	lease   ratelimit.Lease

	id            string      // the call id
	request       *Request    // that it is part of
	started       time.Time   // when its judgement began
	recorded      bool        // its decision is in the journal
	opened        bool        // the store has it, as one that was not dispatched
	stored        *store.Call // what the store has of it, where this is all that is known
	priorAttempts int         // how often it was dispatched before
	expired       bool        // its tool has not answered by the time that it had promised to
	endedByOther  bool        // another has ended it before
	metadata      []byte      // what is kept of its end beside the result
	onEnded       func()      // is called once the store has said how it ended; may be nil
	trace         *trace      // its span; nil where it is not traced

	answersSHA256 string          // the digest of the state and the answers that it brings
	unanswered    *unanswered     // what it was asked and does not answer
	answers       *answersForTool // what its tool is told beside the arguments
	answerPaths   []answerPath    // that its answers name
	notifier      *notifier       // who hears of its progress and its logs; nil where nobody does

	times   stages
	refused *refusal.Error
}

// Decision is the judgement on the inputs of one request. It is recorded
// already. Execute or HandOver releases it, by its mode; whoever calls neither
// must Release it.
type Decision struct {
	// Reports has one report for each input. Where one is refused, none of the
	// calls may run.
	Reports []Report
	// Digest is of the configuration that judged.
	Digest string

	mode     Mode
	calls    []*call
	consumed atomic.Bool // executed or handed over
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
	return k.open(request, ModeCall, nil).judge(ctx)
}

// Check judges one completion. It takes nothing, writes nothing and executes
// nothing, and its report cannot be executed.
func (k *Kernel) Check(ctx context.Context, request Request) Report {
	d := k.open(request, ModeCall, nil)
	d.dropTraces() // what is only checked is no call
	d.run(ctx, pipeline, true)
	return d.report().Reports[0]
}

// judge takes a decision through the whole pipeline, and writes it down.
func (d *Decision) judge(ctx context.Context) *Decision {
	d.run(ctx, pipeline, false)
	d.recordRest(ctx)
	return d.report()
}

// open starts a decision: it pins the configuration, and asks who asks, unless that
// was judged by the same configuration already.
func (k *Kernel) open(request Request, mode Mode, admission *Admission) *Decision {
	state := k.config.Load()
	d := &Decision{Digest: state.Digest, mode: mode}
	before := k.consumeIdentified(&request)
	all := call{kernel: k, config: state, mode: mode, admission: admission, identified: before, request: &request}
	if before != nil {
		all.times.add(refusal.Identity, before.took)
	}
	if before != nil && before.config == state {
		all.principal = before.principal
	} else {
		all.principal, all.authErr = state.principal(request.Credential)
	}
	all.subject = state.subject(request, all.principal)
	inputs := request.Inputs
	if len(inputs) == 0 {
		inputs = []Input{{}} // nothing is an empty completion
	}
	for _, in := range inputs {
		d.calls = append(d.calls, all.sibling(in))
	}
	return d
}

// sibling is another input of the same request.
func (c *call) sibling(in Input) *call {
	b := &call{
		kernel: c.kernel, config: c.config, mode: c.mode, admission: c.admission, identified: c.identified, principal: c.principal, authErr: c.authErr,
		subject: c.subject, request: c.request, times: slices.Clone(c.times), input: in,
		id: c.kernel.deps.NewID(), started: c.kernel.deps.Now(),
	}
	b.trace = c.kernel.trace(b)
	return b
}

// run takes every input through the checks, one check after the other. At the
// first that refuses any of them it ends, and gives back what was taken.
func (d *Decision) run(ctx context.Context, checks []check, only bool) (refused bool) {
	now := d.calls[0].kernel.deps.Now
	before := now()
	for _, check := range checks {
		if check.takes && only {
			continue
		}
		for _, c := range d.calls {
			if c.finished() {
				continue
			}
			c.refused = refusal.From(check.stage, asCanceled(ctx, check.stage, guarded(ctx, check, c)))
			after := now()
			c.times.add(check.stage, after.Sub(before))
			if check.waits {
				c.trace.add(string(check.stage), before, after, c.refused)
			}
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

// report makes the reports.
func (d *Decision) report() *Decision {
	first := d.firstRefused()
	for _, c := range d.calls {
		r := c.report(first != nil)
		d.Reports = append(d.Reports, r)
		if o := c.kernel.deps.Observer; o != nil {
			refused := r.Refusal
			if refused == nil && r.Verdict == VerdictRefused {
				refused = first
			}
			o.Judged(string(r.Verdict), refused)
			for _, t := range c.times {
				o.Stage(t.stage, t.took)
			}
		}
	}
	d.finishTraces()
	return d
}

// finished tells whether no further check applies: a text is judged once it
// was read.
func (c *call) finished() bool { return c.refused != nil || c.parsed.Kind == parser.Text }

// report is of one input. With others that are refused a call is refused too: it
// was not judged to its end, and has no refusal of its own.
func (c *call) report(refused bool) Report {
	r := Report{
		CallID: c.id, Verdict: VerdictCall, Refusal: c.refused, Stages: c.times.report(c.refused),
		Tool: c.parsed.Name, HasTool: c.parsed.HasName, unanswered: c.unanswered,
	}
	if c.refused != nil && c.parsed.Arguments != nil {
		r.ArgumentsSHA256 = digest(c.parsed.Arguments)
	}
	switch {
	case c.refused != nil:
		r.Verdict = VerdictRefused
	case c.parsed.Kind == parser.Text:
		r.Verdict, r.Text = VerdictText, c.parsed.Text
	case refused:
		r.Verdict = VerdictRefused
	default:
		r.Call = &Call{
			Tool: c.tool.Name(), Version: c.tool.Version(), Arguments: c.parsed.Arguments,
			Agent: c.subject.Agent, Workspace: c.subject.Workspace, Project: c.subject.Project,
		}
	}
	return r
}

// panicError says of a panic what an operator may read: the runtime's own words,
// or only the type of what was thrown, which may hold a value of the model.
func panicError(p any) error {
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
			err = refusal.From(check.stage, panicError(p))
		}
	}()
	return check.run(ctx, c)
}

// ParserOptions returns the bounds of completions that are judged now.
func (k *Kernel) ParserOptions() parser.Options { return k.config.Load().Output }

// Digest returns the digest of the configuration that judges now.
func (k *Kernel) Digest() string { return k.config.Load().Digest }
