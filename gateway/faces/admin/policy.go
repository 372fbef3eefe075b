package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/callgate/callgate/gateway/violations"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/refusal"
)

// Row is a row of the policy file.
type Row struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Subject string `json:"subject"`
	Domain  string `json:"domain"`
	Tool    string `json:"tool"`
	When    string `json:"when,omitempty"` // CEL; absent means always
	Effect  string `json:"effect"`         // allow, deny or ask:RULE
}

func rowOf(r policy.Row) Row {
	effect := string(r.Effect)
	if r.Rule != "" {
		effect += ":" + r.Rule
	}
	return Row{File: r.File, Line: r.Line, Subject: r.Subject, Domain: r.Domain, Tool: r.Tool, When: r.When, Effect: effect}
}

// Explained says what the policy in force answers, and why.
type Explained struct {
	Agent     string `json:"agent"`
	Workspace string `json:"workspace"`
	Project   string `json:"project"`
	Tool      string `json:"tool"`
	// Allowed says that the rows permit the call; where Asks names rules, once people have
	// approved it by them.
	Allowed bool     `json:"allowed"`
	Asks    []string `json:"asks,omitempty"`
	// Reach is whether the agent could ever use the tool there, whatever the arguments: never,
	// on conditions, asks or always.
	Reach string `json:"reach"`
	Why   string `json:"why"`
	Row   *Row   `json:"row,omitempty"` // that decides; absent: none matches, which denies
	// Near are the rows that nearly decided, the nearest first.
	Near    []NearRow `json:"near"`
	Omitted int       `json:"omitted,omitempty"` // of Near
	// WithArguments says that conditions were asked about the call's own arguments; else about
	// none, and they fail.
	WithArguments bool `json:"with_arguments"`
	// Saw are the values of the past that conditions have read, each with what made it; absent where none is known.
	Saw []string `json:"saw,omitempty"`
	// SameConfiguration says, of a call, that the configuration in force is the one that
	// judged it.
	SameConfiguration bool `json:"same_configuration,omitempty"`
}

// NearRow is a row that did not decide, and why.
type NearRow struct {
	Row Row    `json:"row"`
	Why string `json:"why"`
}

// ExplainRequest asks what the policy says of a call.
type ExplainRequest struct {
	Agent     string          `json:"agent"`
	Tool      string          `json:"tool"`
	Project   string          `json:"project,omitempty"` // workspace/project; absent: the configuration's default
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// explain answers POST /v1/policy/explain.
func (s *Sources) explain(r *Request) (any, error) {
	var decoded ExplainRequest
	if err := r.Decode(&decoded); err != nil {
		return nil, err
	}
	if decoded.Agent == "" || decoded.Tool == "" {
		return nil, bad("The body must have the members agent and tool.")
	}
	config := s.Kernel.Config()
	request := policy.Request{Agent: decoded.Agent, Tool: decoded.Tool, Workspace: config.Defaults.Workspace,
		Project: config.Defaults.Project}
	if decoded.Project != "" {
		workspace, project, ok := strings.Cut(decoded.Project, "/")
		if !ok || workspace == "" || project == "" || strings.Contains(project, "/") {
			return nil, bad("The member project must be workspace/project.")
		}
		request.Workspace, request.Project = workspace, project
	}
	if decoded.Arguments == nil {
		return s.explained(r.Context(), request, false)
	}
	entry, _ := config.Tools.Lookup(decoded.Tool)
	arguments, err := violations.ReadArguments(entry, decoded.Arguments, config.Output.MaxDepth)
	var refused *refusal.Error
	if errors.As(err, &refused) {
		return nil, bad("%s A call with these arguments is refused before the policy is asked.", refused.Detail())
	}
	if err != nil {
		return nil, bad("The member arguments must be one JSON object, as a call's.")
	}
	request.Arguments = arguments
	return s.explained(r.Context(), request, true)
}

// explained asks the policy in force.
func (s *Sources) explained(ctx context.Context, request policy.Request, withArguments bool) (*Explained, error) {
	return Explain(ctx, s.Kernel.Config().Policy, request, withArguments)
}

// Explain asks a policy. The command "policy explain" prints the same.
func Explain(ctx context.Context, p *policy.Policy, request policy.Request, withArguments bool) (*Explained, error) {
	x, err := p.Explain(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("the policy could not be evaluated: %w", err)
	}
	reach, err := p.Reach(request.Agent, request.Workspace, request.Project, request.Tool)
	if err != nil {
		return nil, fmt.Errorf("the policy could not be evaluated: %w", err)
	}
	e := &Explained{
		Agent: request.Agent, Workspace: request.Workspace, Project: request.Project, Tool: request.Tool,
		Allowed: x.Allowed, Asks: x.Asks, Reach: reach.String(), Why: x.Why, Near: []NearRow{}, Omitted: x.Omitted,
		WithArguments: withArguments,
	}
	if x.Row != nil {
		row := rowOf(*x.Row)
		e.Row = &row
	}
	for _, n := range x.NearMisses {
		e.Near = append(e.Near, NearRow{rowOf(n.Row), n.Why})
	}
	return e, nil
}

// CountedRow is a row, and how many calls it took part in since the configuration was loaded.
type CountedRow struct {
	Row
	Matched uint64 `json:"matched"` // calls that it matched, with its condition met
	Decided uint64 `json:"decided"` // calls that it denied, permitted, or that asked by it
}

// Policy is the policy in force.
type Policy struct {
	Digest string       `json:"digest"` // of the configuration
	Since  time.Time    `json:"since"`  // when it was loaded: counts begin there
	Rows   []CountedRow `json:"rows"`
	// Next is the parameter after of the next page: the line that it is behind.
	Next int `json:"next,omitempty"`
	// Total counts the rows of the file.
	Total    int      `json:"total"`
	Warnings []string `json:"warnings"` // of the whole configuration
}

// policy answers GET /v1/policy.
func (s *Sources) policy(r *Request) (any, error) {
	limit, after, err := r.page("after")
	if err != nil {
		return nil, err
	}
	config := s.Kernel.Config()
	loaded := s.Configuration()
	answer := Policy{Digest: config.Digest, Since: loaded.Since, Rows: []CountedRow{}, Warnings: loaded.Warnings}
	counts := config.Policy.Counts()
	for i, row := range config.Policy.Rows() {
		answer.Total++
		switch {
		case uint64(row.Line) <= after:
		case len(answer.Rows) < limit:
			answer.Rows = append(answer.Rows, CountedRow{rowOf(row), counts[i].Matched, counts[i].Decided})
		case answer.Next == 0:
			answer.Next = answer.Rows[len(answer.Rows)-1].Line
		}
	}
	return answer, nil
}
