package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/consent"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/internal/deadline"
	"github.com/callgate/callgate/internal/decimal"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/store"
)

// asked is what a configuration asks of the past.
type asked struct {
	terms  *history.Terms
	labels *labels          // nil: no condition reads them
	beside *policy.Policy   // what it asks is kept as well; nil: nothing
	fresh  *history.Keeping // by which all terms are known of a thread that has done nothing
}

// threadLimits are those of threads; nil: there are none.
func (s *Config) threadLimits() *ratelimit.Threads {
	if s.Limits == nil {
		return nil
	}
	return s.Limits.Threads
}

// newAsked returns what the conditions and the limits of a configuration ask of the past; nil: nothing.
func newAsked(s *Config) (*asked, error) {
	terms := s.Policy.Terms()
	for _, term := range s.Beside.Terms() {
		if !slices.ContainsFunc(terms, func(t history.Term) bool { return t.String() == term.String() }) {
			terms = append(slices.Clip(terms), term)
		}
	}
	readLabels := s.Policy.ReadsLabels() || s.Beside.ReadsLabels()
	if len(terms) == 0 && !readLabels && s.threadLimits() == nil {
		return nil, nil
	}
	a := &asked{beside: s.Beside}
	if readLabels {
		a.labels = newLabels(s.Tools, s.Threads.DefaultLabels, s.Hooks)
	}
	var err error
	if a.terms, err = history.NewTerms(terms, policy.Covers); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	a.terms.Labels = readLabels
	a.fresh = (*history.Keeping)(nil).With("", a.terms, time.Time{})
	return a, nil
}

// Terms are what conditions of the policy, and of one beside it, ask of the past. uses reports whether they, or the limits, ask anything.
func (s *Config) Terms() (terms *history.Terms, uses bool, err error) {
	a, err := newAsked(s)
	if a == nil {
		return nil, false, err
	}
	return a.terms, true, nil
}

// uses reports whether a tool uses threads, for an agent in a place: a row that may be about it reads the past, a
// condition counts it, or it adds labels that conditions read.
func (a *asked) uses(rows *policy.Policy, of Subject, tool *registry.Entry) (bool, error) {
	if a == nil {
		return false, nil
	}
	if a.labels != nil && a.labels.adds(of.Agent, tool) || a.terms.Counts(tool.Name()) {
		return true, nil
	}
	reads, err := rows.Reads(of.Agent, of.Workspace, of.Project, tool.Name())
	if err == nil && reads.None() && a.beside != nil {
		reads, _ = a.beside.Reads(of.Agent, of.Workspace, of.Project, tool.Name()) // who cannot say it is not served
	}
	return !reads.None(), err
}

// needsThread reports whether a tool that uses threads cannot do without one: more is asked than what its caller has done.
func (a *asked) needsThread(rows *policy.Policy, of Subject, tool *registry.Entry) (bool, error) {
	ofThread := func(t history.Term) bool { return !t.Caller }
	if rows.ReadsLabels() && a.labels.adds(of.Agent, tool) || slices.ContainsFunc(rows.Terms(), func(t history.Term) bool {
		return ofThread(t) && policy.Covers(t.Tool, tool.Name())
	}) {
		return true, nil
	}
	reads, err := rows.Reads(of.Agent, of.Workspace, of.Project, tool.Name())
	return reads.Labels || slices.ContainsFunc(reads.Terms, ofThread), err
}

// past is the past of the thread and of the caller of an answer, and what its calls add to it. It is made by the first
// of its calls that uses threads.
type past struct {
	of   store.ThreadKeys
	kept history.Past
	// decided is what the calls were reserved on, or refused by then: the past may have moved since it was read.
	decided history.Past
	secret  *history.Secret // of another kernel, that has kept it; nil: of this one
	calls   []*Call         // that use threads, in the order of the answer
	// stale says that the arguments of a call were redacted since the conditions of others were evaluated.
	stale   bool
	settled bool // the calls were reserved, or refused
	moved   bool // conditions were evaluated again
	// old says that conditions have only read what the ledger has known last: others may have changed it.
	old bool
	// reread says that it was read again since.
	reread bool

	// Room for those of the ledger, for a first call, and for what it adds.
	reading, reserving deadline.Context
	firstCall          [1]*Call
	first              inPast
	firstAdds          [1]history.Adds
}

// inPast is a call with what it adds.
type inPast struct {
	own      history.Adds
	saw      []string
	lacks    bool           // conditions have asked what is not kept
	refused  error          // at the reservation of its answer
	asksAnew bool           // since people are asked by a rule that was not asked before
	reserved store.Reserved // what it has added, with the labels that the conversation has brought
	deniedBy string         // labels, counts, results or unknown: what of the past denies the call
	undone   bool
}

// keys name what is kept of the thread of the request, and of the caller where anybody counts what it does.
func (c *judgement) keys() store.ThreadKeys {
	scope := c.storeScope()
	named := store.ThreadOf
	if c.config.threadLimits() != nil || c.config.asked != nil && c.config.asked.terms.OfCallers() {
		named = store.KeysOf
	}
	root := cmp.Or(c.request.Thread, c.request.Session)
	if len(c.request.Ancestors) > 0 {
		root = c.request.Ancestors[0]
	}
	switch {
	case c.request.ledger != "":
		of := named(scope, "")
		of.Thread = c.request.ledger
		return of
	case c.principal != nil && c.principal.OneThread: // in whatever project it acts
		of := named(scope, "")
		of.Thread = store.ThreadOf(store.Scope{Principal: scope.Principal}, "all").Thread
		return of
	case root != "":
		return named(scope, "thread "+root)
	case c.config.Threads.ShareUnnamed:
		return named(scope, "unnamed")
	}
	return named(scope, "")
}

// storedLedger is the ledger as the store has to keep it: of a call that uses threads.
func (c *Call) storedLedger() string {
	if c.inPast == nil {
		return ""
	}
	return c.past.of.Thread
}

// readPast reads, for a call that uses threads, what its thread and its caller have done: once for all calls of the
// answer.
func (c *Call) readPast(ctx context.Context) error {
	uses, err := c.config.asked.uses(c.config.Policy, c.subject, c.tool)
	if err != nil || !uses && (c.checked || c.config.threadLimits() == nil) {
		return err
	}
	of := c.keys()
	if !uses && of.Thread == "" {
		return nil // it has no thread in which it could be bounded
	}
	if of.Thread == "" && !c.checked {
		if needs, err := c.config.asked.needsThread(c.config.Policy, c.subject, c.tool); needs || err != nil {
			return cmp.Or(err, error(refuse.ThreadRequired(c.WrittenName())))
		}
	}
	p := c.past
	if p == nil {
		if p, err = c.newPast(ctx, of); err != nil {
			return err
		}
		c.past = p
	}
	if p.kept.Thread != nil && p.kept.Thread.Closed {
		if err := p.readLatest(ctx, c.kernel, c); err != nil {
			return err
		}
		if p.kept.Thread.Closed {
			return refuse.ThreadClosed()
		}
	}
	if c.inPast == nil {
		if c.inPast = &p.first; p.calls == nil {
			p.calls = p.firstCall[:0]
		} else {
			c.inPast = &inPast{}
		}
		p.calls = append(p.calls, c)
	} else {
		p.stale = true
	}
	return c.count(p.kept.Now)
}

// newPast reads the past of an answer. A call that is only checked has a thread that has done nothing.
func (c *Call) newPast(ctx context.Context, of store.ThreadKeys) (*past, error) {
	p := &past{of: of}
	if c.checked {
		now := c.kernel.deps.Now()
		p.kept = history.Past{Thread: history.Begin(now), Caller: history.Begin(now), Keeping: c.config.asked.fresh, Now: now}
		return p, nil
	}
	return p, p.read(ctx, c.kernel, false)
}

func (p *past) read(ctx context.Context, k *Kernel, latest bool) error {
	bounded := p.reading.WithTimeout(ctx, StoreWait)
	defer bounded.Cancel()
	kept, err := askLedger(bounded, k, func(l Ledger) (history.Past, error) { return l.Past(bounded, p.of, latest) })
	if err == nil {
		p.kept, p.old = kept, kept.Old
	}
	return err
}

// readLatest reads a past again that others may have changed, and evaluates the conditions of all calls but one again.
func (p *past) readLatest(ctx context.Context, k *Kernel, but *Call) error {
	if !p.old {
		return nil
	}
	if err := p.read(ctx, k, true); err != nil {
		return err
	}
	p.reread = true
	for _, other := range p.calls {
		if other != but && !other.permission.unconditional && other.permitAgain(ctx, p.kept) != nil {
			p.stale = true // it is refused at the reservation
		}
	}
	return nil
}

// mayBeOld reports whether a call was permitted by a past that others may have changed since, and hooks are to come: one that denies
// would say so in the place of the policy, and is not to see a call that the policy denies.
func mayBeOld(c *Call) bool {
	return c.inPast != nil && !c.permission.unconditional && (c.past.old || c.past.reread) && (hasCallHooks(c) || hasTextHooks(c))
}

// checkLatest is what the policy says of the call by the past as it is now.
func checkLatest(ctx context.Context, c *Call) error {
	p := c.past
	if err := p.readLatest(ctx, c.kernel, c); err != nil {
		return err
	}
	err := c.permitAgain(ctx, p.kept)
	if c.inPast.asksAnew { // they are asked behind the hooks
		c.inPast.asksAnew, err = false, nil
	}
	return err
}

// count finds what the call adds at a time.
func (c *Call) count(now time.Time) (err error) {
	a, own := c.config.asked, &c.inPast.own
	*own = history.Adds{At: now}
	adds := a.terms.Adds
	switch {
	case c.mode == ModeEnforce && c.elicited.answers == nil: // its decision is what a start knows of it, and all that it adds
		adds = a.terms.HandOverAdds
	case c.mode == ModeEnforce:
		adds = a.terms.ResultAdds
	case c.elicited.answers != nil: // it was counted when its tool asked
		adds = nil
	}
	if adds != nil {
		if *own, err = adds(c.tool.Name(), c.countedArguments(), c.keySecret(), now); err != nil {
			return refuse.ThreadsUnavailable(err)
		}
	}
	if c.elicited.answers == nil {
		if c.config.threadLimits() != nil && c.past.of.Thread != "" {
			if own.Equal, err = c.equalDigest(); err != nil {
				return err
			}
		}
	}
	own.Call = c.id
	if a.labels != nil {
		own.Labels = a.labels.of(c.tool, c.arguments)
	}
	if c.past.of.Thread == "" && !c.checked { // a candidate alone asks for its thread
		*own = own.OfCaller()
	}
	return nil
}

// countedArguments are those of the call where a term that counts it reads any; else nil.
func (c *Call) countedArguments() map[string]any {
	if !c.config.asked.terms.NeedArguments(c.parsed.Name) {
		return nil
	}
	return c.arguments()
}

// equalDigest names the call by its tool and the arguments that run: equal ones have the same, however their numbers are written.
func (c *Call) equalDigest() (uint64, error) {
	version, secret := "", c.kernel.deps.Secret()
	switch {
	case c.tool != nil:
		version = c.tool.Version()
	case c.held.stored != nil:
		version = c.held.stored.Task.Version
	}
	plain, _ := withPlainNumbers(c.arguments())
	arguments, err := json.Marshal(plain)
	if err == nil && secret == nil {
		err = errors.New("the key by which calls are named is not known yet")
	}
	if err != nil {
		return 0, refuse.ThreadsUnavailable(err)
	}
	return secret.Digest([]byte(c.parsed.Name), []byte(version), arguments), nil
}

// withPlainNumbers is a value of JSON in which equal numbers are written alike, and whether it is another one.
func withPlainNumbers(v any) (plain any, changed bool) {
	switch v := v.(type) {
	case map[string]any:
		is := v
		for name, member := range v {
			if member, differs := withPlainNumbers(member); differs {
				if !changed {
					is, changed = maps.Clone(v), true
				}
				is[name] = member
			}
		}
		return is, changed
	case []any:
		is := v
		for i, element := range v {
			if element, differs := withPlainNumbers(element); differs {
				if !changed {
					is, changed = slices.Clone(v), true
				}
				is[i] = element
			}
		}
		return is, changed
	case json.Number:
		if d, ok := decimal.Parse(string(v)); ok &&
			(v == "-0" || strings.ContainsAny(string(v), ".eE") || strings.HasSuffix(string(v), "0")) {
			is := json.Number(d.String())
			return is, is != v
		}
	}
	return v, false
}

// keySecret is that of the digests by which the past is kept.
func (c *Call) keySecret() *history.Secret {
	if p := c.past; p != nil && p.secret != nil {
		return p.secret
	}
	return c.kernel.deps.Secret()
}

// view is the past as the conditions of the call may ask it, of what is kept; nil: the call uses no threads.
func (c *Call) view(kept history.Past) *history.View {
	if c.inPast == nil {
		return nil
	}
	kept, before := c.before(kept)
	return history.NewView(c.config.asked.terms, c.keySecret(), kept, before, c.inPast.own)
}

// before is what is kept, with the labels that the conversation has brought, and what the calls of the answer before this one add.
func (c *Call) before(kept history.Past) (_ history.Past, before []history.Adds) {
	for _, other := range c.past.calls {
		if other == c {
			break
		}
		before = append(before, other.inPast.own)
	}
	if brought := c.missing(kept.Thread); kept.Thread != nil && len(brought) > 0 {
		kept.Thread = kept.Thread.Apply(history.Adds{At: kept.Now, Labels: brought}, false)
	}
	return kept, before
}

// missing are the labels that the conversation has brought and that are not kept of its thread.
func (c *judgement) missing(thread *history.State) (labels []string) {
	if c.admission == nil {
		return nil
	}
	kept := thread.Labels()
	for _, name := range c.admission.labels.all() {
		if !slices.ContainsFunc(kept, func(l history.Label) bool { return l.Name == name }) {
			labels = append(labels, name)
		}
	}
	return labels
}

// reserves reports whether what the call adds has to be kept.
func reserves(c *Call) bool { return c.inPast != nil }

// reserve is the last step of the stage permission, behind every other that may refuse: what the calls of the answer add is
// kept, all or none. Where the past has moved since their conditions were evaluated, or hooks have redacted
// arguments, these are evaluated again.
func reserve(ctx context.Context, c *Call) error {
	if p := c.past; !p.settled {
		p.settled = true
		p.reserve(ctx)
	}
	return c.inPast.refused
}

// maxAskedAnew bounds how often people are looked for who have approved what is asked only now.
const maxAskedAnew = 3

// reserve keeps what the calls add, or notes the refusal of one of them.
func (p *past) reserve(ctx context.Context) {
	first := p.calls[0]
	bounded := p.reserving.WithTimeout(ctx, StoreWait)
	defer bounded.Cancel()
	ctx = bounded
	for range maxAskedAnew {
		reserved, err := askLedger(ctx, first.kernel, func(l Ledger) ([]store.Reserved, error) {
			return l.Reserve(ctx, p.of, func(kept history.Past) ([]history.Adds, error) { return p.decide(ctx, kept) })
		})
		refused := slices.ContainsFunc(p.calls, func(c *Call) bool { return c.inPast.refused != nil })
		p.old = p.old && err != nil && !refused
		asks := p.asksAnew()
		switch {
		case asks != nil:
			if asks.inPast.refused = refusal.From(refusal.Approval,
				guarded(ctx, check{stage: refusal.Approval, run: checkApproval}, asks)); asks.inPast.refused != nil {
				return
			}
		case err != nil:
			if !refused {
				first.inPast.refused = err
			}
			return
		default:
			for i, c := range p.calls {
				c.inPast.reserved = reserved[i]
			}
			return
		}
	}
	first.inPast.refused = refuse.ThreadsUnavailable(errors.New("people are asked by other rules each time"))
}

// asksAnew returns a call of which people are asked by a rule by which they were not when it was judged first.
func (p *past) asksAnew() *Call {
	for _, c := range p.calls {
		if c.inPast.asksAnew {
			return c
		}
	}
	return nil
}

// decide is what the calls add to the past as it is kept now. Its error is the refusal of one of them.
func (p *past) decide(ctx context.Context, kept history.Past) ([]history.Adds, error) {
	// What was lost meanwhile may have the turns that there were before.
	moved := p.stale || turnOf(kept.Thread) != turnOf(p.kept.Thread) || turnOf(kept.Caller) != turnOf(p.kept.Caller) ||
		!kept.Keeping.Equal(p.kept.Keeping)
	p.decided = kept
	for _, c := range p.calls {
		c.inPast.refused, c.inPast.asksAnew, c.inPast.own.At = nil, false, kept.Now
		if c.kernel.config.Load().asked != c.config.asked {
			return nil, refuse.ThreadsUnavailable(errors.New("another configuration has taken effect meanwhile"))
		}
	}
	adds := p.firstAdds[:]
	if len(p.calls) > 1 {
		adds = make([]history.Adds, len(p.calls))
	}
	var refused error
	for i, c := range p.calls {
		if kept.Thread != nil && kept.Thread.Closed {
			return nil, refuse.ThreadClosed()
		}
		if moved && !c.permission.unconditional {
			if o := c.kernel.deps.Observer; o != nil && !p.moved {
				p.moved = true
				o.ThreadMoved()
			}
			c.inPast.refused = c.permitAgain(ctx, kept)
			refused = cmp.Or(refused, c.inPast.refused)
		}
		adds[i] = c.inPast.own
	}
	if refused != nil {
		return nil, refused
	}
	if err := p.bound(kept, adds); err != nil {
		return nil, err
	}
	if brought := p.calls[0].missing(kept.Thread); p.of.Thread != "" {
		adds[0].Labels = slices.Concat(adds[0].Labels,
			slices.DeleteFunc(brought, func(name string) bool { return slices.Contains(adds[0].Labels, name) }))
	}
	return adds, nil
}

// bound refuses the first of the calls that is beyond the limits of threads, and counts the thread that they begin.
func (p *past) bound(kept history.Past, adds []history.Adds) error {
	limits := p.calls[0].config.threadLimits()
	if limits == nil || kept.Thread == nil {
		return nil
	}
	calls := kept.Thread.Calls()
	for i, c := range p.calls {
		own := &adds[i]
		if own.Equal == 0 {
			continue // it answers the questions of its tool, and was counted before
		}
		if calls++; limits.Calls > 0 && calls > int64(limits.Calls) {
			c.inPast.refused = refuse.ThreadCalls(limits.Calls)
			return c.inPast.refused
		}
		if c.inPast.refused = c.loops(limits.Equal, kept, adds[:i]); c.inPast.refused != nil {
			return c.inPast.refused
		}
	}
	begins := slices.IndexFunc(adds, func(a history.Adds) bool { return a.Changes(false) })
	if begins < 0 {
		return nil
	}
	p.calls[begins].inPast.refused = p.calls[begins].beginThread(kept, &adds[begins])
	return p.calls[begins].inPast.refused
}

// beginThread counts a thread of which nothing is kept yet, or refuses it.
func (c *Call) beginThread(kept history.Past, adds *history.Adds) error {
	limits := c.config.threadLimits()
	if limits == nil || kept.Thread == nil || kept.Thread.Turn > 0 {
		return nil
	}
	most, per := limits.New.Window()
	if most == 0 {
		return nil
	}
	if kept.Caller.Begun(per, kept.Now) >= most {
		return refuse.NewThreads(most, map[time.Duration]string{time.Minute: "minute", time.Hour: "hour"}[per])
	}
	adds.Begins(per)
	return nil
}

// loops refuses the call where its thread has had it too often, with the calls of its answer before it.
func (c *Call) loops(limits *ratelimit.Equal, kept history.Past, before []history.Adds) error {
	bounds := limits.Of(c.tool.Name())
	if bounds == (ratelimit.EqualCalls{}) {
		return nil
	}
	made, same := kept.Thread.Equals(c.inPast.own.Equal, kept.Now.Add(-limits.Within))
	for i := range before {
		if before[i].Equal == c.inPast.own.Equal {
			made++
		}
	}
	switch {
	case bounds.Outcomes > 0 && same >= bounds.Outcomes:
		return refuse.EqualResults(same)
	case bounds.Calls > 0 && made >= bounds.Calls:
		return refuse.EqualCalls(made)
	}
	return nil
}

func turnOf(s *history.State) uint64 {
	if s == nil {
		return 0
	}
	return s.Turn
}

// permitAgain is what the policy says of the call now. People who are asked only now refuse it.
func (c *Call) permitAgain(ctx context.Context, kept history.Past) error {
	r := c.policyRequest(c.arguments())
	r.Past = c.view(kept)
	d, err := c.config.Policy.Permit(ctx, r)
	if err != nil {
		return err
	}
	c.permission.rows, c.inPast.saw = d.Rows, r.Past.Saw()
	if !d.Allowed {
		return c.denied(&d)
	}
	before := c.permission.decision.Asks
	c.permission.decision = d
	if slices.ContainsFunc(d.Asks, func(rule string) bool { return !slices.Contains(before, rule) }) {
		c.inPast.asksAnew = true
		return consent.RefuseUnapproved(c.WrittenName())
	}
	return nil
}

// denied is the refusal of a call that the policy does not allow with these arguments, or after what was done before.
func (c *Call) denied(d *policy.Decision) error {
	name := c.WrittenName()
	var counts, results *history.Term
	for i := range d.Reads.Terms {
		if t := &d.Reads.Terms[i]; t.Kind == history.Results {
			results = cmp.Or(results, t)
		} else {
			counts = cmp.Or(counts, t)
		}
	}
	by := func(reason string) {
		if c.inPast != nil {
			c.inPast.deniedBy = reason
		}
	}
	switch {
	case d.Unknown:
		by("unknown")
		return refuse.ByUnknown(name)
	case d.Reads.Labels:
		by("labels")
		return refuse.ByLabels(name, c.labelledBy())
	case counts != nil:
		by("counts")
		return refuse.ByCounts(name, counts.Caller)
	case results != nil:
		by("results")
		return refuse.ByResults(name, c.nameOf(results.Tool), results.Keys)
	}
	return refusal.New(refusal.PermissionDenied, fmt.Sprintf(
		"You may use %s here, but not with these arguments. The policy of this project decides, and trying again will not change it.",
		name))
}

// labelledBy is the tool that the labels of the thread come from, as the model knows it; empty where several can have added them,
// and of a tool that labels may refuse as well: the model would try that next.
func (c *Call) labelledBy() string {
	if c.inPast == nil {
		return ""
	}
	for _, saw := range c.inPast.saw {
		if labels, ok := strings.CutPrefix(saw, "thread.labels="); ok && labels != "" {
			tool := c.config.asked.labels.adder(strings.Split(labels, ","))
			if tool == "" {
				return ""
			}
			reads, err := c.config.Policy.Reads(c.subject.Agent, c.subject.Workspace, c.subject.Project, tool)
			if err == nil && !reads.Labels {
				return c.nameOf(tool)
			}
		}
	}
	return ""
}

// ledgerKeys are the keys of the call, also of one that was restored.
func (c *Call) ledgerKeys() store.ThreadKeys {
	switch {
	case c.held.stored == nil && c.past != nil:
		return c.past.of
	case c.held.stored == nil:
		return c.keys()
	}
	of := store.KeysOf(c.held.stored.Scope, "") // its principal is not known any more, only the name
	of.Thread = c.held.stored.Task.Ledger
	return of
}

// recordPast adds to the record of a decision what its call adds, and what its conditions saw.
func (c *Call) recordPast(ctx context.Context, r *audit.Record) error {
	if p := c.inPast; p != nil {
		all := c.past
		if len(p.saw) == 0 || all.readLatest(ctx, c.kernel, nil) == nil {
			r.Saw = p.saw
		}
		r.Ledger = all.of.Thread
		if r.Verdict == audit.ToolCall {
			r.Turn, r.CallerTurn, r.Adds = p.reserved.Turn, p.reserved.Caller, p.reserved.Adds.Texts()
			return nil
		}
	}
	return c.keepBrought(ctx, r)
}

// keepBrought keeps the labels that the conversation has brought, by the record of a decision that adds nothing else.
func (c *Call) keepBrought(ctx context.Context, r *audit.Record) error {
	if c.config.asked == nil || c.admission == nil || !c.admission.labels.unkept() {
		return nil
	}
	of := c.ledgerKeys()
	if of.Thread == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, StoreWait)
	defer cancel()
	reserved, err := askLedger(ctx, c.kernel, func(l Ledger) ([]store.Reserved, error) {
		return l.Reserve(ctx, of, func(kept history.Past) ([]history.Adds, error) {
			adds := history.Adds{At: kept.Now, Labels: c.missing(kept.Thread), Call: c.id}
			if adds.Empty() {
				return nil, nil
			}
			if err := c.beginThread(kept, &adds); err != nil {
				return nil, err
			}
			return []history.Adds{adds}, nil
		})
	})
	var refused *refusal.Error
	switch {
	case errors.As(err, &refused) && refused.Code == refusal.ThreadClosed: // no call in it can read them
	case err != nil && r.Verdict == audit.Refused:
		return nil // it is refused already
	case err != nil:
		return err
	case len(reserved) > 0:
		r.Ledger, r.Turn, r.CallerTurn, r.Adds = of.Thread, reserved[0].Turn, reserved[0].Caller, reserved[0].Adds.Texts()
	}
	c.admission.labels.keep()
	return nil
}

// undo takes away what the call has added, since it is not run, and says so in a record; nil: there is none. What cannot be
// undone goes on counting.
func (c *Call) undo(r *audit.Record) {
	p := c.inPast
	if p == nil || p.undone || p.reserved.Turn == 0 && p.reserved.Caller == 0 {
		return
	}
	p.undone = true
	ctx, cancel := context.WithTimeout(context.Background(), StoreWait)
	defer cancel()
	adds := p.own // the labels that the conversation has brought stay, and so does the thread that is begun
	adds.At = p.reserved.Adds.At
	of := c.past.of
	undone, err := askLedger(ctx, c.kernel, func(l Ledger) (store.Reserved, error) { return l.Release(ctx, of, adds) })
	if err == nil && r != nil && (undone.Turn > 0 || undone.Caller > 0) {
		r.Ledger, r.Turn, r.CallerTurn, r.Undo = of.Thread, undone.Turn, undone.Caller, adds.Texts()
	}
}

// AddResult finds what the result of a call, and the labels that hooks give to what its tool said, add to its thread, before the
// call ends, and adds that, unless the ending does: of calls and threads in one store. With an error the call must not end yet.
func (c *Call) AddResult(ctx context.Context, outcome audit.Outcome, ending *store.Ending, result []byte) (err error) {
	if c.config.asked == nil || ending.Counted.Turn > 0 {
		return nil
	}
	labels, limits, terms := c.hooks.results.Labels(), c.config.threadLimits(), c.config.asked.terms
	counts := outcome == audit.Result && terms.Counts(c.parsed.Name) // a failure is never counted as one
	bounded := outcome == audit.Result && limits != nil && limits.Equal.Of(c.parsed.Name).Outcomes > 0
	if !counts && !bounded && len(labels) == 0 || c.ledgerKeys().Thread == "" {
		return nil
	}
	var adds history.Adds
	if counts {
		adds, err = terms.ResultAdds(c.parsed.Name, c.countedArguments(), c.kernel.deps.Secret(), c.kernel.deps.Now())
	}
	if adds.Labels = labels; err == nil && bounded {
		if adds.Equal, err = c.equalDigest(); err == nil {
			adds.Result = c.kernel.deps.Secret().Digest(result)
		}
	}
	if err != nil {
		return err
	}
	adds.Call = c.id
	if ending.Adds = adds; c.kernel.deps.ThreadsWithCalls {
		return nil
	}
	return c.EndResult(ctx, ending)
}

// EndResult adds what AddResult has found, where it is not added yet.
func (c *Call) EndResult(ctx context.Context, ending *store.Ending) error {
	if ending.Adds.Empty() || ending.Counted.Turn > 0 {
		return nil
	}
	of, adds := c.ledgerKeys(), ending.Adds
	ended, err := askLedger(ctx, c.kernel, func(l Ledger) (store.Reserved, error) { return l.EndResult(ctx, of, adds) })
	if err == nil {
		ending.Adds, ending.Counted = ended.Adds, store.Counted{Turn: ended.Turn, Adds: ended.Adds.Texts()}
	}
	return err
}

// TakeBackResult takes away what AddResult has added for an ending that does not stand: another has ended the call. No record
// has its turn, so a start does not count it either.
func (c *Call) TakeBackResult(ending *store.Ending) {
	if ending.Counted.Turn == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), StoreWait)
	defer cancel()
	of, adds := c.ledgerKeys(), ending.Adds
	_, _ = askLedger(ctx, c.kernel, func(l Ledger) (store.Reserved, error) { return l.Release(ctx, of, adds) })
}

// RecordResult adds to the record of an outcome what the result has added.
func (c *Call) RecordResult(r *audit.Record, of store.Counted) {
	if of.Turn > 0 {
		r.Ledger, r.Turn, r.Adds = c.ledgerKeys().Thread, of.Turn, of.Adds
	}
}

// CloseThread closes the thread that the request names, for tools that use threads.
func (a *Admission) CloseThread(ctx context.Context) error {
	if a.kernel == nil {
		return refuse.NotAdmitted()
	}
	c, err := a.kernel.admitRequest(ctx, a.request, a)
	if err != nil || c.config.asked == nil || len(c.request.Ancestors) > 0 || c.principal != nil && c.principal.OneThread {
		return err // a thread that came from another ends in that one
	}
	return a.kernel.CloseThread(ctx, c.keys(), audit.Record{
		Principal: c.caller(), Agent: c.subject.Agent, Workspace: c.subject.Workspace, Project: c.subject.Project, Thread: c.request.Thread,
		RequestID: c.request.ID, TraceID: c.request.TraceID,
	})
}

// CloseThread closes a thread, and returns once that is in the audit log. The record has the members that say who closes it. With an error
// it is not closed, unless others have changed the thread meanwhile: then it is closed for as long as the process runs, and to be
// closed again.
func (k *Kernel) CloseThread(ctx context.Context, of store.ThreadKeys, r audit.Record) error {
	if k.deps.Journal == nil {
		return refuse.Unrecorded(errors.New("there is no audit log"))
	}
	asking, cancel := context.WithTimeout(ctx, StoreWait)
	defer cancel()
	closing, err := askLedger(asking, k, func(l Ledger) (store.Closing, error) { return l.CloseThread(asking, of) })
	if err != nil {
		return err
	}
	r.Time, r.Event, r.Mode, r.Code = closing.At, audit.Thread, audit.Call, audit.Closed
	r.CallID, r.Ledger, r.Turn, r.OfPrincipal, r.ConfigDigest, r.Replica = of.Thread, of.Thread, closing.Turn, of.Principal, k.Digest(),
		k.deps.Replica
	if err = k.journal.Write(ctx, r); err == nil || closing.Before {
		return err
	}
	undoing, cancel := context.WithTimeout(context.WithoutCancel(ctx), StoreWait)
	defer cancel()
	_, _ = askLedger(undoing, k, func(l Ledger) (struct{}, error) { return struct{}{}, l.ReopenThread(undoing, of, closing.Turn) })
	return err
}

// nameOf is the name of another tool as the model knows it; empty: the model is not to be told of it.
func (c *Call) nameOf(tool string) string {
	if ever, err := c.canReach(tool); err != nil || !ever || tool == c.tool.Name() {
		return ""
	}
	if !c.usesWireName() {
		return tool
	}
	wire, _ := c.nameMap().Wire(tool)
	return wire
}

// RequireThread refuses a request to a model that is offered a tool which uses threads, where it names none.
func (a *Admission) RequireThread(tools []Tool) *refusal.Error {
	if a.kernel == nil {
		return refuse.NotAdmitted()
	}
	config := a.config()
	if config.asked == nil {
		return nil
	}
	p, _ := config.principal(a.request.Credential)
	in := &judgement{kernel: a.kernel, config: config, principal: p, subject: a.request.Subject, request: a.request}
	if in.keys().Thread != "" {
		return nil
	}
	for i := range tools {
		entry, known := config.Tools.Lookup(tools[i].Name)
		if !known {
			continue
		}
		needs, err := config.asked.needsThread(config.Policy, a.request.Subject, entry)
		if err != nil {
			return refusal.From(refusal.Permission, err)
		}
		if needs {
			refused := *refuse.ThreadRequired(tools[i].Name)
			refused.Stage = refusal.Request
			return &refused
		}
	}
	return nil
}
