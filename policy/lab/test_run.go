package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy"

	"github.com/callgate/callgate/refusal"
)

// maxFailures bounds the failed cases of a test that are described.
const maxFailures = 10

// TestResult says how one test came out.
type TestResult struct {
	Test     *Test
	Failures []TestFailure // the first of them
	Failed   int           // how many cases failed
}

// TestFailure is one case that came out otherwise than expected.
type TestFailure struct {
	Agent    string   `json:"agent"`
	Project  string   `json:"project"`
	Tool     string   `json:"tool"`
	Expected string   `json:"expected"`
	Found    string   `json:"found"`
	Rows     []string `json:"rows"` // that decided, as file:line
	Why      string   `json:"why"`
}

// String is one line.
func (f TestFailure) String() string {
	return fmt.Sprintf("%s in %s, %s: found %s; expected %s", f.Agent, f.Project, f.Tool, f.Found, f.Expected)
}

// RunTests judges the cases of tests that were read for this configuration. Coverage may be nil. The
// error is that of ctx, or one of the policy.
func RunTests(ctx context.Context, c TestConfig, tests []Test, coverage *Coverage) ([]TestResult, error) {
	results := make([]TestResult, len(tests))
	for i := range tests {
		t := &tests[i]
		results[i].Test = t
		r := runner{TestConfig: c, test: t, coverage: coverage}
		if t.Arguments != nil {
			r.arguments = parser.DecodeObject(t.Arguments)
			var err error
			if r.past, err = c.Judge.kernel.Assume(t.Thread, TestTime); err != nil {
				return nil, err
			}
		}
		for _, agent := range t.Agents {
			for _, at := range t.Projects {
				for _, tool := range t.Tools {
					if err := ctx.Err(); err != nil {
						return nil, err
					}
					failure, err := r.judge(ctx, agent, at, tool)
					if err != nil {
						return nil, err
					}
					if failure == nil {
						continue
					}
					if results[i].Failed++; len(results[i].Failures) < maxFailures {
						if err := r.explain(ctx, failure, at); err != nil {
							return nil, err
						}
						results[i].Failures = append(results[i].Failures, *failure)
					}
				}
			}
		}
	}
	return results, nil
}

// runner judges the cases of one test.
type runner struct {
	TestConfig
	test      *Test
	arguments map[string]any   // of the test; nil: whatever they are
	past      *gateway.Assumed // before a call with arguments
	coverage  *Coverage
}

// judge judges one case; nil where it is as expected.
func (r *runner) judge(ctx context.Context, agent string, at TestProject, tool string) (*TestFailure, error) {
	if r.test.Arguments == nil {
		reach, err := r.Judge.Reach(agent, at.Workspace, at.Name, tool)
		if err != nil {
			return nil, err
		}
		var rows []string
		if reach == policy.Never || reach == policy.Always {
			decision, err := r.Policy.Permit(ctx, policy.Request{Agent: agent, Workspace: at.Workspace, Project: at.Name, Tool: tool})
			if err != nil {
				return nil, err
			}
			rows = decision.Rows
		}
		r.coverage.add(ctx, policy.Request{Agent: agent, Workspace: at.Workspace, Project: at.Name, Tool: tool}, rows, false, r.Policy)
		if found := reachWord(reach); found != r.test.Expect {
			return &TestFailure{Agent: agent, Project: at.String(), Tool: tool, Expected: r.test.Expect, Found: found, Rows: rows}, nil
		}
		return nil, nil
	}
	outcome := r.Judge.Judge(ctx, Call{Agent: agent, Workspace: at.Workspace, Project: at.Name, Tool: tool, Arguments: r.test.Arguments,
		Past: r.past})
	if reachedPolicy(outcome) {
		reach, err := r.Policy.Reach(agent, at.Workspace, at.Name, tool)
		if err != nil {
			return nil, err
		}
		// Where the tool is never permitted, the arguments were not judged by its schema.
		request, err := r.request(agent, at, tool)
		if err != nil {
			return nil, err
		}
		r.coverage.add(ctx, request, outcome.Rows, reach != policy.Never, r.Policy)
	}
	f := &TestFailure{Agent: agent, Project: at.String(), Tool: tool, Expected: r.test.Expect, Found: word(outcome), Rows: outcome.Rows}
	if row := r.test.Row; row != nil && !slices.Contains(outcome.Rows, row.Place()) {
		f.Expected += " by " + row.Place()
		f.Found += " by " + orNone(outcome.Rows)
	} else if f.Expected == f.Found {
		return nil, nil
	}
	if refused := outcome.Refusal; refused != nil && refused.Stage != refusal.Permission {
		f.Why = refused.Message
	}
	return f, nil
}

func orNone(rows []string) string {
	if len(rows) == 0 {
		return "no row"
	}
	return strings.Join(rows, ", ")
}

// reachedPolicy reports whether the policy was asked about a call.
func reachedPolicy(o Judgement) bool {
	if o.Refusal == nil {
		return true
	}
	switch o.Refusal.Stage {
	case refusal.Permission, refusal.Workspace, refusal.Project:
		return true
	}
	return false
}

// word is an outcome as tests write it.
func word(o Judgement) string {
	switch {
	case o.Code == refusal.PermissionDenied:
		return deny
	case o.Verdict == Refused:
		return string(o.Code)
	case o.Verdict == Asks:
		return askPrefix + strings.Join(o.Rules, ",")
	}
	return allow
}

// request is what the policy is asked in a case.
func (r *runner) request(agent string, at TestProject, tool string) (request policy.Request, err error) {
	request = policy.Request{Agent: agent, Workspace: at.Workspace, Project: at.Name, Tool: tool, Arguments: r.arguments}
	if r.past != nil {
		request.Past, err = r.Judge.kernel.ViewAfter(request, r.past)
	}
	return request, err
}

// explain says why a case came out as it did, where no other check than the policy says so.
func (r *runner) explain(ctx context.Context, f *TestFailure, at TestProject) error {
	if f.Rows == nil {
		f.Rows = []string{}
	}
	if f.Why != "" {
		return nil
	}
	if _, err := r.Workspaces.Project(f.Agent, at.Workspace, at.Name); err != nil && r.test.Arguments == nil {
		f.Why = "The project does not list the agent."
		return nil
	}
	request, err := r.request(f.Agent, at, f.Tool)
	if err != nil {
		return err
	}
	if f.Found == reachWord(policy.OnConditions) || f.Found == reachWord(policy.Asks) {
		var rows []string
		for _, row := range r.Policy.Matching(request.Agent, request.Workspace, request.Project, request.Tool) {
			rows = append(rows, row.Place())
		}
		f.Why = "It depends on the arguments, or on people, by " + orNone(rows) + "."
		return nil
	}
	explanation, err := r.Policy.Explain(ctx, request)
	if err != nil {
		return err
	}
	f.Why = explanation.Why
	if explanation.Row == nil && len(explanation.NearMisses) > 0 {
		near := explanation.NearMisses[0]
		f.Why += fmt.Sprintf(" The nearest is %s: %s.", near.Row, near.Why)
	}
	return nil
}
