package ratelimit

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/ratelimit/internal/charge"
)

// LevelKind is a class of limits.
type LevelKind string

// The kinds, in the order in which they are listed.
const (
	LevelAgent     LevelKind = "agent"
	LevelAgentTool LevelKind = "agent_tool"
	LevelTool      LevelKind = "tool"
	LevelProject   LevelKind = "project"
	LevelCaller    LevelKind = "caller"
	LevelSlots     LevelKind = "slots" // calls of an agent at the same time
)

// levelKinds are the kinds by their number: those of charge, and slots behind them.
var levelKinds = [...]LevelKind{charge.Agents: LevelAgent, charge.AgentTools: LevelAgentTool, charge.Tools: LevelTool,
	charge.Projects: LevelProject, charge.Callers: LevelCaller, charge.Kinds: LevelSlots}

// LevelKinds are all kinds.
func LevelKinds() []LevelKind { return slices.Clone(levelKinds[:]) }

// Level is how much of one limit is left.
type Level struct {
	Kind LevelKind
	// Limit is the key of the limit in the limits file: "agents.Analyst", "default".
	Limit string
	// Name is whose it is: an agent, a tool, a workspace or a caller. Of is the tool of an
	// agent, or the project of a workspace.
	Name, Of string
	Budget   Budget        // zero for slots
	Size     int           // the burst, or how many slots there are
	Left     int           // whole tokens, or free slots
	Full     time.Duration // until nothing of a budget is missing
}

// LevelQuery selects levels. Count bounds how many are returned, and must be at least 1.
type LevelQuery struct {
	After string    // Next of the page before; empty: from the beginning
	Kind  LevelKind // empty: all
	Count int
	// Agents and Callers are names that the limits need not have. They are listed as far as a
	// default applies to them.
	Agents, Callers []string
}

// LevelPage is a page of levels, by kind and name.
type LevelPage struct {
	Levels []Level
	Next   string // empty: there are no more
}

// Meter reads limits, and takes nothing of them. Local and the limiter on Redis are Meters.
type Meter interface {
	// Levels returns a page of all limits that are configured and, beyond those, of the
	// buckets that are in use here by a default.
	Levels(ctx context.Context, limits *Limits, q LevelQuery) (LevelPage, error)
}

var _ Meter = (*Local)(nil)

// ErrCursor is the error for a LevelQuery.After that is not of a page.
var ErrCursor = errors.New("ratelimit: not the next of a page")

// LevelRef is a limit whose level is to be read. Slots is 0 for a budget.
type LevelRef struct {
	charge.Charge
	Slots int
}

func (r *LevelRef) kind() LevelKind { return levelKinds[r.Kind] }

func compareRefs(a, b *LevelRef) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Name.First, b.Name.First), strings.Compare(a.Name.Second, b.Name.Second))
}

// cursor is a text for the place of a limit in the order of all.
func (r *LevelRef) cursor() string {
	e := base64.RawURLEncoding
	return string(rune('a'+r.Kind)) + "." + e.EncodeToString([]byte(r.Name.First)) + "." + e.EncodeToString([]byte(r.Name.Second))
}

func readCursor(s string) (*LevelRef, error) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 || len(parts[0]) != 1 || parts[0][0] < 'a' || parts[0][0] > 'a'+byte(charge.Kinds) {
		return nil, ErrCursor
	}
	first, err := base64.RawURLEncoding.DecodeString(parts[1])
	second, err2 := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || err2 != nil {
		return nil, ErrCursor
	}
	r := &LevelRef{}
	r.Kind, r.Name = charge.Kind(parts[0][0]-'a'), charge.Name{First: string(first), Second: string(second)}
	return r, nil
}

// Level is the level of the limit with so many whole tokens, or free slots, left.
func (r *LevelRef) Level(left int, full time.Duration) Level {
	l := Level{Kind: r.kind(), Name: r.Name.First, Of: r.Name.Second, Left: max(left, 0), Full: full}
	if r.Slots > 0 {
		l.Size, l.Limit = r.Slots, "default.concurrency"
		if r.Own {
			l.Limit = "agents." + r.Name.First + ".concurrency"
		}
		return l
	}
	l.Budget, l.Size, l.Limit = r.Budget, r.Budget.Burst, r.Path()
	return l
}

// Extra are names in use that the limits do not have, bounded as charge.BoundedName does.
type Extra struct{ Agents, Callers []string }

// LevelRefs returns a page of the limits that are configured, and of those of more names.
func LevelRefs(limits *Limits, q LevelQuery, in Extra) (page []LevelRef, next string, err error) {
	if limits == nil {
		return nil, "", charge.ErrNoLimits
	}
	var after *LevelRef
	if q.After != "" {
		if after, err = readCursor(q.After); err != nil {
			return nil, "", err
		}
	}
	var all []LevelRef
	add := func(r LevelRef) {
		if (q.Kind == "" || r.kind() == q.Kind) && (after == nil || compareRefs(after, &r) < 0) {
			all = append(all, r)
		}
	}
	agents := map[string]Agent{}
	for _, name := range q.Agents {
		agents[charge.BoundedName(name)] = limits.Agents[name]
	}
	for name, a := range limits.Agents {
		agents[charge.BoundedName(name)] = a
	}
	for _, name := range in.Agents {
		if _, known := agents[name]; !known {
			agents[name] = Agent{}
		}
	}
	for name, a := range agents {
		addAgent(limits, name, a, add)
	}
	for tool, b := range limits.Tools {
		add(budgetRef(charge.Tools, true, charge.Name{First: tool}, b))
	}
	for p, b := range limits.Projects {
		add(budgetRef(charge.Projects, true, charge.Name{First: p.Workspace, Second: p.Name}, b))
	}
	if limits.Caller != nil {
		callers := map[string]bool{}
		for _, name := range q.Callers {
			callers[charge.BoundedName(name)] = true
		}
		for _, name := range in.Callers {
			callers[name] = true
		}
		for name := range callers {
			add(budgetRef(charge.Callers, true, charge.Name{First: name}, *limits.Caller))
		}
	}
	slices.SortFunc(all, func(a, b LevelRef) int { return compareRefs(&a, &b) })
	if len(all) > q.Count {
		all = all[:q.Count]
		next = all[q.Count-1].cursor()
	}
	return all, next, nil
}

// addAgent adds the limits of an agent, as collect has them.
func addAgent(limits *Limits, name string, a Agent, add func(LevelRef)) {
	switch {
	case a.Budget != nil:
		add(budgetRef(charge.Agents, true, charge.Name{First: name}, *a.Budget))
	case limits.Default.Budget != nil:
		add(budgetRef(charge.Agents, false, charge.Name{First: name}, *limits.Default.Budget))
	}
	for tool, b := range a.Tools {
		add(budgetRef(charge.AgentTools, true, charge.Name{First: name, Second: tool}, b))
	}
	slots := cmp.Or(a.Concurrency, limits.Default.Concurrency)
	if slots != nil {
		r := LevelRef{Slots: *slots}
		r.Kind, r.Own, r.Name = charge.Kinds, a.Concurrency != nil, charge.Name{First: name}
		add(r)
	}
}

func budgetRef(k charge.Kind, own bool, n charge.Name, b Budget) LevelRef {
	return LevelRef{Charge: charge.Charge{Kind: k, Own: own, Name: n, Budget: b}}
}
