package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/policy/condition"
)

// The bounds of the table of verdicts. The file bounds it too: a name that no row
// tells apart from others shares their entry.
const (
	maxAnswers   = 1 << 16
	maxEnforcers = 1 << 12
)

// errNoPolicy is the answer of a Policy that Load did not make.
var errNoPolicy = errors.New("policy: no policy is loaded")

// Policy is one loaded policy file. It never changes, so what it has answered
// once holds for its life; a reload makes a new one. Safe for concurrent use.
// The zero value and nil permit nothing.
type Policy struct {
	rules  []*rule
	grants []*grant
	index  *index
	reads  condition.Reads // of all conditions

	mu        sync.RWMutex
	settled   verdictCache // verdicts that hold whatever the arguments are
	enforcers verdictCache // verdicts on conditions
}

// verdictCache keeps at most a number of verdicts.
type verdictCache struct {
	verdicts map[class]verdict
	limit    int
}

func newVerdictCache(most int) verdictCache {
	return verdictCache{verdicts: map[class]verdict{}, limit: most}
}

// add adds a verdict, in place of any other where the table is full.
func (t *verdictCache) add(c class, v verdict) {
	if len(t.verdicts) >= t.limit {
		for other, evicted := range t.verdicts {
			if evicted.decisionCount != nil {
				evicted.decisionCount.flush()
			}
			delete(t.verdicts, other)
			break
		}
	}
	t.verdicts[c] = v
}

// Request is one call as far as permission looks at it. Arguments hold what
// passed the schema: numbers as encoding/json.Number, objects as
// map[string]any, arrays as []any; they are read during Permit, never kept. Past is what the call's
// thread and caller have done before, with the call itself; conditions that ask for it fail where it is nil.
type Request struct {
	Agent, Workspace, Project, Tool string
	Arguments                       map[string]any
	Past                            *history.View
}

// Decision is the answer to a request. Its lists are shared and must not be changed.
type Decision struct {
	// Allowed says that the rows permit the call, though it may only be made once it was
	// approved: see Asks.
	Allowed bool
	// Asks names the rules by which people must approve the call, sorted, each once; it is
	// empty where nobody is asked, and where the call is not allowed.
	Asks []string
	// Row is the row that decided: the one that denies, or else the first that asks, or else
	// the first that allows. It is nil where no row matched (which denies).
	Row *Row
	// Rows are the places of the rows that decided, as file:line: as Row, but for all rows that
	// ask.
	Rows []string
	// Reads is, of a call that is not allowed, what is read of the past by the conditions that decided: that of the row which
	// denies, or, where no row permits, those of the rows that allow which another past might have met.
	Reads condition.Reads
	// Unknown says that such a condition failed since what it reads is not known: history.ErrUnknown.
	Unknown bool
}

// Reach reports whether an agent could ever use a tool in a project.
type Reach int

// The answers, the strictest first. A row that asks counts as an allow row.
const (
	// Never: no allow row matches, or a deny row without a condition does.
	Never Reach = iota
	// OnConditions: it depends on the arguments, and some calls may have to be approved.
	OnConditions
	// Asks: every call is permitted as for Always, but a row that asks matches, so all or some
	// of them have to be approved.
	Asks
	// Always: some allow row has no condition, and no row matches that denies or asks.
	Always
)

// String is the name in lower case.
func (r Reach) String() string {
	switch r {
	case Always:
		return "always"
	case Asks:
		return "asks"
	case OnConditions:
		return "on conditions"
	default:
		return "never"
	}
}

// verdict is the answer of the rows for one class of requests. The zero value
// denies: no row matches.
type verdict struct {
	reach         Reach
	decision      Decision       // where there is no enforcer
	decisionCount *decisionCount // of decision; nil: no row matches
	enforcer      *enforcer      // only if the decision depends on the arguments or on the past
}

// Permit decides one request. A request with an empty, starred or impossible
// name is denied without a row. An error means that nothing was decided: the
// caller refuses.
func (p *Policy) Permit(ctx context.Context, r Request) (Decision, error) {
	return p.permit(ctx, r, false)
}

// PermitCounted is Permit for a call that is made. Counts tells what it adds.
func (p *Policy) PermitCounted(ctx context.Context, r Request) (Decision, error) {
	return p.permit(ctx, r, true)
}

func (p *Policy) permit(ctx context.Context, r Request, counted bool) (d Decision, err error) {
	defer safe.RecoverZero(&d, &err)
	at := domain{r.Workspace, r.Project}
	if p == nil || p.index == nil {
		return Decision{}, errNoPolicy
	}
	if unmatchable(r.Agent, at, r.Tool) != "" {
		return Decision{}, nil
	}
	v, err := p.verdict(r.Agent, at, r.Tool)
	if err != nil {
		return Decision{}, err
	}
	if v.enforcer == nil {
		if counted && v.decisionCount != nil {
			v.decisionCount.n.Add(1)
		}
		return v.decision, nil
	}
	j := newEvaluation(ctx, r)
	j.counted = counted
	if d, err = v.enforcer.enforce(j); err != nil {
		return Decision{}, err
	}
	if err := ctx.Err(); err != nil {
		return Decision{}, fmt.Errorf("policy: interrupted: %w", err)
	}
	return d, nil
}

// Reach reports whether the agent could ever use the tool there. On an error the
// answer is Never.
func (p *Policy) Reach(agent, workspace, project, tool string) (reach Reach, err error) {
	defer safe.RecoverZero(&reach, &err)
	at := domain{workspace, project}
	if p == nil || p.index == nil {
		return Never, errNoPolicy
	}
	if unmatchable(agent, at, tool) != "" {
		return Never, nil
	}
	v, err := p.verdict(agent, at, tool)
	if err != nil {
		return Never, err
	}
	return v.reach, nil
}

// Reads is what the policy reads of the past to decide on calls of a tool by an agent in a project: nothing where
// the decision is the same whatever the past is. Its list is shared and must not be changed.
func (p *Policy) Reads(agent, workspace, project, tool string) (reads condition.Reads, err error) {
	defer safe.RecoverZero(&reads, &err)
	at := domain{workspace, project}
	if p == nil || p.index == nil {
		return condition.Reads{}, errNoPolicy
	}
	if unmatchable(agent, at, tool) != "" {
		return condition.Reads{}, nil
	}
	v, err := p.verdict(agent, at, tool)
	if err != nil || v.enforcer == nil {
		return condition.Reads{}, err
	}
	return v.enforcer.reads, nil
}

// unmatchable says why no row can ever match these names; "" when one may.
func unmatchable(agent string, at domain, tool string) string {
	switch {
	case agent == "" || at.workspace == "" || at.project == "" || tool == "":
		return "an empty agent, workspace, project or tool matches nothing"
	case isRole(agent):
		return "an agent named like a role matches nothing"
	case strings.IndexByte(at.workspace, '/') >= 0 || strings.IndexByte(at.project, '/') >= 0:
		return "a workspace or project with a slash in its name matches nothing"
	case strings.IndexByte(agent, '*') >= 0 || strings.IndexByte(tool, '*') >= 0 ||
		strings.IndexByte(at.workspace, '*') >= 0 || strings.IndexByte(at.project, '*') >= 0:
		return "a name with a star matches nothing"
	}
	return ""
}

// verdict finds or makes the verdict of a request's class.
func (p *Policy) verdict(agent string, at domain, tool string) (verdict, error) {
	c, canonical, ok := p.index.classOf(agent, at, tool)
	if !ok {
		return verdict{}, nil
	}
	p.mu.RLock()
	v, known := p.settled.verdicts[c]
	if !known {
		v, known = p.enforcers.verdicts[c]
	}
	p.mu.RUnlock()
	if known {
		return v, nil
	}
	v, err := p.decide(agent, canonical, tool)
	if err != nil {
		return verdict{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if v.enforcer != nil {
		p.enforcers.add(c, v)
	} else {
		p.settled.add(c, v)
	}
	return v, nil
}

// decide makes the verdict of one class: casbin decides, over the rows that the index has found, and
// must agree with reachOf on the answer.
func (p *Policy) decide(agent string, at domain, tool string) (verdict, error) {
	rules, grants := p.index.candidates(agent, at, tool)
	reach := reachOf(rules)
	if len(rules) == 0 {
		return verdict{}, nil
	}
	e, err := newEnforcer(agent, at, tool, rules, grants)
	if err != nil {
		return verdict{}, err
	}
	// With the conditions of deny rows unmet, and of rows that permit met only where
	// they matter, the answer is known.
	d, err := e.enforce(&evaluation{probe: true, allowsMet: reach == OnConditions})
	if err != nil {
		return verdict{}, err
	}
	if d.Allowed != (reach != Never) {
		return verdict{}, errEnforcer
	}
	if reach == OnConditions || reach == Asks && slices.ContainsFunc(rules, asksOnCondition) {
		return verdict{reach: reach, enforcer: e}, nil
	}
	return verdict{reach: reach, decision: d, decisionCount: countDecision(&d, rules)}, nil
}

// reachOf reads the answer to "could this ever be allowed" off the rows that
// match when conditions are ignored.
func reachOf(rules []*rule) Reach {
	reach := Never
	var denies, asks bool
	for _, r := range rules {
		asks = asks || r.Effect == Ask
		switch {
		case r.Effect == Deny && r.condition == nil:
			return Never
		case r.Effect == Deny:
			denies = true
		case r.condition == nil:
			reach = Always
		case reach == Never:
			reach = OnConditions
		}
	}
	switch {
	case reach == Always && denies:
		return OnConditions
	case reach == Always && asks:
		return Asks
	}
	return reach
}

func asksOnCondition(r *rule) bool { return r.Effect == Ask && r.condition != nil }

// AskingRows lists the rows that ask, in the order of their lines.
func (p *Policy) AskingRows() []Row {
	var rows []Row
	for _, r := range p.rules {
		if r.Effect == Ask {
			rows = append(rows, r.Row)
		}
	}
	return rows
}

// Terms lists the terms that conditions read of the past, each once, in the order of the file. The list is shared and must
// not be changed.
func (p *Policy) Terms() []history.Term {
	if p == nil {
		return nil
	}
	return p.reads.Terms
}

// ReadsLabels reports whether a condition reads the labels of threads.
func (p *Policy) ReadsLabels() bool { return p != nil && p.reads.Labels }

// Rows returns the p rows, in the order of the file. The result is the caller's.
func (p *Policy) Rows() []Row {
	if p == nil {
		return nil
	}
	rows := make([]Row, len(p.rules))
	for i, r := range p.rules {
		rows[i] = r.Row
	}
	return rows
}
