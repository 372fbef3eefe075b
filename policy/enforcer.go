package policy

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"
)

// modelText is the casbin model. A row carries its line, by which its condition
// and the row itself are found again. Equality and patterns are tried before
// roles, and a condition last, when everything else of its row matches.
const modelText = `
[request_definition]
r = sub, dom, obj, evaluation

[policy_definition]
p = line, sub, dom, obj, eft

[role_definition]
g = _, _, _

[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))

[matchers]
m = matches(r.obj, p.obj) && matches(r.dom, p.dom) && (r.sub == p.sub || g(r.sub, p.sub, r.dom)) && applies(r.evaluation, p.line)
`

var (
	// errEnforcer is an answer that casbin cannot have meant.
	errEnforcer = errors.New("policy: the enforcer gave an answer that its rows do not give")
	// errCasbin stands for casbin's own error, whose text may hold a stack trace
	// and names that the model wrote.
	errCasbin = errors.New("policy: casbin failed while enforcing")
)

// newModel parses the model; each enforcer works on a copy of it.
func newModel() (model.Model, error) {
	m, err := model.NewModelFromString(modelText)
	if err != nil {
		return nil, fmt.Errorf("policy: model: %w", err)
	}
	return m, nil
}

// enforcer is casbin over the rows that can reach one class of requests. It is
// never changed once built, and safe for concurrent use.
type enforcer struct {
	casbin *casbin.Enforcer
	rows   map[string]*rule // by line
}

func newEnforcer(base model.Model, at domain, rules []*rule, grants []*grant) (*enforcer, error) {
	c, err := casbin.NewEnforcer(base.Copy())
	if err != nil {
		return nil, fmt.Errorf("policy: enforcer: %w", err)
	}
	e := &enforcer{casbin: c, rows: make(map[string]*rule, len(rules))}
	c.AddFunction("matches", matchFunction(matches))
	c.AddFunction("applies", e.conditionApplies)
	lines := make([][]string, 0, len(rules))
	for _, r := range rules {
		line := strconv.Itoa(r.Line)
		e.rows[line] = r
		lines = append(lines, []string{line, r.Subject, r.Domain, r.Tool, string(r.Effect)})
	}
	if _, err := c.AddPolicies(lines); err != nil {
		return nil, fmt.Errorf("policy: enforcer: %w", err)
	}
	// The grants are those that hold in this domain: they are written for it.
	for _, g := range grants {
		if _, err := c.AddGroupingPolicy(g.member, g.role, at.String()); err != nil {
			return nil, fmt.Errorf("policy: enforcer: %w", err)
		}
	}
	return e, nil
}

// enforce asks casbin. The row is the one that decided, nil when none matched.
func (e *enforcer) enforce(agent string, at domain, tool string, j *evaluation) (Decision, error) {
	allowed, deciding, err := e.casbin.EnforceEx(agent, at.String(), tool, j)
	if err != nil {
		return Decision{}, errCasbin
	}
	if len(deciding) == 0 {
		if allowed {
			return Decision{}, errEnforcer
		}
		return Decision{}, nil
	}
	r, known := e.rows[deciding[0]]
	if !known || (r.Effect == Allow) != allowed {
		return Decision{}, errEnforcer
	}
	return Decision{Allowed: allowed, Row: &r.Row}, nil
}

// conditionApplies is the matcher's word for "the row's condition is met".
func (e *enforcer) conditionApplies(args ...any) (any, error) {
	if len(args) != 2 {
		return false, errEnforcer
	}
	j, isJudgement := args[0].(*evaluation)
	line, isText := args[1].(string)
	if !isJudgement || !isText {
		return false, errEnforcer
	}
	r, known := e.rows[line]
	if !known {
		return false, errEnforcer
	}
	return j.applies(r), nil
}

// matchFunction turns a match of two strings into a function for casbin. Anything
// but two strings is an error, never a match.
func matchFunction(match func(text, pattern string) bool) func(...any) (any, error) {
	return func(args ...any) (any, error) {
		if len(args) != 2 {
			return false, errEnforcer
		}
		text, isText := args[0].(string)
		pattern, isPattern := args[1].(string)
		if !isText || !isPattern {
			return false, errEnforcer
		}
		return match(text, pattern), nil
	}
}
