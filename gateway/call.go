package gateway

import (
	"time"

	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/gateway/hook/window"
	"github.com/callgate/callgate/gateway/hooks"
	"github.com/callgate/callgate/gateway/journal"
	"github.com/callgate/callgate/gateway/trace"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/deadline"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// A call is two values, one in the other. A judgement holds the caller, the place and the
// configuration, which the inputs of one request share. A call is one of these inputs, with
// the findings of the checks. Package gateway/calls handles a call that has passed them.

// judgement is the state that the inputs of one request share. But for askedFor and past, it does not change
// once its caller is known.
type judgement struct {
	kernel *Kernel
	config *Config
	mode   Mode
	// admission is the admission of the request; nil if this judgement admits it.
	admission *Admission
	// identified is the caller as it was identified before its request was read; nil
	// where this judgement does so.
	identified *identified
	// principal is the caller; nil if no credentials are required, or if the credential was
	// not recognised. authErr is the reason of the failed authentication.
	principal *identity.Principal
	authErr   error
	subject   Subject
	paid      bool             // its calls were charged when they were judged before
	checked   bool             // no call is made: nothing is counted
	scope     scope            // of nothing where nothing is judged
	askedFor  map[string]*Call // by the digests of what people would approve, its calls that need them
	past      *past            // nil: none of its calls uses threads
	request   Request          // without its inputs
}

// Call is one input on its way through the checks, with their findings. Other packages can
// read and record it, and cannot change it.
type Call struct {
	*judgement
	id      string // the call id
	input   Input
	digests digests
	started time.Time    // when its judgement began
	trace   *trace.Trace // its span; nil where it is not traced
	times   trace.Times
	refused *refusal.Error

	// What the stages find, in their order.
	parsed     parsed
	tool       *registry.Entry
	elicited   elicited
	permission permission
	project    *policy.Project
	hooks      hooked
	approvals  approvals
	inPast     *inPast // nil: it uses no threads
	held       held

	passed  PassedCall       // shown by its report
	running deadline.Context // room for that of its tool's run
}

// digests are those of a call, in hex, each once something has needed it.
type digests struct {
	journal.Digests
	input     string // the completion, or the arguments of a native call, with its request state and answers
	arguments string
	answers   string // its request state and answers
}

// parsed is what the stage parse finds, and what it reads beside the input.
type parsed struct {
	parser.Result
	stream  *parser.Stream // of a completion that came in pieces
	reread  *parser.Result // of stream, where the completion was judged before
	decoded map[string]any // the arguments, once something has needed them decoded
}

// elicited is what a call answers its tool, which has asked.
type elicited struct {
	answers    *elicit.Answers    // passed to its tool beside the arguments
	unanswered *elicit.Unanswered // the questions of its tool that it does not answer
}

// permission is what the stage permission finds.
type permission struct {
	// decision is what the policy says of the call; the zero value where it is not permitted,
	// and where every call of the tool is without anybody being asked.
	decision policy.Decision
	// rows are the policy rows that decided, as file:line; of a decision that holds for every
	// call of the tool, which unconditional says, they are found once they are recorded.
	rows          []string
	unconditional bool
	rejudged      bool           // the policy is asked once more, and does not count the call again
	outlook       policy.Outlook // of a call that is foreseen
}

// hooked is what hooks see of a call, or of a text, and what they leave.
type hooked struct {
	names      []string       // of those that denied, redacted or labelled it
	withheld   bool           // it has what hooks deny: it is written nowhere
	unredacted []byte         // the arguments as the model wrote them, where hooks have redacted parsed
	texts      *hook.Texts    // the hooks that see the text; nil where there are none, or it is no text
	seen       bool           // they have seen it
	pieces     []window.Piece // what they left of it, where it was not all
	results    *hooks.Results // at what its tool says; nil where none are, or nothing was said
}

// approvals is what people say of a call, or are asked.
type approvals struct {
	using      []string        // the approvals and grants by which people allow it
	spends     []string        // approvals that its run answers, and that it does not need
	usesRepeat approval.Repeat // the idempotency key of the approval by which it passes
	askRules   []string        // the rules by which people are asked, where they are
	unaskable  bool            // it needs people whom nobody can ask
}

// held is what the limiter, the journal and the store have of a call.
type held struct {
	lease    ratelimit.Lease
	recorded bool        // its decision is in the journal
	key      string      // its idempotency key
	stored   *store.Call // as the store has it, where Restore made the call
}

// open starts a decision: it pins the configuration, and identifies the caller unless that
// was done under the same configuration already.
func (k *Kernel) open(request Request, mode Mode, admission *Admission) *Decision {
	return k.openBy(k.config.Load(), request, mode, admission)
}

func (k *Kernel) openBy(config *Config, request Request, mode Mode, admission *Admission) *Decision {
	d := &Decision{Digest: config.Digest, mode: mode}
	inputs := request.Inputs
	var times trace.Times
	d.judgement, times = k.judgementOf(config, &request, mode, admission)
	if len(inputs) == 0 {
		inputs = make([]Input, 1) // nothing is an empty completion
	}
	for _, in := range inputs {
		d.add(in, times)
	}
	return d
}

// judgementOf begins a judgement, without the inputs of its request. The times are those of what was done for it before.
func (k *Kernel) judgementOf(config *Config, request *Request, mode Mode, admission *Admission) (j judgement, times trace.Times) {
	before := k.consumeIdentified(request)
	j.kernel, j.config, j.mode, j.admission, j.identified = k, config, mode, admission, before
	j.paid = admission != nil && admission.paid
	if before != nil && before.config == config {
		j.principal = before.principal
	} else {
		j.principal, j.authErr = config.principal(request.Credential)
	}
	j.subject = config.subject(*request, j.principal)
	j.scope = config.resolve(j.subject, j.principal)
	j.config = admission.toolsOver(config)
	j.request = *request
	j.request.Inputs = nil
	if before != nil {
		times.Add(refusal.Identity, before.took)
	}
	return j, times
}

// add adds an input of the request, for which some stages took time already.
func (d *Decision) add(in Input, times trace.Times) {
	c := &d.first
	if c.judgement != nil {
		c = &Call{}
	} else {
		d.calls = d.oneCall[:0]
	}
	deps := &d.judgement.kernel.deps
	c.judgement, c.id, c.input, c.started, c.times = &d.judgement, deps.NewID(), in, deps.Now(), times
	c.trace = d.judgement.kernel.trace(c)
	d.calls = append(d.calls, c)
}

// ID is the call's own id.
func (c *Call) ID() string { return c.id }

// Tool is the tool that is called; nil if the call was restored and its tool has changed
// since.
func (c *Call) Tool() *registry.Entry { return c.tool }

// ToolName is the name of the tool in the registry. Messages have WrittenName.
func (c *Call) ToolName() string { return c.parsed.Name }

// CallsBack reports whether the tool only accepts the call, and sends its result later.
func (c *Call) CallsBack() bool { return c.tool.SharedRun().Type == runCallback }

// Started is when the judgement of the call began.
func (c *Call) Started() time.Time { return c.started }

// arguments decodes the arguments, once: most calls pass every check without that.
func (c *Call) arguments() map[string]any {
	if c.parsed.decoded == nil {
		c.parsed.decoded = parser.DecodeObject(c.parsed.Arguments)
	}
	return c.parsed.decoded
}

// Dialogue is with the caller; it may be nil.
func (c *Call) Dialogue() *elicit.Dialogue { return c.input.Dialogue }

// Trace is the span of the call; nil once the call has ended, or where it is not traced.
func (c *Call) Trace() *trace.Trace { return c.trace }

// report returns the report on one input. If another input is refused, a call is refused
// too: the checks did not finish with it, and it has no refusal of its own.
func (c *Call) report(refused bool) Report {
	r := Report{
		CallID: c.id, Verdict: VerdictCall, Refusal: c.refused,
		Tool: c.parsed.Name, HasTool: c.parsed.HasName, Unanswered: c.elicited.unanswered,
	}
	if c.refused != nil && c.parsed.Arguments != nil {
		r.ArgumentsSHA256 = c.argumentsDigest()
	}
	switch {
	case c.refused != nil:
		r.Verdict = VerdictRefused
	case c.parsed.Kind == parser.Text:
		if r.Verdict = VerdictText; c.hooks.seen || !hasTextHooks(c) {
			r.Text, r.Pieces = c.parsed.Text, c.hooks.pieces
		}
	case refused:
		r.Verdict = VerdictRefused
	default:
		c.passed = PassedCall{
			Tool: c.tool.Name(), Version: c.tool.Version(), Arguments: c.parsed.Arguments,
			Agent: c.subject.Agent, Workspace: c.subject.Workspace, Project: c.subject.Project,
		}
		r.Call = &c.passed
		r.Approval = c.permission.decision.Asks
	}
	return r
}
