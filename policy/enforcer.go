package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/policy/condition"
	"github.com/callgate/callgate/policy/internal/lexical"
)

// Model is the casbin model that decides, as `callgate policy model` prints it. covers matches
// the patterns of the file, and condition evaluates the CEL of a row on the call: it also holds
// where the condition of a deny row fails. A row that asks is an allow row to casbin. The value of
// row is the position of a row among those of its enforcer.
const Model = `[request_definition]
r = agent, domain, tool, call

[policy_definition]
p = row, subject, domain, tool, eft

[role_definition]
g = _, _, _

[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))

[matchers]
m = covers(p.domain, r.domain) && covers(p.tool, r.tool) && g(r.agent, p.subject, r.domain) && condition(p.row, r.call)
`

var (
	// errEnforcer is an answer that casbin cannot have meant.
	errEnforcer = errors.New("policy: the enforcer gave an answer that its rows do not give")
	// errCasbin stands for casbin's own error.
	errCasbin = errors.New("policy: casbin failed while enforcing")
)

// parsedModel is Model, which every enforcer gets a copy of.
var parsedModel = sync.OnceValues(func() (model.Model, error) { return model.NewModelFromString(Model) })

// maxKeptAnswers bounds the answers that an enforcer keeps. A row beyond the 64th has no bit in a key.
const (
	maxKeptAnswers = 256
	maxKeyedRows   = 64
)

// enforcer decides one class of requests: a casbin.Enforcer over the rows that an index has
// preselected for it. Its answer depends on which rows apply and on nothing else, so it is kept for
// each such set, and casbin's interpreter runs once for it. Safe for concurrent use.
type enforcer struct {
	rows                []*rule // in the order of their lines
	casbin              *casbin.Enforcer
	agent, domain, tool string
	reads               condition.Reads // by the conditions of the rows

	answers sync.Map // of answer, by a bit for each row that applies
	kept    atomic.Int32
}

// answer is what casbin decided: the position of the deciding row, -1 where none applied.
type answer struct {
	allowed bool
	row     int
}

// newEnforcer makes the enforcer of a class. Rows and grants that do not match it do no harm:
// casbin matches them itself.
func newEnforcer(agent string, at domain, tool string, rules []*rule, grants []*grant) (*enforcer, error) {
	parsed, err := parsedModel()
	if err != nil {
		return nil, fmt.Errorf("policy: the model: %w", err)
	}
	e := &enforcer{rows: rules, agent: agent, domain: at.String(), tool: tool}
	m := parsed.Copy()
	for i, r := range rules {
		if r.condition != nil {
			e.reads = e.reads.With(r.condition.Reads())
		}
		effect := Allow
		if r.Effect == Deny {
			effect = Deny
		}
		if err := m.AddPolicy("p", "p", []string{strconv.Itoa(i), r.Subject, r.Domain, r.Tool, string(effect)}); err != nil {
			return nil, errCasbin
		}
	}
	for _, g := range grants {
		if err := m.AddPolicy("g", "g", []string{g.member, g.role, g.domain.String()}); err != nil {
			return nil, errCasbin
		}
	}
	if e.casbin, err = casbin.NewEnforcer(m); err != nil {
		return nil, errCasbin
	}
	e.casbin.AddFunction("covers", func(values ...any) (any, error) {
		return lexical.Matches(values[1].(string), values[0].(string)), nil
	})
	e.casbin.AddFunction("condition", func(values ...any) (any, error) {
		i, err := strconv.Atoi(values[0].(string))
		if err != nil {
			return nil, err
		}
		j := values[1].(*evaluation)
		j.seen++
		return j.applied[i], nil
	})
	e.casbin.AddNamedDomainMatchingFunc("g", "covers", lexical.Matches)
	if err := e.casbin.BuildRoleLinks(); err != nil {
		return nil, errCasbin
	}
	return e, nil
}

// enforce evaluates the conditions in the order of their lines, until a row denies, and decides by
// casbin's answer. The row of the decision is the one that decided, nil when none applied.
func (e *enforcer) enforce(j *evaluation) (Decision, error) {
	var key uint64
	j.applied = make([]bool, len(e.rows))
	for i, r := range e.rows {
		if j.applied[i] = j.applies(r); !j.applied[i] {
			continue
		}
		if i < maxKeyedRows {
			key |= 1 << i
		}
		if r.Effect == Deny {
			break
		}
	}
	a, err := e.answer(j, key)
	if err != nil {
		return Decision{}, err
	}
	var d Decision
	if a.row >= 0 {
		row := e.rows[a.row]
		d = Decision{Allowed: a.allowed, Row: &row.Row, Rows: row.place[:]}
	}
	switch {
	case d.Allowed:
		e.ask(&d, j)
	case !j.probe && !e.reads.None():
		e.blame(&d, j)
	}
	if j.counted && d.Row != nil {
		e.count(&d, j)
	}
	return d, nil
}

// answer returns casbin's answer for the rows that apply, whose set is key.
func (e *enforcer) answer(j *evaluation, key uint64) (answer, error) {
	if known, ok := e.answers.Load(key); ok {
		return known.(answer), nil
	}
	a, err := e.askCasbin(j)
	if err == nil && len(e.rows) <= maxKeyedRows && e.kept.Add(1) <= maxKeptAnswers {
		e.answers.Store(key, a)
	}
	return a, err
}

// askCasbin lets casbin decide, and refuses an answer that its rows do not give.
func (e *enforcer) askCasbin(j *evaluation) (answer, error) {
	j.seen = 0
	allowed, deciding, err := e.casbin.EnforceEx(e.agent, e.domain, e.tool, j)
	if err != nil {
		return answer{}, errCasbin
	}
	// Only a row that denies ends the search. Else casbin must have matched every row that the index
	// has, so that none that denies or asks is missed.
	if len(deciding) == 0 {
		if allowed || j.seen != len(e.rows) || slices.Contains(j.applied, true) {
			return answer{}, errEnforcer
		}
		return answer{row: -1}, nil
	}
	i, err := strconv.Atoi(deciding[0])
	if err != nil || !j.applied[i] || allowed != (e.rows[i].Effect != Deny) || allowed && j.seen != len(e.rows) {
		return answer{}, errEnforcer
	}
	return answer{allowed, i}, nil
}

// count counts a decision for the rows that took part.
func (e *enforcer) count(d *Decision, j *evaluation) {
	for i, r := range e.rows {
		asks := len(d.Asks) > 0 && r.Effect == Ask && (j.applied[i] || j.failed[r.Line] != nil)
		if j.applied[i] || asks {
			r.count.matched.Add(1)
		}
		if asks || d.Row == &r.Row {
			r.count.decided.Add(1)
		}
	}
}

// blame adds to a decision that does not allow what is read of the past by the conditions for which it does not. A row that
// asks is mostly there to restrict one that allows, and only counts where there is none.
func (e *enforcer) blame(d *Decision, j *evaluation) {
	permits := Ask
	if slices.ContainsFunc(e.rows, func(r *rule) bool { return r.Effect == Allow }) {
		permits = Allow
	}
	for _, r := range e.rows {
		denies := d.Row == &r.Row
		mightPermit := d.Row == nil && r.Effect == permits
		if r.condition == nil || !denies && !mightPermit || r.condition.Reads().None() || !r.condition.TurnsOnPast(j.ctx, &j.variables) {
			continue
		}
		d.Reads = d.Reads.With(r.condition.Reads())
		d.Unknown = d.Unknown || errors.Is(j.failed[r.Line], history.ErrUnknown)
	}
}

// ask adds the rows that ask to a decision which permits.
func (e *enforcer) ask(d *Decision, j *evaluation) {
	for i, r := range e.rows {
		if r.Effect != Ask || !j.applied[i] && j.failed[r.Line] == nil {
			continue
		}
		if d.Asks == nil {
			d.Row, d.Rows = &r.Row, nil
		}
		d.Rows = append(d.Rows, r.place[:]...)
		if at, twice := slices.BinarySearch(d.Asks, r.Rule); !twice {
			d.Asks = slices.Insert(d.Asks, at, r.Rule)
		}
	}
}
