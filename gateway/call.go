package gateway

import (
	"slices"
	"time"

	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
)

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
	scope     *scope // nil where the call is not judged here
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
	stored        *storedCall // what the store has of it, where this is all that is known
	priorAttempts int         // how often it was dispatched before
	expired       bool        // its tool has not answered by the time that it had promised to
	endedByOther  bool        // another has ended it before
	metadata      Metadata    // kept of its end beside the result
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

// open starts a decision: it pins the configuration, and asks who asks, unless that
// was judged by the same configuration already.
func (k *Kernel) open(request Request, mode Mode, admission *Admission) *Decision {
	config := k.config.Load()
	d := &Decision{Digest: config.Digest, mode: mode}
	before := k.consumeIdentified(&request)
	all := call{kernel: k, config: config, mode: mode, admission: admission, identified: before, request: &request}
	if before != nil {
		all.times.add(refusal.Identity, before.took)
	}
	if before != nil && before.config == config {
		all.principal = before.principal
	} else {
		all.principal, all.authErr = config.principal(request.Credential)
	}
	all.subject = config.subject(request, all.principal)
	all.scope = config.resolve(all.subject, all.principal)
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
		subject: c.subject, scope: c.scope, request: c.request, times: slices.Clone(c.times), input: in,
		id: c.kernel.deps.NewID(), started: c.kernel.deps.Now(),
	}
	b.trace = c.kernel.trace(b)
	return b
}

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
