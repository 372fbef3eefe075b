package gateway

import (
	"context"
	"errors"
	"slices"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy/boundary"
	"github.com/callgate/callgate/refusal"
)

// checkWorkspace is the stage workspace: it exists, and is the principal's.
func checkWorkspace(_ context.Context, c *call) error {
	if p := c.principal; p != nil && c.subject.Workspace != p.Workspace {
		return refusal.New(refusal.WorkspaceMismatch, "This workspace is not the caller's. The call cannot be made here.")
	}
	_, err := c.config.Workspaces.Workspace(c.subject.Workspace)
	return err
}

// checkProject is the first step of the stage project: it is the principal's, is
// in the workspace, and lists the agent.
func checkProject(_ context.Context, c *call) error {
	if p := c.principal; p != nil && !slices.Contains(p.Projects, c.subject.Project) {
		return refusal.New(refusal.ProjectMismatch, "This project is not the caller's. The call cannot be made here.")
	}
	project, err := c.config.Workspaces.Project(c.subject.Agent, c.subject.Workspace, c.subject.Project)
	c.project = project
	return err
}

// outsidePrincipal tells whether a request names a workspace or a project that is not its
// principal's.
func (c *call) outsidePrincipal() bool {
	p, s := c.principal, c.subject
	return p != nil && (s.Workspace != "" && s.Workspace != p.Workspace || s.Project != "" && !slices.Contains(p.Projects, s.Project))
}

// checkBoundary is the second step: what the schema marks with x-boundary lies
// within what the project lists, and so do the folders that answers name.
func checkBoundary(_ context.Context, c *call) error {
	if c.project == nil {
		return errors.New("no project was entered")
	}
	values := c.tool.Boundaries(c.args)
	var violations []refusal.Violation
	var places []parser.Place
	for _, v := range values {
		if len(violations) == maxViolations {
			break
		}
		err := c.project.Bounds().Within(v.Kind, v.Value)
		if err == nil {
			continue
		}
		var outside *boundary.OutsideError
		if !errors.As(err, &outside) {
			return err
		}
		places = append(places, parser.Place{Path: v.Path})
		violations = append(violations, refusal.Violation{Code: refusal.BoundaryViolation, Path: pointer(v.Path), Message: boundaryMessage(v.Path, outside)})
	}
	if len(violations) > 0 {
		c.offsets(violations, places)
	}
	outsiders, err := c.answersOutside(maxViolations - len(violations))
	if err != nil {
		return err
	}
	violations = append(violations, outsiders...)
	if len(violations) == 0 {
		return nil
	}
	refusal.Sort(violations)
	refused := refusal.New(refusal.BoundaryViolation, summary(violations))
	refused.Violations = violations
	return refused
}
